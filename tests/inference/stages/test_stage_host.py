"""The lender's side: what it admits, what it passes on, how it gets its memory back."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.core.errors import AppError, DoesNotFit, Reason, Refused, StageLost
from app.core.reasons import said
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages import stage_host
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run
from app.inference.stages.stage_host import RunOrder, StageHost
from app.inference.worker.worker_errors import decode_lost
from app.network.peer.frame_channel import MemoryChannel
from backends.contract import Layers, NumberFormat, Role, Segment
from backends.frames import Frame, FrameKind, decode_frame, encode_frame
from backends.worker_orders import StageOpened
from tests.inference.pool import WIDTH, answer, fake, pool, request, shape

ROWS = bytes(NumberFormat.F16.row_bytes(WIDTH))
MIB = 1 << 20


def wanted(path: str = "fake:", needs_bytes: int = 100 * MIB) -> RunOrder:
    form = shape()
    run = Run(os.urandom(16), Role.MIDDLE, WIDTH, NumberFormat.F16)
    config = fake(Role.MIDDLE, Layers(2, 6), form, path)
    return RunOrder(run, form.context, config, needs_bytes - 20 * MIB, 10 * MIB, 10 * MIB)


def on_device(device: str, code_cache: Path, order: RunOrder | None = None) -> RunOrder:
    order = order or wanted()
    return replace(order, config=replace(order.config, device=device), code_cache=code_cache)


def step(subject: RunOrder, seq: int, *, pos: int = 0, n: int = 1, rows: bytes | None = None) -> bytes:
    rows = ROWS * n if rows is None else rows
    segments = (Segment(0, n, pos),)
    return encode_frame(Frame(FrameKind.STEP, subject.run.pipeline, 0, seq, NumberFormat.F16, segments, rows))


def children() -> list[psutil.Process]:
    return [process for process in psutil.Process().children() if _is_worker(process)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "backends" in process.cmdline()
    except psutil.Error:  # it ends in this moment
        return False


async def test_what_does_not_fit_is_refused_before_anything_is_started() -> None:
    async with StageHost(lambda: 150 * MIB, "den-pc") as lender:
        await lender.open(wanted())
        assert lender.used_bytes == 100 * MIB
        before = len(children())
        with pytest.raises(DoesNotFit) as raised:
            await lender.open(wanted())
        assert "100.0 MiB" in said(raised.value)
        assert "50.0 MiB" in said(raised.value)
        assert len(children()) == before
        await lender.open(wanted(needs_bytes=50 * MIB))
        assert len(lender.runs) == 2
    assert lender.used_bytes == 0
    assert len(children()) == before - 1


async def test_a_run_that_cannot_be_loaded_leaves_nothing() -> None:
    async with StageHost(lambda: 150 * MIB, "den-pc") as lender:
        before = len(children())
        with pytest.raises(AppError) as raised:
            await lender.open(wanted("fake:nonsense=1"))
        assert said(raised.value)
        assert lender.used_bytes == 0
        assert len(children()) == before


async def test_more_memory_than_asked_for_is_refused() -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        with pytest.raises(DoesNotFit) as raised:
            await lender.open(wanted("fake:bytes_per_layer=40000000"))
        assert raised.value.reason.code == "memory_short"
        assert lender.used_bytes == 0


async def test_a_worker_that_grows_past_what_is_lent_is_ended_and_the_host_told_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Loaded within its limit; then each step keeps 40 MiB more. It is looked at as often as it grows."""
    monkeypatch.setattr(stage_host, "LOOK_S", 0.05)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        subject = wanted(f"fake:bytes_per_step={40 * MIB}", needs_bytes=60 * MIB)
        await lender.open(subject)
        [child] = children()
        allowed = int(60 * MIB * stage_host.GROWTH) + stage_host.PROCESS_BYTES
        near, far = MemoryChannel.pair()
        group.create_task(lender.serve(subject.run.pipeline, far), name="serve")
        most, answer = 0, FrameKind.OUTPUT
        for seq in range(1, 200):
            await near.send(step(subject, seq, pos=seq - 1))
            frame = decode_frame(await near.receive())
            answer = frame.kind
            if answer is FrameKind.LOST:
                break
            most = max(most, child.memory_info().rss)
            await asyncio.sleep(0.05)
        assert answer is FrameKind.LOST
        assert decode_lost(frame.payload, "den-pc").reason.code == "worker_grew"
        psutil.wait_procs([child], timeout=30)
        assert not child.is_running()
        assert most < allowed + 14 * 40 * MIB  # seen in one of the next looks
        await near.close()


async def test_a_run_is_open_once_and_closed_once() -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        subject = wanted()
        await lender.open(subject)
        with pytest.raises(Refused):
            await lender.open(subject)
        [child] = children()
        await lender.close(subject.run.pipeline)
        await lender.close(subject.run.pipeline)
        assert not child.is_running()
        assert lender.used_bytes == 0
        with pytest.raises(Refused):
            await lender.serve(subject.run.pipeline, MemoryChannel.pair()[0])


async def test_frames_are_passed_on_as_they_are() -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        subject = wanted()
        await lender.open(subject)
        near, far = MemoryChannel.pair()
        group.create_task(lender.serve(subject.run.pipeline, far), name="serve")
        await near.send(step(subject, 1, n=3))
        first = await near.receive()
        assert decode_frame(first).kind is FrameKind.OUTPUT
        await near.close()
        near, far = MemoryChannel.pair()  # the host comes back, and asks for the last answer again
        group.create_task(lender.serve(subject.run.pipeline, far), name="serve again")
        await near.send(step(subject, 1, n=3))
        assert await near.receive() == first
        await near.send(step(subject, 2, pos=9))
        assert decode_frame(await near.receive()).kind is FrameKind.NEED_FROM
        await near.close()


BAD: list[Callable[[RunOrder], bytes]] = [
    lambda subject: b"garbage",
    lambda subject: step(subject, 1)[:-1],
    lambda subject: step(subject, 1, rows=ROWS * 2),
    lambda subject: step(subject, 1, pos=5000),
    lambda subject: step(wanted(), 1),
    lambda subject: encode_frame(Frame(FrameKind.TEXT, subject.run.pipeline, payload=b"{}")),
    lambda subject: encode_frame(Frame(FrameKind.LOST, subject.run.pipeline)),
    lambda subject: encode_frame(Frame(FrameKind.FORGET, bytes(16), segments=(Segment(0, 0, 0),))),
]


async def test_frames_that_break_the_agreement_end_the_link_and_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host hears that it is its own doing: it would send the same to the next machine."""
    monkeypatch.setattr(stage_host, "LINGER_S", 0.05)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        subject = wanted()
        await lender.open(subject)
        for make in BAD:
            near, far = MemoryChannel.pair()
            group.create_task(lender.serve(subject.run.pipeline, far), name="serve")
            await near.send(make(subject))
            stage_lost = decode_lost(decode_frame(await near.receive()).payload, "den-pc")
            assert stage_lost.reason.code == "stage_bad_step"
            with pytest.raises(AppError):
                await near.receive()
        near, far = MemoryChannel.pair()
        group.create_task(lender.serve(subject.run.pipeline, far), name="serve")
        await near.send(step(subject, 1))
        assert decode_frame(await near.receive()).kind is FrameKind.OUTPUT
        await near.close()


async def send_all(channel: MemoryChannel, frames: Iterable[bytes]) -> None:
    for frame in frames:
        await channel.send(frame)
        await asyncio.sleep(0.001)


async def test_a_host_that_floods_is_cut_off() -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        subject = wanted("fake:hang_at=1")
        await lender.open(subject)
        near, far = MemoryChannel.pair()
        group.create_task(lender.serve(subject.run.pipeline, far), name="serve")
        forget = encode_frame(Frame(FrameKind.FORGET, subject.run.pipeline, segments=(Segment(0, 0, 0),)))
        flood = itertools.chain((step(subject, seq) for seq in range(1, 30)), [forget] * 100_000)
        with pytest.raises(AppError):
            await send_all(near, flood)


@pytest.mark.long
async def test_a_host_that_does_not_read_is_cut_off() -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        subject = wanted()
        await lender.open(subject)
        near, far = MemoryChannel.pair()
        group.create_task(lender.serve(subject.run.pipeline, far), name="serve")
        with pytest.raises(AppError):
            await send_all(near, (step(subject, seq, pos=seq - 1) for seq in range(1, 1000)))


@pytest.mark.long
async def test_the_owner_takes_the_memory_back_and_the_host_is_told_why() -> None:
    async with pool(2, 4, 2, paths=["fake:seconds_per_layer=0.002"]) as built:
        future = asyncio.gather(answer(built.pipeline, request("x" * 100, 900)), return_exceptions=True)
        await asyncio.sleep(0.2)
        child = psutil.Process(built.lent_worker().pid)
        await built.lenders[0].stop_now(Reason("lend_stopped", {"machine": "lender-1"}))
        assert not child.is_running()
        assert built.lenders[0].used_bytes == 0
        [error] = await future
        assert isinstance(error, StageLost)
        assert error.reason.code == "lend_stopped"


async def test_no_work_for_a_host_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_host, "LOOK_S", 0.05)
    monkeypatch.setattr(stage_host, "ORPHAN_COMPUTE_S", 0.3)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        subject = wanted("fake:hang_at=1")
        await lender.open(subject)
        [child] = children()
        near, far = MemoryChannel.pair()
        serving = asyncio.gather(lender.serve(subject.run.pipeline, far))
        await near.send(step(subject, 1))
        async with asyncio.timeout(30):
            while not lender.busy():  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.01)
        await near.close()
        await serving
        psutil.wait_procs([child], timeout=0)
        async with asyncio.timeout(30):
            while lender.used_bytes:  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.05)
        assert not child.is_running()


async def test_layers_wait_for_a_host_s_return_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_host, "LOOK_S", 0.05)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        await lender.open(wanted())
        await asyncio.sleep(0.2)
        assert lender.used_bytes
        monkeypatch.setattr(stage_host, "KEEP_S", 0.05)
        async with asyncio.timeout(30):
            while lender.used_bytes:  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.05)


async def test_those_who_ask_at_once_do_not_get_the_same_memory() -> None:
    async with StageHost(lambda: 150 * MIB, "den-pc") as lender:
        coroutines = [lender.open(wanted()) for _ in range(3)]
        ends = await asyncio.gather(*coroutines, return_exceptions=True)
        assert sum(isinstance(end, DoesNotFit) for end in ends) == 2
        assert lender.used_bytes == 100 * MIB
        assert len(children()) == 1


async def test_a_run_that_is_asked_for_20_times_at_once_has_one_worker() -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        subject = wanted()
        ends = await asyncio.gather(*(lender.open(subject) for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(end, Refused) for end in ends) == 19
        assert len(children()) == 1
        with pytest.raises(Refused):
            await lender.serve(wanted().run.pipeline, MemoryChannel.pair()[0])


@pytest.mark.parametrize("turns", [1, 3, 300])
async def test_what_is_still_opening_can_be_ended(turns: int) -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        subject, other = wanted(), wanted()
        future = asyncio.gather(lender.open(subject), lender.open(other), return_exceptions=True)
        for _ in range(turns):
            await asyncio.sleep(0)
        assert not lender.busy()
        assert lender.unloaded_bytes > 0
        await lender.close(subject.run.pipeline)
        await lender.stop_now(Reason("lend_stopped", {"machine": "den-pc"}))
        assert lender.used_bytes == 0
        assert children() == []
        first, second = await future
        assert isinstance(first, StageLost)
        assert isinstance(second, StageLost)
        assert second.reason.code == "lend_stopped"


@pytest.mark.parametrize("with_host", [False, True])
async def test_a_worker_that_dies_on_a_device_is_reported_once_and_one_that_is_closed_is_not(
    with_host: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stage_host, "LOOK_S", 0.02)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        lost: list[str] = []
        lender.on_device_lost = lambda config, _: lost.append(config.device)
        for device, is_closed in (("Vulkan0", False), ("Vulkan1", True), ("", False)):
            order = on_device(device, tmp_path)
            await lender.open(order)
            lent = lender.get_open(order.run.pipeline)
            near, far = MemoryChannel.pair()
            if with_host:
                group.create_task(lender.serve(order.run.pipeline, far), name="serve")
                await asyncio.sleep(0.05)
            if is_closed:
                await lender.close(order.run.pipeline)
            else:
                psutil.Process(lent.running_worker().pid).kill()
                if with_host:
                    assert decode_frame(await near.receive()).kind is FrameKind.LOST
                    await near.close()
            async with asyncio.timeout(10):
                await lent.gone.wait()
        assert lost == ["Vulkan0"]


@pytest.mark.parametrize(("code", "family"), [("worker_crashed", "llama Q4_K_M"), ("worker_memory_short", "")])
async def test_a_worker_that_crashes_while_it_opens_a_stage_is_reported_with_the_family(
    code: str, family: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A lack of main memory says nothing about the family, nor about the card."""

    async def crash(*_: object) -> StageOpened:
        raise StageLost(code, worker="den-pc", how=Reason("end_closed"), words="")

    monkeypatch.setattr(stage_host, "open_run", crash)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        lost: list[tuple[str, str]] = []
        lender.on_device_lost = lambda config, family: lost.append((config.device, family))
        with pytest.raises(StageLost):
            await lender.open(replace(on_device("Vulkan0", tmp_path), family="llama Q4_K_M"))
        assert lost == ([("Vulkan0", family)] if family else [])


@pytest.mark.parametrize("with_host", [False, True])
async def test_a_device_that_ran_out_of_memory_while_it_computed_is_short_and_not_lost(
    with_host: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stage_host, "LOOK_S", 0.02)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        lost: list[str] = []
        short: list[bytes] = []
        lender.on_device_lost = lambda config, family: lost.append(config.device)
        lender.on_device_short = short.append
        order = on_device("Vulkan0", tmp_path)
        await lender.open(order)
        lent = lender.get_open(order.run.pipeline)
        near, far = MemoryChannel.pair()
        if with_host:
            group.create_task(lender.serve(order.run.pipeline, far), name="serve")
            await asyncio.sleep(0.05)
        worker = lent.running_worker()
        worker.kill(Reason("worker_card_short", {"worker": "den", "how": "", "words": "ErrorOutOfDeviceMemory"}))
        if with_host:
            assert decode_frame(await near.receive()).kind is FrameKind.LOST
            await near.close()
        async with asyncio.timeout(10):
            await lent.gone.wait()
        assert (lost, short) == ([], [order.run.pipeline])


async def test_a_worker_that_closes_a_stage_for_lack_of_memory_on_its_device_tells_it(tmp_path: Path) -> None:
    """Other failures of a living worker may be its host's fault, and say nothing about the device."""
    async with StageHost(lambda: 1 << 40, "den-pc") as lender, asyncio.TaskGroup() as group:
        lost: list[str] = []
        short: list[bytes] = []
        lender.on_device_lost = lambda config, _: lost.append(config.device)
        lender.on_device_short = short.append
        order = on_device("Vulkan0", tmp_path)
        await lender.open(order)
        lent = lender.get_open(order.run.pipeline)
        near, far = MemoryChannel.pair()
        group.create_task(lender.serve(order.run.pipeline, far), name="serve")
        await asyncio.sleep(0.05)
        words = "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"
        for code, facts in (("stage_bad_step", {"cause": "x"}), ("worker_card_short", {"words": words})):
            payload = json.dumps({"code": code, "facts": facts}).encode()
            lent.received(encode_frame(Frame(FrameKind.LOST, order.run.pipeline, 1, payload=payload)))
            assert decode_frame(await near.receive()).kind is FrameKind.LOST
        assert (lost, short) == ([], [order.run.pipeline])
        await near.close()
        await lender.close(order.run.pipeline)


async def test_beside_a_card_the_processor_has_its_own_memory(tmp_path: Path) -> None:
    """The card's memory says nothing about a run that the processor computes, and the other way round."""
    async with StageHost(lambda: 250 * MIB, "den-pc") as lender:
        beside = [150 * MIB]
        lender.lent_bytes_beside = lambda: beside[0]
        on_card = on_device("Vulkan0", tmp_path)
        await lender.open(wanted())
        await lender.open(on_card)
        assert lender.reserved(on_device=True)[0] == lender.reserved(on_device=False)[0] == 100 * MIB
        with pytest.raises(DoesNotFit) as refused:
            await lender.open(wanted())
        assert refused.value.reason.facts["free_bytes"] == 50 * MIB
        run = replace(on_card.run, pipeline=bytes(16))
        await lender.open(replace(on_card, run=run))  # 150 of the card's 250 MiB are left
        beside[0] = 0  # the owner lends only the card
        await lender.close(run.pipeline)
        with pytest.raises(DoesNotFit):
            await lender.open(wanted(needs_bytes=30 * MIB))


async def test_a_lack_of_memory_is_no_failure_of_the_device(tmp_path: Path) -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        lost: list[str] = []
        lender.on_device_lost = lambda config, _: lost.append(config.device)
        with pytest.raises(DoesNotFit):
            await lender.open(on_device("Vulkan0", tmp_path, wanted("fake:device_bytes=1000000000")))
        assert lost == []


@pytest.mark.long
async def test_the_end_of_a_run_is_told_whatever_ended_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_host, "LOOK_S", 0.05)
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        chunks: list[bytes] = []
        lender.on_ended = chunks.append
        killed, closed = wanted(), wanted()
        await lender.open(killed)
        children()[0].kill()
        await lender.open(closed)
        async with asyncio.timeout(30):
            while not chunks:  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.05)
        await lender.close(closed.run.pipeline)
        await lender.close(closed.run.pipeline)
        assert chunks == [killed.run.pipeline, closed.run.pipeline]


async def test_a_run_ended_in_the_moment_it_was_loaded_is_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async with StageHost(lambda: 1 << 40, "den-pc") as lender:
        opened = open_run

        async def loaded_and_ended(*args: Any) -> Any:
            answer = await opened(*args)
            for lent in lender._open.values():
                lent.kill(Reason("lend_stopped", {"machine": "den-pc"}))
            return answer

        monkeypatch.setattr(stage_host, "open_run", loaded_and_ended)
        with pytest.raises(StageLost) as raised:
            await lender.open(wanted())
        assert raised.value.reason.code == "lend_stopped"
        assert lender.used_bytes == 0


async def test_a_step_with_many_rows_may_take_longer_than_the_few_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture is one step. What precedes it may be only a few tokens. A worker that hangs is ended all the same."""
    monkeypatch.setattr(stage_host, "LOOK_S", 0.02)
    deadlines = Deadlines(prefill_least_s=0.2)
    async with StageHost(lambda: 1 << 40, "den-pc", deadlines=deadlines) as lender, asyncio.TaskGroup() as group:
        subject = wanted("fake:seconds_per_row=0.001,hang_at=3")  # in each of four layers
        await lender.open(subject)
        near, far = MemoryChannel.pair()
        group.create_task(lender.serve(subject.run.pipeline, far), name="serve")
        kinds = list[FrameKind]()
        for seq, (pos, n) in enumerate(((0, 5), (5, 250), (255, 1)), 1):
            await near.send(step(subject, seq, pos=pos, n=n))
            kinds.append(decode_frame(await near.receive()).kind)
        assert kinds == [FrameKind.OUTPUT, FrameKind.OUTPUT, FrameKind.LOST]
        await near.close()
