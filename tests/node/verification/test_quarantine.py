"""Machines whose numbers were found wrong are remembered, also over a restart, until a person takes them back."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.api.responses import UseAgainResponse
from app.api.snapshot import MachineRef
from app.core.errors import BadInput, Reason
from app.core.household.household import Machine
from app.core.ids import MachineId
from app.core.reasons import said
from app.machine.paths import write_atomically
from app.node.control.household_routes import HouseholdRoutes
from app.node.verification import quarantine as module
from app.node.verification.quarantine import Quarantine

ATTIC, SHED = MachineId("a" * 64), MachineId("s" * 64)
MACHINES = {ATTIC: Machine(ATTIC, "attic", online=True), SHED: Machine(SHED, "shed")}


async def test_it_is_remembered_and_said_until_it_is_used_again(tmp_path: Path) -> None:
    noted: list[str] = []
    file = tmp_path / "doubts.json"
    quarantine = Quarantine(file, lambda why: noted.append(why.code))
    for _ in range(2):
        await quarantine.add(ATTIC, "attic")
    await quarantine.add(SHED, "shed")
    again = Quarantine(file)
    assert ATTIC in again
    slow = {ATTIC: Reason("machine_replaced"), SHED: Reason("machine_replaced")}
    (why,) = again.reasons(MACHINES, {}).values()  # of the one that is here
    both = again.reasons(MACHINES, slow)
    assert both == {ATTIC: why, SHED: slow[SHED]}  # a person can end the one, and is asked to
    assert said(why).startswith("attic computed wrong numbers in a check")
    used = await quarantine.release(MACHINES[ATTIC])
    assert used == UseAgainResponse(MachineRef(ATTIC, "attic"))
    assert ATTIC not in quarantine
    assert ATTIC not in Quarantine(file)
    assert SHED in Quarantine(file)
    assert noted == [*["log_machine_doubted"] * 2, "log_machine_used_again"]


async def test_placements_look_anew_at_a_machine_that_is_used_again(tmp_path: Path) -> None:
    looked: list[str] = []
    loaded = [SimpleNamespace(household_changed=lambda at=at: looked.append(at)) for at in "ab"]
    quarantine = Quarantine(tmp_path / "doubts.json")
    await quarantine.add(ATTIC, "attic")
    household: Any = SimpleNamespace(machine=lambda _: MACHINES[ATTIC])
    nobody: Any = None
    request: Any = SimpleNamespace(match_info={"ref": "attic"})
    routes = HouseholdRoutes(nobody, household, nobody, quarantine, cast("Any", loaded))
    await routes.use_again(request)
    assert (looked, ATTIC in quarantine) == (["a", "b"], False)


async def test_the_last_word_is_kept_however_slow_the_disk_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check finds it, or is ended by a question, and a person takes it back in the same moment."""
    writing, may_write, is_over = (threading.Event() for _ in range(3))

    def slow_at_first(path: Path, content: bytes) -> None:
        if writing.is_set():
            return write_atomically(path, content)
        writing.set()
        may_write.wait(5)
        write_atomically(path, content)
        is_over.set()
        return None

    monkeypatch.setattr(module, "write_atomically", slow_at_first)
    quarantine = Quarantine(tmp_path / "doubts.json")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(quarantine.add(ATTIC, "attic"), name="a check finds it")
        await asyncio.to_thread(writing.wait)
        group.create_task(quarantine.release(MACHINES[ATTIC]), name="taken back")
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.sleep(0.05)
        may_write.set()
        await asyncio.to_thread(is_over.wait)
    assert ATTIC not in Quarantine(tmp_path / "doubts.json")


async def test_what_nobody_said_cannot_be_taken_back(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        await Quarantine(tmp_path / "doubts.json").release(MACHINES[ATTIC])
    assert caught.value.reason.code == "machine_not_doubted"


async def test_who_left_the_household_is_forgotten(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path / "doubts.json")
    await quarantine.add(ATTIC, "attic")
    quarantine.keep_only({SHED: None})
    assert ATTIC not in quarantine


async def test_a_damaged_file_doubts_nobody(tmp_path: Path) -> None:
    file = tmp_path / "doubts.json"
    file.write_text('{"since": 3}')
    assert ATTIC not in Quarantine(file)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"since": {"a": "x"}}'])
async def test_a_damaged_file_is_told_and_kept_aside(tmp_path: Path, content: bytes) -> None:
    file, messages = tmp_path / "doubts.json", list[str]()
    file.write_bytes(content)
    quarantine = Quarantine(file, lambda why: messages.append(said(why)))
    assert ATTIC not in quarantine
    (sentence,) = messages
    aside = tmp_path / "doubts.damaged"
    assert str(aside) in sentence
    assert aside.read_bytes() == content
    await quarantine.add(ATTIC, "attic")
    assert ATTIC in Quarantine(file)
