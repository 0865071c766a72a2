"""The package on clean Debian systems: installing, the first minute, two machines, updating, and removing it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from installers.payload.places import RESULTS
from tests.gui.outside import Outside, opened
from tests.installers.clean_system import USER_ID, CleanSystem, can_be_used, clean_system
from tests.network.namespaces import lan

pytestmark = [pytest.mark.installers, pytest.mark.root, pytest.mark.timeout(900)]
SUITES = ("bookworm", "trixie")
NEWER = "0.2.0"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1"
MOST_SECONDS = 60
DATA = "home/anna/.local/share/poolhouse"


def package(version: str = "") -> Path:
    """The package in dist/, of this version or the only other one."""
    packages = sorted(RESULTS.glob(f"poolhouse_{version or '*'}_amd64.deb"))
    packages = [path for path in packages if version or f"_{NEWER}_" not in path.name]
    if not packages:
        pytest.skip("needs a package: `make installers-test` builds it")
    return packages[-1]


@pytest.fixture(params=SUITES)
def system(request: pytest.FixtureRequest) -> Iterator[CleanSystem]:
    """A clean system with what the package depends on."""
    if reason := can_be_used():
        pytest.skip(reason)
    with clean_system(request.param, package()) as made:
        yield made


@contextmanager
def window(system: CleanSystem, net: Sequence[str] = (), **variables: str) -> Iterator[Outside]:
    """The installed window on a screen of its own, as the user."""
    with ExitStack() as stack:
        screen = system.shared / f"screen-{time.monotonic_ns()}"
        screen.mkdir()
        screen.chmod(0o777)
        before = (*net, "setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups")
        program = system.command("poolhouse", net=net, variables={"POOLHOUSE_KEYSTORE": "file", **variables})
        outside, _ = stack.enter_context(opened(Path("/unused"), screen, before, program))
        yield outside


def test_the_first_answer_comes_within_a_minute_and_without_a_network(
    system: CleanSystem, record_property: Callable[[str, object], None]
) -> None:
    system.install(package())
    with lan(1) as net:
        alone = ("ip", "netns", "exec", net.names[0])
        subprocess.run(["ip", "-n", net.names[0], "addr", "flush", "dev", "eth0"], check=True)
        begun = time.monotonic()
        with window(system, alone) as person:
            person.press("Continue", role="push button", within=60)
            opened_after = time.monotonic() - begun
            person.press("Only this computer for now", role="push button", within=60)
            person.read("This model came with Poolhouse", within=60)
            person.press("Load", role="push button", within=60)
            person.press("Explain how a rainbow forms, in three sentences.", role="push button", within=60)
            person.read("tok/s", within=60)
            took = time.monotonic() - begun
    print(f"window after {opened_after:.1f} s, first answer after {took:.1f} s")
    record_property("seconds", round(took, 1))
    assert took < MOST_SECONDS
