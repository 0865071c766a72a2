"""The keeper of a worker's slots: the disk may fail at any moment, and neither memory nor the next prompt suffers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.inference.stages import slot_keeper
from app.inference.stages.slot_keeper import WorkerSlotKeeper
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run
from app.inference.worker.worker import Worker
from app.machine.prompt_vault import OWN, PromptVault
from backends import worker_orders
from backends.contract import Layers, Role
from backends.worker.slot_copies import PIECE_BYTES
from tests.inference.pool import WIDTH, fake, shape
from tests.inference.test_kept_prompts import vault_in

POSITIONS = PIECE_BYTES // 8 + 1000  # a state of more than one piece
KEY, OTHER = bytes(32), bytes([1]) * 32


@asynccontextmanager
async def keeper_in(vault: PromptVault) -> AsyncIterator[WorkerSlotKeeper]:
    """A keeper whose slot 0 holds the state of KEY, which is on disk."""
    form = shape(context=1 << 20, kv_cells=1 << 22)
    async with await Worker.start("layers") as worker:
        run = Run(os.urandom(16), Role.WHOLE, WIDTH)
        await open_run(worker, run, form.context, fake(Role.WHOLE, Layers(0, 4), form))
        keeper = WorkerSlotKeeper(worker, run.pipeline, lambda: 0, vault, OWN, "model", lambda: 1 << 30)
        writer = await vault.begin(OWN, keeper._name(KEY), POSITIONS, 8 * POSITIONS)
        assert writer is not None
        writer.add(os.urandom(8 * POSITIONS))
        await vault.commit(writer)
        assert await keeper.restore(0, KEY) == POSITIONS
        yield keeper


async def rest_of_a_copy(keeper: WorkerSlotKeeper) -> bytes:
    """Return what the worker still has of a copy of slot 0 after its first piece."""
    return (await keeper._read(0, 0, PIECE_BYTES, 1 << 30)).data


async def test_a_copy_that_cannot_be_written_is_released(tmp_path: Path) -> None:
    async with keeper_in(vault_in(tmp_path / "a")) as keeper:
        broken = vault_in(tmp_path / "b")
        (tmp_path / "b" / "kept").mkdir(exist_ok=True)
        (tmp_path / "b" / "kept" / OWN).write_bytes(b"")
        keeper._vault = broken
        assert await keeper.keep(0, POSITIONS, OTHER)
        await asyncio.gather(*broken._tasks)
        assert not await rest_of_a_copy(keeper)
        assert not await keeper.keep(0, POSITIONS - 1, OTHER), "the slot holds something else"
        assert not await rest_of_a_copy(keeper)
        assert keeper.most_copy_bytes() == 0


async def test_a_full_disk_leaves_no_part_and_the_next_prompt_is_kept(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    vault = vault_in(tmp_path)
    async with keeper_in(vault) as keeper:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        try:
            assert await keeper.keep(0, POSITIONS, OTHER)
            await asyncio.gather(*vault._tasks, return_exceptions=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert not list((tmp_path / "kept").glob("*/*.part"))
        assert await keeper.keep(0, POSITIONS, OTHER)
        await asyncio.gather(*vault._tasks)
        assert await vault.has(OWN, keeper._name(OTHER))


async def test_a_prompt_is_restored_while_another_waits_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = vault_in(tmp_path)
    async with keeper_in(vault) as keeper:
        monkeypatch.setattr(slot_keeper, "QUIET_S", 1000.0)
        assert await keeper.keep(0, POSITIONS, OTHER)
        async with asyncio.timeout(10):
            assert await keeper.restore(1, KEY) == POSITIONS
        monkeypatch.setattr(slot_keeper, "QUIET_S", 0.0)
        await asyncio.gather(*vault._tasks)
        assert await vault.has(OWN, keeper._name(OTHER))


async def test_a_damaged_file_gives_back_the_room_for_its_copy(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    async with keeper_in(vault) as keeper:
        path = tmp_path / "kept" / OWN / keeper._name(KEY)
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        assert await keeper.restore(1, KEY) == 0
        assert keeper.most_copy_bytes() == 0
        order = worker_orders.ReadSlot(
            request=0, pipeline=keeper._pipeline, epoch=0, slot=1, offset=0, most_bytes=1 << 30
        )
        assert (await keeper._worker.ask(order, worker_orders.SlotPiece, 10.0)).positions == 0


async def test_a_copy_is_not_written_after_all_were_deleted(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    async with keeper_in(vault) as keeper:
        assert await keeper.keep(0, POSITIONS, OTHER)
        await vault.remove_all()
        await asyncio.gather(*vault._tasks)
        assert not list((tmp_path / "kept").glob("*/*"))
        assert not await rest_of_a_copy(keeper)
