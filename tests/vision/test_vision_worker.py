"""A loaded projector: who waits for whom, what ends it, and what a question is told if a picture cannot be seen."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.core.errors import AppError, Reason
from app.inference.worker.vision import SeenPicture, VisionWorker
from app.inference.worker.worker import Worker
from tests.vision.tiny_models import pixels, png, projector, text_model

CAT = png(pixels(1))


@dataclass(frozen=True, slots=True)
class Files:
    """A tiny model and its projector."""

    model: Path
    projector: Path


@pytest.fixture(scope="module", params=["gemma3"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return made(request.param, "gemma3", tmp_path_factory.mktemp("eyes"))


def made(kind: str, family: str, folder: Path) -> Files:
    return Files(text_model(kind, family, folder / f"{kind}.gguf"), projector(kind, 32, folder / f"mmproj-{kind}.gguf"))


@asynccontextmanager
async def eyes(files: Files) -> AsyncIterator[VisionWorker]:
    worker = await VisionWorker.open(str(files.model), str(files.projector), 1, model="tiny")
    try:
        yield worker
    finally:
        await worker.close()


async def code_of(worker: VisionWorker, data: bytes) -> str:
    try:
        await worker.see(data)
    except AppError as error:
        return error.reason.code
    return ""


def workers() -> list[int]:
    return [child.pid for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.3, 0.6])
async def test_no_projector_stays_loaded_when_its_model_is_unloaded_during_a_picture(
    files: Files, seconds: float
) -> None:
    before = workers()
    async with eyes(files) as worker, asyncio.TaskGroup() as group:
        seeing = [group.create_task(code_of(worker, png(pixels(seed))), name="ask") for seed in (3, 4)]
        await asyncio.sleep(seconds)
        await worker.close()
        assert {await code for code in seeing} <= {"worker_closed", ""}
        assert await code_of(worker, png(pixels(5))) == "worker_closed"
        assert workers() == before


async def test_no_projector_stays_loaded_when_its_model_is_unloaded_while_it_loads_again(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, started = workers(), asyncio.Event()
    start = Worker.start

    async def starting(*arguments: Any, **more: Any) -> Worker:
        worker = await start(*arguments, **more)
        started.set()
        return worker

    async with eyes(files) as worker, asyncio.TaskGroup() as group:
        worker._worker.kill(Reason("worker_closed", {"worker": "eyes"}))
        await worker._worker.wait_dead()
        monkeypatch.setattr(Worker, "start", starting)
        seeing = group.create_task(code_of(worker, CAT), name="ask")
        await started.wait()
        await worker.close()
        assert await seeing == "worker_closed"
        assert workers() == before


async def test_a_client_that_leaves_keeps_no_other_from_seeing(files: Files) -> None:
    async with eyes(files) as worker, asyncio.TaskGroup() as group:
        seeing = group.create_task(worker.see(CAT), name="ask")
        await asyncio.sleep(0.01)
        seeing.cancel()
        await asyncio.wait({seeing})
        assert seeing.cancelled()
        assert isinstance(await worker.see(CAT), SeenPicture)


async def test_a_known_picture_does_not_wait_for_another_one(files: Files) -> None:
    async with eyes(files) as worker, asyncio.TaskGroup() as group:
        known = await worker.see(CAT)
        other = group.create_task(worker.see(png(pixels(2))), name="ask")
        await asyncio.sleep(0.01)
        assert await worker.see(CAT) is known
        assert not other.done()
        assert await other != known


async def test_equal_pictures_that_are_asked_for_at_once_are_seen_once(files: Files) -> None:
    async with eyes(files) as worker:
        first, second = await asyncio.gather(worker.see(CAT), worker.see(CAT))
        assert first is second


async def test_a_picture_that_the_projector_refuses_is_told_as_that_and_the_next_one_is_seen(tmp_path: Path) -> None:
    """A picture of this shape would have a height of 0 after it was shrunk to tiny tiles."""
    async with eyes(made("idefics3", "llama", tmp_path)) as worker:
        assert await code_of(worker, png(pixels(1, 2048, 40))) == "picture_failed"
        assert isinstance(await worker.see(CAT), SeenPicture)


@pytest.mark.skipif(sys.platform == "win32", reason="stops a process with a signal")
@pytest.mark.parametrize("code", ["worker_closed", "worker_hung", "worker_memory_short", "worker_crashed"])
async def test_only_what_a_file_may_cause_is_blamed_on_one(files: Files, code: str) -> None:
    async with eyes(files) as worker, asyncio.TaskGroup() as group:
        os.kill(worker._worker.pid, signal.SIGSTOP)
        seeing = group.create_task(code_of(worker, CAT), name="ask")
        while worker._worker._pending.oldest() is None:  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)
        worker._worker.kill(Reason(code, {"worker": "eyes", "seconds": 1, "how": "", "words": ""}))
        assert await seeing == ("picture_failed" if code == "worker_crashed" else code)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of one process")
async def test_the_memory_of_a_projector_is_limited_while_it_looks_at_pictures(files: Files) -> None:
    limit_bytes = 64 << 20
    worker = await VisionWorker.open(str(files.model), str(files.projector), 1, limit_bytes, model="tiny")
    try:
        await worker.see(CAT)
        limits = await asyncio.to_thread(Path(f"/proc/{worker._worker.pid}/limits").read_text)
        soft = next(line for line in limits.splitlines() if line.startswith("Max data size")).split()[3]
        assert soft.isdecimal(), "it is not lifted once the file is read"
        assert int(soft) < limit_bytes + (4 << 30)
    finally:
        await worker.close()
