"""A member that sends more than it has reason to: its link ends, and the others' work goes on."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import AppError
from app.core.household.operations import Add, Rename, Role, encode
from app.core.ids import MachineId
from app.network import messages
from app.network.membership import household_log
from app.network.membership.household_log import sign_operation
from app.network.messages import Message
from app.network.traffic_limits import BARRED_SECONDS, Allowance, EventKind, Flood
from tests.network.certificates import good
from tests.network.nodes import Node, Nodes, opened, pair, until
from tests.network.test_log_properties import an_identity


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


@pytest.mark.parametrize("kind", list(EventKind))
def test_what_is_usual_passes_and_a_flood_bars_for_a_minute(kind: EventKind) -> None:
    now = [0.0]
    allowance = Allowance(lambda: now[0])
    for _ in range(1000):  # for ever, at the rate that is allowed
        now[0] += 1 / kind.per_second
        allowance.take(kind)
    allowance.take(kind, int(kind.burst) - 2)
    with pytest.raises(Flood):
        allowance.take(kind, 3)
    assert [allowance.is_barred] == [True]
    now[0] += BARRED_SECONDS + 1
    assert not allowance.is_barred
    allowance.take(kind)


FEW = 64  # what is signed by nobody is counted beside all else: far fewer of it are a flood


def forged(den: Node, n: int) -> Message:
    """Removals in the name of another machine, or what is no line at all."""
    log = den.network.log
    assert log is not None
    der = good()[1]
    other = an_identity(n)
    line = sign_operation(other, Add(log.household, other.id, other.der, "x", (Role.ADMIN,)))
    if n % 2:
        line = replace(line, signer=den.network.id)
    text = encode(line).decode("ascii") if n % 3 else der.hex()
    return messages.Log(operations=[text])


def about_nobody(den: Node, n: int) -> Message:
    """Lines about machines that nobody added, in an admin's name: no signature is looked at."""
    log = den.network.log
    assert log is not None
    lines = [
        replace(
            sign_operation(den.network._identity, Rename(log.household, MachineId(f"{1000 * n + k:064x}"), 1, "x")),
            signature=bytes(64),
        )
        for k in range(100)
    ]
    return messages.Log(operations=[encode(line).decode("ascii") for line in lines])


def a_status(n: int) -> Message:
    return messages.Status(name="attic", device="CPU", total_bytes=n, lendable_bytes=0, used_bytes=0, state="ready")


@pytest.mark.parametrize("kind", ["forged", "about nobody", "ping", "status", "known"])
async def test_who_floods_is_cut_off_and_the_others_stay(
    nodes: Nodes, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    den, attic = await nodes.paired("den", "attic")
    loft = await nodes.open("loft")
    await pair(den, loft)
    await until(lambda: len(den.network.links) == 2)
    known = messages.Log(operations=den.network._log.lines() * 10)
    link = attic.network.link(den.network.id)
    for n in range(FEW if kind in {"forged", "about nobody"} else 4000):
        flood: Message = (
            forged(den, n) if kind == "forged"
            else about_nobody(den, n) if kind == "about nobody"
            else messages.Ping(n=n) if kind == "ping"
            else a_status(n) if kind == "status"
            else known
        )  # fmt: skip
        try:
            await link.send(flood)
        except (AppError, ConnectionError):  # it is cut off
            break
        if link.ended is not None:
            break
    await until(lambda: attic.network.id not in den.network.links)
    assert den.unlinked[-1].ended is not None
    assert den.unlinked[-1].ended.code == "peer_floods"
    assert loft.network.id in den.network.links
    total = sum(isinstance(item, messages.Status) for item in den.heard)
    assert total < 2 * EventKind.STATUS.burst  # each is told to the window: fewer are a flood than of other words
    assert caplog.text.count("is flooding this machine") == 1  # what was left of it is not looked at
    attic.network.link_manager.hint(den.network.id)
    await until(
        lambda: (why := attic.network.link_manager.failed.get(den.network.id)) is not None and why.code == "peer_floods"
    )
    assert attic.network.id not in den.network.links


async def test_what_a_flooder_has_open_ends_at_once(nodes: Nodes) -> None:
    """A flooder would keep flooding while a goodbye is awaited."""
    den, attic = await nodes.paired("den", "attic")
    connections = den.network._listener._connections
    open_here = [
        base_transport for base_transport, connection in connections.items() if connection.machine == attic.network.id
    ]
    assert open_here
    with pytest.raises(Flood):
        den.network.link_manager._allowance(attic.network.id).take(EventKind.PING, 1000)
    assert all(base_transport.is_closing() for base_transport in open_here)


async def test_signatures_of_others_lines_are_looked_at_beside_the_loop(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a tenth of a millisecond or more, and answers pass through the loop."""
    den, attic = await nodes.paired("den", "attic")
    where, merged = list[threading.Thread](), household_log._merged

    def seen(*rest: Any) -> Any:
        where.append(threading.current_thread())
        return merged(*rest)

    monkeypatch.setattr(household_log, "_merged", seen)
    await attic.network.link(den.network.id).send(forged(den, 1))
    await until(lambda: len(where) > 0)
    assert threading.current_thread() not in where
