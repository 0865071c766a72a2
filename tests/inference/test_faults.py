"""Stages that die, hang, fail or talk nonsense: explained, and survived by the node."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import aclosing

import psutil
import pytest

from app.core.errors import StageLost
from app.core.reasons import said
from app.inference.pipeline.sequence import Token
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages import stage_connection
from app.inference.stages.stage_client import FrameChannel, Run
from app.inference.stages.stage_connection import lent_stage
from app.network.peer.frame_channel import MemoryChannel
from backends.contract import Role, Segment
from backends.frames import Frame, FrameKind, decode_frame, encode_frame
from tests.inference.pool import Pool, answer, pool, request, shape

QUICK = Deadlines(decode_least_s=0.5, decode_most_s=0.6, prefill_least_s=0.8, first_s=1.0, dead_s=0.5)
SLOW = "fake:seconds_per_layer=0.002"
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


async def told(built: Pool, n_answers: int = 3) -> list[StageLost]:
    """Return how several answers end that are in progress when something happens."""
    ended = await asyncio.gather(
        *(answer(built.pipeline, request("x" * 100, 900)) for _ in range(n_answers)), return_exceptions=True
    )
    return [error for error in ended if isinstance(error, StageLost)]


async def soon(subject: Callable[[], object]) -> float:
    """Do it while answers are under way; returns when it was done."""
    await asyncio.sleep(0.2)
    subject()
    return time.monotonic()


@pytest.mark.many(keep=1)
@posix
@pytest.mark.parametrize("owner", ["host", "lender"])
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_stage_that_dies_or_hangs_ends_its_answers_explained(owner: str, sign: signal.Signals) -> None:
    async with pool(2, 4, 2, paths=[SLOW], deadlines=QUICK, form=shape(slots=2)) as built:
        worker = built.host if owner == "host" else built.lent_worker()
        errors, done_at = await asyncio.gather(told(built), soon(lambda: os.kill(worker.pid, sign)))
        took = time.monotonic() - done_at
        assert len(errors) == 3
        assert took < 20  # on a busy machine; usually less than one
        assert all(error is built.pipeline.lost for error in errors)
        assert said(errors[0])
        with pytest.raises(StageLost):
            await answer(built.pipeline, request("x", 1))
        if owner == "host" and sign == signal.SIGSTOP:
            async with asyncio.timeout(30):
                await worker.wait_dead()
            assert not psutil.pid_exists(worker.pid)
    async with pool(2, 4, 2) as again:
        assert len((await answer(again.pipeline, request("hello", 5)))[0]) == 5


@pytest.mark.parametrize(
    ("option", "words"),
    [("error_at=5", "asked to fail"), ("die_at=5", "crashed"), ("hang_at=5", "did not respond for")],
)
async def test_a_lender_that_fails_says_why(option: str, words: str) -> None:
    paths = ["fake:", f"fake:{option}", "fake:"]
    async with pool(2, 4, 2, paths=paths, deadlines=deadlines_for(option)) as built:
        for stage in built.pipeline._stages:
            # the lender's own node sees it first: the host waits a little longer, also for its own runs
            stage._deadlines = Deadlines()
        [error] = await told(built, 1)
        assert words in said(error)


def deadlines_for(option: str) -> Deadlines:
    """Short ones only where something hangs: on a busy computer what is to fail otherwise may be slow to do so."""
    return QUICK if option.startswith("hang") else Deadlines()


@pytest.mark.many(keep=1)
@pytest.mark.parametrize(
    ("option", "code"), [("error_at=5", "stage_failed"), ("die_at=5", "worker_crashed"), ("hang_at=5", "worker_hung")]
)
async def test_a_run_of_the_host_that_fails_says_why(option: str, code: str) -> None:
    paths = [f"fake:{option}", "fake:"]
    async with pool(2, 4, 2, paths=paths, deadlines=deadlines_for(option)) as built:
        for stage in built.pipeline._stages[1:]:
            stage._deadlines = Deadlines()  # only the first one fails
        [error] = await told(built, 1)
        assert error.reason.code == code


@pytest.mark.long
async def test_a_run_that_waits_for_another_on_its_machine_is_not_taken_for_hung() -> None:
    """The host's last run gets no turn while its first computes a long chunk of somebody's prompt."""
    quick = Deadlines(0.6, 0.6, prefill_least_s=20.0, dead_s=0.6)
    paths = ["fake:seconds_per_row=0.04", "fake:"]
    async with pool(1, 6, 1, paths=paths, deadlines=quick) as built:
        talking = asyncio.gather(answer(built.pipeline, request("x", 12)))
        await asyncio.sleep(0.2)
        assert len((await answer(built.pipeline, request("y" * 64, 4)))[0]) == 4
        [(ids, _)] = await talking
        assert len(ids) == 12


@pytest.mark.many(keep=1)
@posix
@pytest.mark.parametrize("seed", range(4))
async def test_kills_at_any_moment_end_every_answer_with_true_words(seed: int) -> None:
    chance = random.Random(seed)

    async def listen(built: Pool) -> tuple[list[int], StageLost | None]:
        ids: list[int] = []
        try:
            async with aclosing(built.pipeline.generate(request("hello", 300))) as stream:
                async for item in stream:
                    ids += [item.id] if isinstance(item, Token) else []
        except StageLost as error:
            return ids, error
        return ids, None

    async with pool(2, 4, 2, form=shape(slots=3)) as built:
        victim = chance.choice((built.host, built.lent_worker())).pid
        hearing = asyncio.gather(*(listen(built) for _ in range(5)))
        await asyncio.sleep(chance.random() * 0.4)
        os.kill(victim, signal.SIGKILL)
        async with asyncio.timeout(30):
            heard = await hearing
    for ids, error in heard:
        assert ids == max((ids for ids, _ in heard), key=len)[: len(ids)]
        assert error is not None or len(ids) == 300


async def test_a_broken_channel_ends_the_answers_at_once() -> None:
    async with pool(2, 4, 2, paths=[SLOW]) as built:
        closing = asyncio.gather(close_soon(built.channels[0]))
        [error] = await told(built, 1)
        assert error.reason.code == "stage_unreachable"
        assert "lender-1" in said(error)
        await closing


async def close_soon(channel: FrameChannel) -> None:
    await asyncio.sleep(0.1)
    await channel.close()


class Twisted:
    """A channel that changes one answer of a lender."""

    def __init__(self, inner: FrameChannel, twist: Callable[[Frame], bytes]) -> None:
        self._inner, self._twist, self._count = inner, twist, 0

    async def send(self, frame: bytes) -> None:
        await self._inner.send(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        await self._inner.deliver(lambda data: to(self._twisted(data)))

    def _twisted(self, data: bytes) -> bytes:
        self._count += 1
        return self._twist(decode_frame(data)) if self._count == 3 else data

    async def close(self) -> None:
        await self._inner.close()


def changed(**fields: object) -> Callable[[Frame], bytes]:
    names = ("kind", "pipeline", "epoch", "seq", "number", "segments", "payload")
    return lambda frame: encode_frame(Frame(**{name: getattr(frame, name) for name in names} | fields))


@pytest.mark.many(keep=3)
@pytest.mark.parametrize(
    ("twist", "code"),
    [
        (lambda _: b"nonsense", "stage_garbled"),
        (changed(pipeline=bytes(16)), "stage_garbled"),
        (
            changed(pipeline=bytes(16), kind=FrameKind.LOST, payload=b'{"code":"lend_stopped","facts":{}}'),
            "stage_garbled",
        ),
        (changed(seq=99), "stage_garbled"),
        (changed(epoch=7), "stage_garbled"),
        (changed(payload=b"short"), "stage_garbled"),
        (changed(segments=(Segment(3, 1, 7),)), "stage_garbled"),
        (changed(kind=FrameKind.NEED_FROM, payload=b""), "stage_out_of_step"),
        (changed(kind=FrameKind.STALE, payload=b""), "stage_out_of_step"),
        (changed(kind=FrameKind.LOST, payload=b"{}"), "stage_lost"),
        (changed(kind=FrameKind.LOST, payload=b'{"code":"no","facts":{}}'), "stage_lost"),
        (changed(kind=FrameKind.LOST, payload=b'{"code":"lend_stopped","facts":{}}'), "lend_stopped"),
        (changed(kind=FrameKind.LOST, payload=b'{"code":"worker_hung","facts":{}}'), "stage_lost"),
    ],
)
async def test_a_lender_that_answers_nonsense_is_dropped(twist: Callable[[Frame], bytes], code: str) -> None:
    async with pool(2, 4, 2, wrap=lambda channel: Twisted(channel, twist)) as built:
        [error] = await told(built, 1)
        assert error.reason.code == code
        assert said(error)


async def test_what_comes_late_or_twice_changes_nothing() -> None:
    class Echo(Twisted):
        """Says everything twice."""

        async def deliver(self, to: Callable[[bytes], None]) -> None:
            def twice(data: bytes) -> None:
                to(data)
                to(data)

            await self._inner.deliver(twice)

    async with pool(2, 4, 2) as plain:
        expected, _ = await answer(plain.pipeline, request("hello", 20))
    async with pool(2, 4, 2, wrap=lambda channel: Echo(channel, encode_frame)) as built:
        assert (await answer(built.pipeline, request("hello", 20)))[0] == expected


@pytest.mark.many(keep=1)
@pytest.mark.parametrize(
    "late",
    [
        changed(kind=FrameKind.STALE, epoch=0, segments=(), payload=b""),  # as if to the frame under way
        changed(kind=FrameKind.STALE, epoch=0, seq=9_000, segments=(), payload=b""),
        changed(kind=FrameKind.STALE, seq=9_000, segments=(), payload=b""),  # as lenders of before say it
        changed(kind=FrameKind.STALE, seq=0, segments=(), payload=b""),
        changed(epoch=0),
        changed(epoch=0, seq=9_000),
    ],
)
async def test_a_frame_of_an_earlier_epoch_that_arrives_late_costs_no_recovery(late: Callable[[Frame], bytes]) -> None:
    """Its lender says that it changed nothing, or what it computed then: no answer of ours."""

    class Late(Twisted):
        """Tells so beside an answer."""

        async def deliver(self, to: Callable[[bytes], None]) -> None:
            def beside(data: bytes) -> None:
                to(late(decode_frame(data)))
                to(data)

            await self._inner.deliver(beside)

    async with pool(2, 4, 2) as plain:
        expected, _ = await answer(plain.pipeline, request("hello", 20))
    async with pool(2, 4, 2, wrap=lambda channel: Late(channel, encode_frame), renews=True) as built:
        assert built.pipeline._stages[1].run.epoch == 1
        assert (await answer(built.pipeline, request("hello", 20)))[0] == expected


class Flapping:
    """A lender that takes every connection, and drops it at once."""

    def __init__(self) -> None:
        self.n_opened = 0

    async def reopen(self) -> FrameChannel:
        self.n_opened += 1
        near, far = MemoryChannel.pair()
        await far.close()
        return near

    async def ask(self) -> None:
        pass

    def computes(self) -> bool:
        return False


async def test_a_channel_that_opens_and_breaks_each_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_connection, "RECONNECT_S", 0.4)
    peer = Flapping()
    run = Run(os.urandom(16), Role.MIDDLE, 8)
    stage = lent_stage(await peer.reopen(), run, "lender-1", peer=peer)
    async with asyncio.timeout(30):
        await stage.listen()
    assert stage.lost is not None
    assert stage.lost.reason.code == "stage_unreachable"
    assert peer.n_opened < 20  # not as fast as the processor can
