"""Real nodes on a small network of their own: they find each other, go, move, and come without multicast."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import Unreachable
from app.core.household.link import LinkKind
from app.machine import settings
from app.machine.interfaces import Interface
from app.machine.settings import NodeOptions
from app.node.links.discovery_service import (
    DiscoveryChoice,
    DiscoveryService,
    _hosts,
    open_listening_socket,
    reachable_addresses,
)
from testbed.computers import Computer, started
from tests.findings import cause_of
from tests.network.namespaces import lan

SEEN_SECONDS, DEPARTED_SECONDS = 2.0, 5.0
DOCTOR_SECONDS = 60.0  # it says nothing before it has listened for some seconds
SLOWER = 3.0  # a computer may be


def until(true: Callable[[], object], seconds: float) -> None:
    """Wait for it; fails when it takes longer, beside the time in which programs had to wait for a processor."""
    began, stalled = time.monotonic(), stalled_seconds()
    while not true():
        spent, lost = time.monotonic() - began, stalled_seconds() - stalled
        text = f"not within {seconds:.2f} s; {lost:.2f} of {spent:.2f} s without a processor"
        assert spent < SLOWER * seconds + lost, text
        time.sleep(0.05)
    print(f"{time.monotonic() - began:.2f} of {seconds:.2f} s")  # shown by pytest -s or a failure


def soon(true: Callable[[], object]) -> None:
    """Within two seconds, on a computer that has them."""
    until(true, SEEN_SECONDS)


def stalled_seconds() -> float:
    """Return how long programs had to wait for a processor since the start, or 0 if the system does not count it."""
    try:
        some = Path("/proc/pressure/cpu").read_text().split("\n")[0]
    except OSError:
        return 0.0
    return int(some.rpartition("total=")[2]) / 1e6


def pair(admin: Computer, other: Computer, address: str | None = None) -> None:
    window = admin.ask("POST", "/pairing", {"role": "use_and_lend"})
    expected = window["address"] if address is None else address
    if address is not None:
        soon(lambda: _sees_a_window(other))
    joined = other.ask("POST", "/pairing/join", {"address": expected, "code": window["code"]})
    assert "machine" in joined, joined
    until(lambda: admin.ask("GET", "/status")["pairing"] is None, 5)


def _discovery_check(computer: Computer) -> tuple[bool | None, str]:
    checks = computer.ask("GET", "/doctor")["checks"]
    return next((check["ok"], check["cause"]) for check in checks if check["name"] == "Discovery")


def _sees_a_window(computer: Computer) -> bool:
    near = computer.ask("GET", "/status")["strangers"].values()
    return any(seen["name"] for seen in near)


def _why_undiscovered(computer: Computer) -> str:
    return computer.ask("GET", "/status")["discovery"]["reason"] or ""


def _says_copied(computer: Computer) -> bool:
    return "this machine's identity" in _why_undiscovered(computer)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[Computer]]:
    with ExitStack() as stack:
        network = stack.enter_context(lan(3))
        made = [Computer(network, n, tmp_path / f"c{n}") for n in range(3)]
        for computer in made:
            stack.callback(computer.end)
        yield made


def everybody_linked(computers: list[Computer]) -> bool:
    return all(len(computer.linked()) == len(computers) - 1 for computer in computers)


@pytest.mark.long
@pytest.mark.root
def test_three_nodes_find_each_other_and_notice_who_goes(three: list[Computer]) -> None:
    den, attic, kitchen = three
    started(three)
    soon(lambda: all(len(computer.near()) == 2 for computer in three))
    assert _discovery_check(den) == (True, "Nearby machines can find this one, and it has discovered 2 others.")

    pair(den, attic, "den-pc")  # by name, heard because the window is open
    pair(den, kitchen, "")  # the only one that is open
    soon(lambda: everybody_linked(three))
    assert all(computer.near() == set() for computer in three)

    kitchen.end()
    until(lambda: len(den.linked()) == len(attic.linked()) == 1, DEPARTED_SECONDS)
    kitchen.start()
    kitchen.wait()
    soon(lambda: everybody_linked(three))
    attic.kill()
    until(lambda: len(den.linked()) == len(kitchen.linked()) == 1, DEPARTED_SECONDS)


@pytest.mark.long
@pytest.mark.root
def test_without_multicast_they_meet_by_address(three: list[Computer]) -> None:
    den, attic, kitchen = three
    den.lan.multicast(works=False)
    started(three)
    pair(den, attic)
    pair(den, kitchen)
    soon(lambda: everybody_linked(three))  # attic and kitchen by what den told them
    kitchen.kill()
    until(lambda: len(den.linked()) == len(attic.linked()) == 1, DEPARTED_SECONDS)
    attic.end()
    until(lambda: not den.linked(), DEPARTED_SECONDS)
    started([attic, kitchen])  # at the ports of the last time, and they remember the addresses
    soon(lambda: everybody_linked(three))


@pytest.mark.long
@pytest.mark.root
def test_discovery_that_goes_one_way_is_named_on_both_sides(three: list[Computer]) -> None:
    """A firewall that blocks incoming announcements causes this: den is heard, and hears nobody."""
    den, attic, _ = three
    den.lan.multicast(works=False, to=den.number)
    started([den, attic])
    pair(den, attic)
    until(lambda: everybody_linked([den, attic]), DOCTOR_SECONDS)
    until(lambda: "one_way_here" in _codes(den), DOCTOR_SECONDS)
    until(lambda: "one_way_there" in _codes(attic), DOCTOR_SECONDS)


def _codes(computer: Computer) -> set[str]:
    return {check["code"] for check in computer.ask("GET", "/doctor")["checks"]}


def copy_live(home: Path, to: Path) -> None:
    """The home of a node that runs, and makes and deletes files meanwhile."""
    for_a_while = shutil.ignore_patterns("runtime.json", "*.part", "measuring", "checking")
    shutil.copytree(home, to, ignore=for_a_while, copy_function=_copied_if_there)


def _copied_if_there(file: str, to: str) -> None:
    with suppress(FileNotFoundError):
        shutil.copy2(file, to)


@pytest.mark.long
@pytest.mark.root
def test_a_machine_that_moves_is_found_again_and_a_copy_is_named(three: list[Computer]) -> None:
    den, attic, copy = three
    started([den, attic])
    pair(den, attic)
    soon(lambda: everybody_linked([den, attic]))
    den.lan.cable(attic.number, plugged=False)  # not a word is heard from it
    until(lambda: not den.linked(), DEPARTED_SECONDS)
    until(lambda: _why_undiscovered(attic).startswith("This computer is not on a network"), 10)
    den.lan.move(attic.number, "10.231.90.77")
    den.lan.cable(attic.number, plugged=True)

    def there() -> bool:
        links = den.ask("GET", "/status")["links"]
        return any(link["address"].startswith("10.231.90.77:") for link in links.values())

    until(there, 10)

    copy_live(den.root, copy.root)
    started([copy])
    soon(lambda: _says_copied(den) and _says_copied(copy))
    assert attic.linked() == {den.ready["id"]}
    links = attic.ask("GET", "/status")["links"]
    assert links[den.ready["id"]]["address"].startswith(den.lan.address(den.number))


def test_the_port_of_the_last_start_is_taken_again(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    settings.save(file, settings.Settings("den-pc"))
    options = NodeOptions(bind="127.0.0.1")
    with open_listening_socket(options, file) as first:
        port = first.getsockname()[1]
        with open_listening_socket(options, file) as beside:  # it is taken: another one, and from now on
            other = beside.getsockname()[1]
    assert other != port
    assert settings.load(file) == settings.Settings("den-pc", port=other)
    with open_listening_socket(options, file) as again:
        assert again.getsockname()[1] == other
        with pytest.raises(Unreachable):  # a port that was asked for is that one or none
            open_listening_socket(NodeOptions(bind="127.0.0.1", port=other), file)


def test_doctor_tells_of_an_interface_that_is_waited_for() -> None:
    network: Any = SimpleNamespace(id="d" * 64, port=1, members={}, link_manager=SimpleNamespace())
    choice = DiscoveryChoice(on=True, bind="0.0.0.0", interfaces=frozenset({"wg0"}))
    choices: Any = SimpleNamespace(now=SimpleNamespace(name="den"))
    finding = DiscoveryService(network, choices, choice, lambda _: None)
    finding._discovery.use(("10.0.0.2",), ("10.0.0.2",))
    finding._looked, finding._there = True, frozenset({"eth0"})
    check = finding.check()
    assert (check.ok, check.code) == (None, "interface_awaited")
    assert cause_of(check).startswith("This computer has no network interface called wg0 right now.")
    finding._there = frozenset({"eth0", "wg0"})
    assert finding.check().code == "discovery_alone"


def interface(name: str, *addresses: str) -> Interface:
    return Interface(name, LinkKind.ETHERNET, True, addresses)


@pytest.mark.parametrize(
    ("bind", "addresses", "speak_at"),
    [
        ("0.0.0.0", ("10.0.0.2", "10.0.0.3", "192.168.1.2"), ("10.0.0.2", "192.168.1.2")),
        ("::", ("10.0.0.2", "10.0.0.3", "fd00::2", "192.168.1.2", "fe80::9%six"),
         ("10.0.0.2", "192.168.1.2", "fe80::9%six")),
        ("10.8.0.1", ("10.8.0.1",), ("10.8.0.1",)),
    ],
)  # fmt: skip
def test_where_a_node_is_reached(bind: str, addresses: tuple[str, ...], speak_at: tuple[str, ...]) -> None:
    interfaces = [
        interface("one", "10.0.0.2", "10.0.0.3", "fd00::2", "fe80::2%one"),
        interface("two", "192.168.1.2", "fe80::3%two"),
        interface("six", "fe80::9%six"),
    ]
    assert reachable_addresses(interfaces, bind) == (addresses, speak_at)
    assert reachable_addresses([], "0.0.0.0") == ((), ())


def test_a_further_address_of_an_interface_is_there_while_that_is_up() -> None:
    """Linux names it by its label, and says of the interface alone that it is up."""
    addresses = [("eth0", "10.0.0.2"), ("eth0:1", "10.0.0.3"), ("eth1:1", "10.0.0.4"), ("wlan0", "fe80::1%wlan0")]
    assert _hosts((addresses, ["eth0", "wlan0"])) == {"10.0.0.2", "10.0.0.3", "fe80::1"}
