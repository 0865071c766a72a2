"""A stage behind a channel: what its time is measured from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from app.core.errors import Unreachable
from app.inference.pipeline.pipeline import WATCH_S, Pipeline
from app.inference.pipeline.speed_measurement import Deadlines, StageMeter
from app.inference.stages.stage_client import Run, StageClient, Step
from app.inference.stages.stage_connection import ChannelLink
from app.node.placement.lenders import ASK_SECONDS
from backends.contract import NumberFormat, Role, Segment
from backends.frames import SEGMENT, Frame, FrameKind, decode_frame, encode_frame
from tests.inference.pool import shape
from tests.simulation.virtual_loop import VirtualLoop, run, running

WIDTH, WAITS_S, COMPUTES_S = 4, 1.0, 0.02
RUN = Run(bytes(16), Role.MIDDLE, WIDTH, NumberFormat.F32, 1)
DOUBTS = (("attic", None), ("study", None), ("attic", 0.5), ("study", 1.5))  # or heard again after


class Lender:
    """Carries out one thing after the other: a FORGET slowly, a step quickly."""

    def __init__(self) -> None:
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.told_s: list[float] = []  # when it began to say each answer

    async def send(self, frame: bytes) -> None:
        self._frames.put_nowait(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        while True:
            decoded = decode_frame(await self._frames.get())
            done = decoded.kind is FrameKind.FORGET
            await asyncio.sleep(WAITS_S if done else COMPUTES_S)
            kind, rows = (FrameKind.DONE, b"") if done else (FrameKind.OUTPUT, decoded.payload)
            self.told_s.append(time.monotonic())
            to(encode_frame(Frame(kind, bytes(16), 1, decoded.seq, NumberFormat.F32, decoded.segments, rows)))

    async def close(self) -> None:
        return None


async def test_a_step_behind_something_else_is_not_charged_with_its_time() -> None:
    """Otherwise a machine that is told to forget a lot appears slow, and gets fewer answers."""
    lender = Lender()
    stage = StageClient(RUN, ChannelLink(lender), "attic")
    table = SEGMENT.pack(0, 1, 7)
    step = Step(table, b"", 1, 1, False, bytes(RUN.number.row_bytes(WIDTH)))
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(stage.listen())
        began = time.monotonic()
        await stage.forget(0, 7)
        await stage.forward(step)
        assert time.monotonic() - began >= WAITS_S
        figures = stage.figures()
        assert figures.steps == 1
        after_that_s = time.monotonic() - lender.told_s[0]  # however long this computer took for it
        assert COMPUTES_S * 0.9 <= figures.busy_s <= after_that_s
        listening.cancel()


class Fleeting(Lender):
    """Breaks at once."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        raise Unreachable("channel_closed", name="attic")

    async def close(self) -> None:
        self.is_closed = True


class SlowWay:
    """A way back that takes its time."""

    def __init__(self) -> None:
        self.channel, self.asked, self.may_open = Fleeting(), asyncio.Event(), asyncio.Event()

    async def reopen(self) -> Fleeting:
        self.asked.set()
        await self.may_open.wait()
        return self.channel

    async def ask(self) -> None: ...

    def computes(self) -> bool:
        return False


async def test_a_channel_that_opens_after_the_end_is_closed() -> None:
    way = SlowWay()
    stage = StageClient(RUN, ChannelLink(first := Fleeting(), way), "attic")
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(stage.listen())
        await way.asked.wait()
        await stage.close()
        way.may_open.set()
        await asyncio.wait({listening}, timeout=30)
        assert listening.done()
    assert first.is_closed
    assert way.channel.is_closed


class Holding(Lender):
    """Takes what is sent, and says nothing by itself."""

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("role", [Role.MIDDLE, Role.WHOLE])
async def test_an_answer_whose_forerunner_went_astray_waits_for_its_turn(role: Role) -> None:
    """Found by the simulation, seed 8096: a whole model elsewhere was given up after a break of its connection."""
    run = Run(bytes(16), role, WIDTH, NumberFormat.F32, 1)
    stage = StageClient(run, ChannelLink(Holding()), "attic")
    table = SEGMENT.pack(0, 1, 7)
    rows = b"\x05\0\0\0" if run.samples else bytes(run.number.row_bytes(WIDTH))
    step = Step(table, table if run.samples else b"", 1, 1, False, rows)
    kind, number = (FrameKind.SAMPLED, NumberFormat.IDS) if run.samples else (FrameKind.OUTPUT, run.number)

    def answer(seq: int) -> bytes:
        segments = (Segment(0, 1, 7),)
        return encode_frame(Frame(kind, bytes(16), 1, seq, number, segments, rows))

    async with asyncio.TaskGroup() as group:
        steps = [group.create_task(stage.forward(step)) for _ in range(2)]
        async with asyncio.timeout(30):
            while len(stage.unanswered()) < len(steps):  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.001)
        assert [decode_frame(frame).seq for frame in stage.unanswered()] == [1, 2]
        assert [stage.received(answer(seq)) for seq in (2, 1, 2)] == [False, True, True]
        assert [bytes((await step).rows) for step in steps] == [rows, rows]
    assert stage.lost is None


class SilentPeer:
    """A peer that does not answer, as its link is as silent as its channel was. A new channel would open."""

    def __init__(self) -> None:
        self.reopened_s: list[float] = []

    async def reopen(self) -> Holding:
        self.reopened_s.append(time.monotonic())
        return Holding()

    async def ask(self) -> None:
        await asyncio.sleep(ASK_SECONDS)

    def computes(self) -> bool:
        return False


def test_a_path_that_heals_after_two_seconds_is_found_at_once() -> None:
    """The client asked whether the lender is slow half a second before the step's deadline, not at it."""

    async def story() -> None:
        peer = SilentPeer()
        stage = StageClient(RUN, ChannelLink(Holding(), peer), "attic")
        table = SEGMENT.pack(0, 1, 7)
        step = Step(table, b"", 1, 1, False, bytes(RUN.number.row_bytes(WIDTH)))
        stage._meter.add(0.02, 0.0, 1, False)  # it was quick so far
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(stage.listen())
            sent_s = time.monotonic()
            waiting = group.create_task(stage.forward(step))
            while not peer.reopened_s:  # as the pipeline looks
                await asyncio.sleep(WATCH_S)
                stage.check(time.monotonic())
            assert 2.0 <= peer.reopened_s[0] - sent_s <= 2.0 + WATCH_S
            waiting.cancel()
            listening.cancel()

    loop = VirtualLoop(lambda *_: None)
    with running(loop):
        run(loop, story())


class Waking(Holding):
    """A channel to a worker that stands still until that time, and then does its work."""

    def __init__(self, at_s: float) -> None:
        super().__init__()
        self._at_s = at_s

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        await asyncio.sleep(self._at_s - time.monotonic())
        await Lender.deliver(self, to)


class StandsStill(SilentPeer):
    """Its node gives a new channel at once; the worker behind it stands still for four seconds in all."""

    def __init__(self, at_s: float) -> None:
        super().__init__()
        self._at_s = at_s

    async def reopen(self) -> Waking:
        self.reopened_s.append(time.monotonic())
        return Waking(self._at_s)


def test_a_new_channel_alone_is_no_sign_of_life() -> None:
    """Otherwise a reader was told "attic is back after 2 s", and nothing came for two more."""
    result: list[tuple[float, float | None]] = []

    async def story() -> None:
        began = time.monotonic()
        peer = StandsStill(began + 4.0)
        stage = StageClient(RUN, ChannelLink(Holding(), peer), "attic")
        stage.on_silence = lambda _, seconds: result.append((time.monotonic() - began, seconds))
        step = Step(SEGMENT.pack(0, 1, 7), b"", 1, 1, False, bytes(RUN.number.row_bytes(WIDTH)))
        stage._meter.add(0.02, 0.0, 1, False)  # it was quick so far
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(stage.listen())
            waiting = group.create_task(stage.forward(step))
            while not waiting.done():
                await asyncio.sleep(WATCH_S)
                stage.check(time.monotonic())
            listening.cancel()
        assert len(peer.reopened_s) == 1

    loop = VirtualLoop(lambda *_: None)
    with running(loop):
        run(loop, story())
    [(doubted_s, nothing), (eased_s, after_s)] = result
    assert nothing is None
    assert 2.0 <= doubted_s <= 2.0 + WATCH_S
    assert eased_s == after_s == pytest.approx(4.0 + COMPUTES_S)


def test_while_one_is_awaited_another_that_is_back_is_not_all_of_it() -> None:
    """The window and the command line show the last notice."""
    pipeline = Pipeline((), shape())
    shown: list[tuple[str, str] | None] = []
    for name, after in DOUBTS:
        pipeline._report_silence(name, after)
        news = pipeline.news
        shown.append((news.state, news.machine) if news else None)
    attic, study = ("reconnecting", "attic"), ("reconnecting", "study")
    assert shown == [attic, study, study, None]


def test_a_silence_does_not_let_the_next_one_last_longer() -> None:
    """Its step took two seconds, of which nothing was computing: the limit of later steps stays what it was."""
    meter, limits = StageMeter("attic"), Deadlines()
    for _ in range(5):
        meter.add(0.02, 0.0, 1, False)
    meter.add(2.1, 0.0, 1, False)
    assert limits.of_step(meter, 1, False) == limits.decode_least_s
    for _ in range(5):  # it has become slow
        meter.add(2.1, 0.0, 1, False)
    assert limits.of_step(meter, 1, False) > 8.0
