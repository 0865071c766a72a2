"""Tests that the time of a machine's last link outlives the node."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from app.core.household.household import Connected, Disconnected, Household, Member, Removed, apply
from app.core.ids import MachineId
from app.node.known_household import LastSeen
from tests.node.pool import node, paired
from tests.node.test_pool import until

ATTIC = MachineId("a" * 64)
MEMBER = Member(ATTIC, "attic-pc", ())


async def written(file: Path, text: str) -> None:
    await asyncio.to_thread(_wait, file, text)


def _wait(file: Path, text: str) -> None:
    late = time.monotonic() + 10
    while not file.exists() or text not in file.read_text():
        assert time.monotonic() < late, f"{text} was never written"
        time.sleep(0.01)


async def test_it_is_known_after_a_restart_and_forgotten_with_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "seen.json"
    first = LastSeen(file, lambda: 5.0)
    assert first.record(MEMBER) == MEMBER
    first.record(Connected(ATTIC, "10.0.0.2"))
    await written(file, "5.0")  # who is killed now knows at least that
    first.record(Disconnected(ATTIC, None, 7.0))
    await written(file, "7.0")
    again = LastSeen(file)
    machine = apply(Household(), again.record(MEMBER)).machines[ATTIC]
    assert (machine.online, machine.seen_at) == (False, 7.0)
    again.record(Removed(ATTIC))
    again.record(Disconnected(ATTIC, None, 9.0))  # the link to it ends after that
    await written(file, "{}")
    assert LastSeen(file).record(MEMBER) == MEMBER


async def test_a_file_that_is_damaged_or_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "seen.json").write_text('{"seen": 5}')
    LastSeen(tmp_path / "none" / "seen.json").record(Connected(ATTIC, "10.0.0.2"))
    assert LastSeen(tmp_path / "seen.json").record(MEMBER) == MEMBER


@pytest.mark.long
async def test_when_a_machine_was_there_last_outlives_a_restart(tmp_path: Path) -> None:
    with paired(tmp_path, "host", "guest") as nodes:
        await until(nodes[0], lambda machines: machines["guest"]["online"])
    with node(tmp_path / "host", "host") as alone:
        await until(alone, lambda machines: machines["guest"]["seen_at"] > time.time() - 60)
