"""A worker's life: orders, frames, and every way to end, explained and survived."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest

import app
from app.core.errors import BadInput, Reason, StageLost
from app.core.reasons import said
from app.inference.worker.worker import LAST_LINES, FrameSplitter, Worker, environment
from app.machine.hardware.cores import Threads
from backends import worker_orders
from backends.frames import BadFrame, Frame, FrameKind, encode_frame
from backends.worker import confine
from testbed import tiny

VOCABULARY = worker_orders.OpenVocabulary(request=0, path="fake:")
TOKENIZE = worker_orders.Tokenize(request=0, text="hello")
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


async def ready() -> Worker:
    worker = await Worker.start("worker", threads=Threads(3))
    await worker.ask_parts(VOCABULARY, (worker_orders.VocabularyOpened, worker_orders.Pieces))
    return worker


async def test_orders_are_answered() -> None:
    async with await ready() as worker:
        answers = await asyncio.gather(*(worker.ask(TOKENIZE, worker_orders.Tokenized) for _ in range(20)))
        assert {answer.ids for answer in answers} == {(0, *(3 + byte for byte in b"hello"))}
        assert worker.resident_bytes() > 1 << 20
    assert worker.died is not None
    assert worker.died.reason.code == "worker_closed"
    assert worker.resident_bytes() == 0
    assert not psutil.pid_exists(worker.pid)


async def test_threads_are_set_on_purpose() -> None:
    async with await ready() as worker:
        assert psutil.Process(worker.pid).environ()["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize("chosen", ["", "500"])
def test_threads_that_wait_for_each_other_soon_sleep_unless_somebody_chose_otherwise(
    monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    if chosen:
        monkeypatch.setenv("GOMP_SPINCOUNT", chosen)
    assert environment(1)["GOMP_SPINCOUNT"] == (chosen or "10000")


@pytest.mark.parametrize("chosen", ["", "glibc.malloc.tcache_count=0"])
def test_the_allocator_is_told_from_the_start_unless_somebody_chose_another(
    monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if chosen:
        monkeypatch.setenv("GLIBC_TUNABLES", chosen)
    assert environment(1)["GLIBC_TUNABLES"] == (chosen or "glibc.malloc.hugetlb=1")


async def test_a_lender_s_worker_steps_back() -> None:
    async with await Worker.start("worker", low_priority=True) as worker:
        assert psutil.Process(worker.pid).nice() > psutil.Process().nice()


@pytest.mark.skipif(confine.supported_mechanisms().landlock == 0, reason="needs Landlock, of Linux 5.13")
async def test_a_worker_reads_the_files_it_was_started_for_and_no_other(tmp_path: Path) -> None:
    own, other = (tiny.llama(tmp_path / f"{name}.gguf", layers=1) for name in ("own", "other"))
    async with await Worker.start("worker", reads=[own]) as worker:
        for path, is_read in ((own, True), (other, False)):
            order = worker_orders.OpenVocabulary(request=0, path=str(path))
            asking = worker.ask_parts(order, (worker_orders.VocabularyOpened, worker_orders.Pieces))
            with nullcontext() if is_read else pytest.raises(BadInput, match="model_not_loaded"):
                await asking


@pytest.mark.long
def test_every_worker_of_the_app_is_told_what_it_may_read() -> None:
    calls = [
        call
        for file in Path(app.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Worker.start"
    ]
    assert len(calls) >= 5
    assert all("reads" in [keyword.arg for keyword in call.keywords] for call in calls)


async def test_a_refused_order_is_explained_and_harms_nobody() -> None:
    async with await ready() as worker:
        with pytest.raises(BadInput) as raised:
            await worker.ask(worker_orders.OpenVocabulary(request=0, path="fake:no=1"), worker_orders.VocabularyOpened)
        assert "fake:no=1" in said(raised.value)
        assert worker.died is None


@posix
async def test_a_killed_worker_is_explained() -> None:
    async with await ready() as worker:
        os.kill(worker.pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            why = await worker.wait_dead()
        assert "SIGKILL" in said(why)
        with pytest.raises(StageLost):
            await worker.ask(TOKENIZE, worker_orders.Tokenized)


@posix
async def test_the_end_of_a_session_ends_no_worker_before_its_node_has_left() -> None:
    """Such signals go to every process; what others compute here must first go on elsewhere."""
    async with await ready() as worker:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            os.kill(worker.pid, number)
        await worker.ask(TOKENIZE, worker_orders.Tokenized)
        assert worker.died is None
    assert not psutil.pid_exists(worker.pid)


@posix
async def test_who_waits_for_an_answer_is_told_of_the_death() -> None:
    async with await ready() as worker:
        os.kill(worker.pid, signal.SIGSTOP)
        future = asyncio.gather(worker.ask(TOKENIZE, worker_orders.Tokenized))
        await asyncio.sleep(0.05)
        os.kill(worker.pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            with pytest.raises(StageLost, match="worker_died"):
                await future


@posix
async def test_a_worker_that_does_not_answer_is_killed() -> None:
    async with await ready() as worker:
        os.kill(worker.pid, signal.SIGSTOP)
        with pytest.raises(StageLost) as raised:
            await worker.ask(TOKENIZE, worker_orders.Tokenized, within_s=0.3)
        assert raised.value.reason.code == "worker_hung"
        assert not psutil.pid_exists(worker.pid)


@posix
async def test_a_stopped_worker_is_closed_all_the_same() -> None:
    worker = await ready()
    os.kill(worker.pid, signal.SIGSTOP)
    await worker.close(grace_s=0.2)
    assert not psutil.pid_exists(worker.pid)


async def test_the_first_reason_for_a_kill_is_the_one_told() -> None:
    async with await ready() as worker:
        worker.kill(Reason("lend_host_gone"))
        worker.kill(Reason("worker_hung", {"worker": "w", "seconds": 1}))
        assert (await worker.wait_dead()).reason == Reason("lend_host_gone")


async def test_what_it_said_last_is_kept() -> None:
    """A frame that is none makes it stop; its words about that are in the sentence."""
    async with await ready() as worker:
        worker.send(b"PH\x07" + bytes(100))
        why = await worker.wait_dead()
        assert "code 3" in said(why)
        assert "no frame of ours" in said(why)
        assert len(worker.stderr_tail().splitlines()) <= LAST_LINES


async def test_a_worker_that_says_nonsense_is_ended() -> None:
    worker = await ready()
    worker.pipe_data_received(1, b"this is what a chatty library prints, and no frame of ours")
    why = await worker.wait_dead()
    assert why.reason.code == "worker_garbled"
    worker = await ready()
    worker.pipe_data_received(1, encode_frame(Frame(FrameKind.TEXT, payload=b'{"order":"eval"}')))
    assert (await worker.wait_dead()).reason.code == "worker_garbled"


async def test_cancelling_who_closes_leaves_no_process() -> None:
    worker = await ready()
    if sys.platform != "win32":
        os.kill(worker.pid, signal.SIGSTOP)
    closing = asyncio.gather(worker.close(grace_s=30))
    await asyncio.sleep(0.05)
    closing.cancel()
    async with asyncio.timeout(30):
        await worker.wait_dead()
    assert not psutil.pid_exists(worker.pid)


def test_frames_are_cut_at_every_border() -> None:
    frames = [encode_frame(Frame(FrameKind.TEXT, payload=b"x" * size)) for size in (0, 1, 100, 5000)]
    stream = b"".join(frames)
    for size in (1, 7, 39, 40, 41, 500, len(stream)):
        cutter, result = FrameSplitter(), []
        for start in range(0, len(stream), size):
            result += cutter.feed(stream[start : start + size])
        assert result == frames
    assert FrameSplitter().feed(frames[2]) == [frames[2]]
    with pytest.raises(BadFrame):
        FrameSplitter().feed(b"x" * 40)


async def test_a_start_that_is_given_up_leaves_no_process_and_logs_no_fault() -> None:
    unseen: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, subject: unseen.append(str(subject)))
    children = set(psutil.Process().children())
    for turns in range(12):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(Worker.start("worker"), name="start")
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
        if not task.cancelled():  # it was quicker
            await task.result().close()
    await asyncio.sleep(0.1)
    assert not unseen
    assert not set(psutil.Process().children()) - children


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
async def test_an_order_to_a_worker_that_the_system_stopped_ends_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the simulation, seed 66: until the five minutes that a load may take were over."""
    monkeypatch.setattr("app.inference.worker.worker.STILL_S", 1.0)
    async with await Worker.start("a worker") as worker:
        os.kill(worker.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(StageLost) as raised:
            await worker.ask(worker_orders.Tokenize(request=0, text="x"), worker_orders.Tokenized, 60.0)
        assert raised.value.reason.code == "worker_hung"
        assert 1.0 <= time.monotonic() - began < 20.0
