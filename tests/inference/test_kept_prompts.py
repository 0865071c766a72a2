"""Prompts that are kept on disk: a new worker goes on from them, and whatever is wrong with them costs only time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.inference.pipeline.kept_prompts import LEAST_TOKENS, ModelPrompts, PromptIndex
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import FREE_S, PipelineConfig
from app.inference.pipeline.sequence import Request
from app.inference.stages.slot_keeper import WorkerSlotKeeper, state_identity
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker.worker import Worker
from app.machine.kept_files import KeptFiles
from app.machine.paths import Home
from app.machine.prompt_vault import OWN, PromptVault
from backends.contract import FamilyTraits, Layers, NumberFormat, Role
from backends.worker_orders import SlotPiece
from tests.inference.pool import WIDTH, answer, cuts, fake, request, shape

SIZES = (2, 3, 3)
DOCUMENT = [3 + n * n % 97 for n in range(700)]
QUESTIONS = [[50, 51, 52], [60, 61, 62, 63]]


def vault_in(folder: Path, chosen: Callable[[], int | None] = lambda: None) -> PromptVault:
    home = Home.at(folder).create()
    return PromptVault(home, lambda: True, chosen)


@asynccontextmanager
async def restarted(
    vault: PromptVault, form: PipelineConfig | None = None, model: str = "model", made_by: str = ""
) -> AsyncIterator[Pipeline]:
    """A pipeline in a new worker that keeps its prompts in the vault, as after a restart of the node."""
    form, stages = form or shape(), []
    async with await Worker.start("layers") as worker:
        for role, layers in cuts(*SIZES):
            run, config = Run(os.urandom(16), role, WIDTH), fake(role, layers, form)
            await open_run(worker, run, form.context, config)
            stage = own_stage(worker, run, f"{layers}", "host")
            identity = state_identity(model + made_by, run.number, config)
            stage.keeper = WorkerSlotKeeper(worker, run.pipeline, lambda: 0, vault, OWN, identity, lambda: 1 << 30)
            stages.append(stage)
        async with Pipeline(stages, form, prompts=ModelPrompts(PromptIndex(vault), model)) as pipeline:
            yield pipeline


async def ask(pipeline: Pipeline, ids: list[int], chat: str = "one", scope: str = "owner") -> tuple[list[int], int]:
    """Return the answer's tokens, and how many of the prompt's were remembered."""
    said, finish = await answer(pipeline, replace(request(ids, 8, conversation=chat), kept_for=scope))
    return said, finish.figures.reused_tokens


async def until_kept(vault: PromptVault, n_files: int = 4) -> None:
    """Wait for the stages' files and the list of prompts."""
    async with asyncio.timeout(20):
        while len([path for path in vault._files._folder.glob("*/*") if not path.suffix]) < n_files:  # noqa: ASYNC110  files tell nobody
            await asyncio.sleep(0.05)
    await asyncio.gather(*vault._tasks)


async def fresh(ids: list[int], tmp_path: Path) -> list[int]:
    async with restarted(vault_in(tmp_path / "fresh")) as pipeline:
        return (await ask(pipeline, ids, scope=""))[0]


@pytest.mark.parametrize("recurrent", [False, True])
async def test_a_chat_goes_on_after_a_restart(recurrent: bool, tmp_path: Path) -> None:
    form, first = shape(recurrent=recurrent), vault_in(tmp_path)
    async with restarted(first, form) as pipeline:
        said, reused = await ask(pipeline, DOCUMENT)
        assert reused == 0
        await until_kept(first)
    second = DOCUMENT + said + QUESTIONS[0]
    async with restarted(vault_in(tmp_path), form) as pipeline:
        again, reused = await ask(pipeline, second)
    assert reused > 640
    assert again == await fresh(second, tmp_path)


async def test_another_chat_about_the_same_document_starts_at_once(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT + QUESTIONS[0])
        await until_kept(vault)
        other = DOCUMENT + QUESTIONS[1]
        said, reused = await ask(pipeline, other, chat="two")
        assert reused >= 640
        assert said == await fresh(other, tmp_path)
        await asyncio.sleep(1.0)
    assert len(list((tmp_path / "kept" / OWN).iterdir())) == 4  # it added too little to be kept as well


async def test_nobody_else_finds_what_one_has_kept(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT)
        await until_kept(vault)
        for scope in ("", "machine two", "program two"):
            assert (await ask(pipeline, DOCUMENT, chat=f"of {scope}", scope=scope))[1] == 0


async def test_nothing_is_kept_of_guests_of_short_prompts_or_when_it_is_off(tmp_path: Path) -> None:
    home = Home.at(tmp_path).create()
    is_on = True
    vault = PromptVault(home, lambda: is_on, lambda: None)
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT, scope="")
        await ask(pipeline, DOCUMENT[: LEAST_TOKENS - 20], chat="short")
        is_on = False
        await ask(pipeline, DOCUMENT, chat="off")
        await asyncio.sleep(2.0)
    assert not home.kept.exists() or not list(home.kept.rglob("*"))


@pytest.mark.parametrize("where", [0, 40, 700, -1])
async def test_a_damaged_file_is_computed_again(where: int, tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT)
        await until_kept(vault)
    for file in (tmp_path / "kept" / OWN).iterdir():
        data = bytearray(file.read_bytes())
        data[where] ^= 1
        if file.stat().st_size < 20_000 and len(data) > 5000:  # the states; the list of prompts stays
            file.write_bytes(data)
    async with restarted(vault_in(tmp_path)) as pipeline:
        said, _ = await ask(pipeline, DOCUMENT)
        assert said == await fresh(DOCUMENT, tmp_path)


async def test_a_file_in_another_files_place_does_not_open(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT)
        await until_kept(vault)
    files = sorted((tmp_path / "kept" / OWN).iterdir())
    contents = [file.read_bytes() for file in files]
    for file, data in zip(files, contents[1:] + contents[:1], strict=True):
        file.write_bytes(data)
    async with restarted(vault_in(tmp_path)) as pipeline:
        said, reused = await ask(pipeline, DOCUMENT)
    assert reused == 0
    assert said == await fresh(DOCUMENT, tmp_path)


async def test_another_engine_or_another_key_does_not_use_it(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT)
        await until_kept(vault)
    async with restarted(vault_in(tmp_path), made_by="another engine") as pipeline:
        assert (await ask(pipeline, DOCUMENT))[1] == 0
    stranger = vault_in(tmp_path)
    stranger._key = bytes(32)
    async with restarted(stranger) as pipeline:
        assert (await ask(pipeline, DOCUMENT))[1] == 0


def test_the_limit_holds_and_what_was_used_last_stays(tmp_path: Path) -> None:
    files, key = KeptFiles(tmp_path), bytes(32)
    names = [f"{number:064x}" for number in range(5)]
    for age, name in enumerate(names):
        writer = files.write(OWN, name, key, 10, 1000, 4000)
        writer.add(bytes(1000))
        writer.commit()
        used_at = time.time() - 100 + age
        os.utime(tmp_path / OWN / name, times=(used_at, used_at))
        assert files.used_bytes() <= 4000
    assert [files.has(OWN, name) for name in names] == [False, False, True, True, True]
    with pytest.raises(OSError, match="larger"):
        files.write(OWN, "f" * 64, key, 10, 5000, 4000)
    half = files.write(OWN, "e" * 64, key, 10, 1000, 4000)
    half.add(bytes(500))
    with pytest.raises(OSError, match="incomplete"):
        half.commit()
    assert not files.has(OWN, "e" * 64)


def test_a_state_whose_keys_depend_on_the_context_belongs_to_its_length() -> None:
    short = fake(Role.WHOLE, Layers(0, 4), shape())
    long = replace(short, kv_cells=2 * short.kv_cells)
    assert state_identity("m", NumberFormat.F16, short) == state_identity("m", NumberFormat.F16, long)
    by_context = FamilyTraits(by_context=True)
    short, long = replace(short, traits=by_context), replace(long, traits=by_context)
    assert state_identity("m", NumberFormat.F16, short) != state_identity("m", NumberFormat.F16, long)
    apart = replace(long, apart=True, slots=2)
    assert state_identity("m", NumberFormat.F16, short) == state_identity("m", NumberFormat.F16, apart)


class Slow:
    """A keeper that copies nothing until it may."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def keep(self, slot: int, positions: int, key: bytes) -> bool:
        self.has_begun.set()
        await self.may_end.wait()
        return False

    async def restore(self, slot: int, key: bytes) -> int:
        return 0


async def test_a_slot_that_is_being_copied_still_takes_its_cells(tmp_path: Path) -> None:
    async with restarted(vault_in(tmp_path), shape(slots=2, kv_cells=1024)) as pipeline:
        await ask(pipeline, DOCUMENT)
        slow = Slow()
        for stage in pipeline._stages:
            stage.keeper = slow
        await slow.has_begun.wait()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(ask(pipeline, [9, *DOCUMENT], chat="two", scope=""), name="ask")
            await asyncio.sleep(0.5)
            has_begun = asking.done() or pipeline._work.n_running
            slow.may_end.set()
            await asking
        assert not has_begun, "1,400 positions do not fit into 1,024 cells"


async def test_what_an_answer_left_half_computed_delays_neither_keeping_nor_restoring(tmp_path: Path) -> None:
    vault, seen = vault_in(tmp_path), list[int]()

    def is_third(token: int) -> bool:
        seen.append(token)
        return len(seen) % 3 == 0

    def ending(ids: list[int], chat: str) -> Request:
        return replace(request(ids, 8, conversation=chat), kept_for="owner", ends_with=is_third)

    async with restarted(vault) as pipeline:
        await answer(pipeline, ending(DOCUMENT + QUESTIONS[0], "one"))
        began = time.monotonic()
        await until_kept(vault)
        assert time.monotonic() - began < FREE_S
        await answer(pipeline, ending(QUESTIONS[1], "two"))
        began = time.monotonic()
        _, finish = await answer(pipeline, ending(DOCUMENT + QUESTIONS[1], "three"))
        assert time.monotonic() - began < FREE_S
        assert finish.figures.reused_tokens >= 640


async def test_others_are_answered_while_a_prompt_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = vault_in(tmp_path)
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT)
        await until_kept(vault)
    has_begun, may_go_on = asyncio.Event(), asyncio.Event()
    restore = WorkerSlotKeeper.restore

    async def slow(keeper: WorkerSlotKeeper, slot: int, key: bytes) -> int:
        has_begun.set()
        await may_go_on.wait()
        return await restore(keeper, slot, key)

    monkeypatch.setattr(WorkerSlotKeeper, "restore", slow)
    async with restarted(vault_in(tmp_path)) as pipeline, asyncio.TaskGroup() as group:
        document = group.create_task(ask(pipeline, DOCUMENT), name="document")
        await has_begun.wait()
        async with asyncio.timeout(20):
            said, _ = await ask(pipeline, QUESTIONS[0] * 9, chat="short", scope="")
        assert not document.done()
        may_go_on.set()
        answered, reused = await document
    assert said
    assert reused >= 640
    assert answered == await fresh(DOCUMENT, tmp_path)


async def test_an_answer_that_nobody_waits_for_is_not_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault, n_restored = vault_in(tmp_path), list[int]()
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT)
        await until_kept(vault)
    has_begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(keeper: WorkerSlotKeeper, slot: int, key: bytes) -> int:
        n_restored.append(slot)
        has_begun.set()
        await may_go_on.wait()
        return 0

    monkeypatch.setattr(WorkerSlotKeeper, "restore", slow)
    async with restarted(vault_in(tmp_path)) as pipeline, asyncio.TaskGroup() as group:
        first = group.create_task(ask(pipeline, DOCUMENT), name="first")
        await has_begun.wait()
        n_before = len(n_restored)
        second = group.create_task(ask(pipeline, DOCUMENT + QUESTIONS[0], chat="two"), name="second")
        await asyncio.sleep(0.3)
        second.cancel()
        await asyncio.sleep(0.1)
        may_go_on.set()
        await first
        said, _ = await ask(pipeline, QUESTIONS[1], chat="three", scope="")
    assert said
    assert len(n_restored) <= len(SIZES) + n_before  # the stages of the first, and none of the second


async def test_closing_the_vault_does_not_wait_for_a_busy_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, is_stuck, has_begun = vault_in(tmp_path), False, asyncio.Event()
    read = WorkerSlotKeeper._read

    async def stuck(keeper: WorkerSlotKeeper, slot: int, epoch: int, offset: int, most_bytes: int) -> SlotPiece:
        if is_stuck:
            await asyncio.sleep(600)
        return await read(keeper, slot, epoch, offset, most_bytes)

    async def begin(*_: object) -> None:
        has_begun.set()
        await asyncio.sleep(600)

    monkeypatch.setattr(WorkerSlotKeeper, "_read", stuck)
    monkeypatch.setattr(vault, "begin", begin)  # a slow disk
    async with restarted(vault) as pipeline:
        await ask(pipeline, DOCUMENT)
        await asyncio.wait_for(has_begun.wait(), 20)
        is_stuck = True
        began = time.monotonic()
        await vault.close()
        assert time.monotonic() - began < 10
