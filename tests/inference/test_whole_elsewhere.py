"""A whole model on another machine: token ids go there, tokens come back, and the text stays with the host."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys

import pytest

from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages.stage_client import FrameChannel
from app.inference.stages.stage_host import BEGIN_BYTES, ID_BYTES, _check
from backends import worker_orders
from backends.contract import GREEDY, NumberFormat, Sampling, Segment
from backends.frames import BadFrame, Frame, FrameKind, PipelineParameters, encode_frame
from tests.inference.pool import answer, pool, request
from tests.inference.test_recovery import Breaking, hear

CREATIVE = Sampling(temperature=0.9, seed=11, repeat_penalty=1.2, likely=3)
PIPELINE = bytes(15) + b"w"


async def test_it_says_what_the_whole_says_also_over_connections_that_break() -> None:
    """A beginning that is sent again does not begin anew: what was drawn since is not drawn twice."""
    requests = [request("x" * (10 + 70 * n), 30 + n, sampling=(GREEDY, CREATIVE)[n % 2]) for n in range(7)]
    async with pool(8) as built:
        expected = [(await answer(built.pipeline, query))[0] for query in requests]
    chance, made = random.Random(3), []

    def wrap(channel: FrameChannel) -> FrameChannel:
        made.append(channel)
        there, back = chance.choice(((1, 0), (0, 1)))
        after = chance.randrange(2, 20)
        return Breaking(channel, there * after or 1 << 30, back * after or 1 << 30)

    async with pool(8, away=True, wrap=wrap, peers=True, rebuilds=True) as built:
        heard = await asyncio.gather(*(hear(built.pipeline, query) for query in requests))
        assert [ids for ids, _, _ in heard] == expected
        assert len(made) > 3
        assert not built.rebuild.planned
        assert not built.host.under_way


def begin(payload: bytes, *, kind: FrameKind = FrameKind.BEGIN, pipeline: bytes = PIPELINE) -> bytes:
    return encode_frame(Frame(kind, pipeline, 1, 1, segments=(Segment(0, 0, 5),), payload=payload))


def test_a_lender_passes_on_only_what_was_agreed() -> None:
    whole = PipelineParameters(PIPELINE, 8, NumberFormat.IDS, slots=2, context=100)
    part = PipelineParameters(PIPELINE, 8, NumberFormat.F16, slots=2, context=100)
    most = BEGIN_BYTES + ID_BYTES * 100
    assert _check(begin(b"x" * most), whole) == 0
    assert _check(begin(b"x" * BEGIN_BYTES), part) == 0
    for data, agreed in (
        (begin(b"x" * (most + 1)), whole),
        (begin(b"x" * (BEGIN_BYTES + 1)), part),  # which learns only where the sequence has pictures
        (begin(b"{}", pipeline=bytes(16)), whole),
        (begin(b"{}", kind=FrameKind.TEXT), whole),
        (begin(b"x", kind=FrameKind.FORGET), whole),
    ):
        with pytest.raises(BadFrame):
            _check(data, agreed)


@pytest.mark.parametrize(
    ("changes", "slot"), [({"sampling": Sampling(grammar="root ::= x")}, 0), ({"logits": True}, 0), ({}, 1)]
)
async def test_what_stays_with_the_host_is_refused_by_the_worker(changes: dict[str, object], slot: int) -> None:
    from backends.contract import Layers, Role, StageConfig
    from backends.worker.stage_runner import StageRunner

    name = os.urandom(16)
    config = StageConfig("fake", "fake:", "", Role.WHOLE, Layers(0, 2), 8, 2, 256, 64, 1)
    run = StageRunner(
        worker_orders.OpenStage(
            request=0, pipeline=name.hex(), epoch=1, number=1, context=128, memory_limit_bytes=0,
            config=config,
        )
    )  # fmt: skip
    value = {"request": 0, "pipeline": name.hex(), "slot": 0, "due_from": 5, "sampling": GREEDY}
    order = worker_orders.BeginSequence(**(value | changes))  # type: ignore[arg-type]
    frame = Frame(FrameKind.BEGIN, name, 1, 1, segments=(Segment(slot, 0, 5),))
    for payload in (worker_orders.encode(order), b"{}", b"\xff"):
        with pytest.raises(BadFrame):
            run.begin_from(Frame(FrameKind.BEGIN, name, 1, 1, segments=frame.segments, payload=payload))
    run.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
async def test_it_is_given_up_in_seconds_when_it_stands_still_before_it_begins() -> None:
    """Found by the simulation, seed 1200: a beginning did not count as work, and took the minute of a first step."""
    query = request("hello", 5)
    async with pool(8) as built:
        expected = (await answer(built.pipeline, query))[0]
    quick = Deadlines(still_s=0.8)
    async with pool(8, away=True, peers=True, rebuilds=True, deadlines=quick) as built:
        os.kill(built.lent_worker().pid, signal.SIGSTOP)
        async with asyncio.timeout(30):
            ids, _, finish = await hear(built.pipeline, query)
        assert ids == expected
        assert finish.figures.recoveries[0].why.code == "worker_hung"
