"""Every run of a pipeline is told the same in the same order, however long its steps are on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.inference.pipeline.sequence import Request
from app.inference.stages.stage_client import FrameChannel, SlotOpCursor, SlotOpLog
from app.inference.stages.stage_connection import ChannelLink, PipeLink
from backends.frames import Frame, FrameKind, decode_frame
from tests.inference.pool import answer, pool, request, shape

Op = tuple[Any, ...]
STEPS = (FrameKind.STEP, FrameKind.FOLLOW)


def ops(frame: Frame) -> list[tuple[str, Op]]:
    """Return a frame's operations, and which of the host's two runs they are for, by its pipeline."""
    table = tuple((segment.slot, segment.n_tokens, segment.pos) for segment in frame.segments)
    run = frame.pipeline.hex()
    if frame.kind is FrameKind.FOLLOW:
        return [*ops(decode_frame(frame.payload)), (run, ("step", *table))]
    if frame.kind is FrameKind.STEP:
        return [(run, ("step", *table))]
    return [(run, ("forget", *table))] if frame.kind is FrameKind.FORGET else []


@pytest.fixture
def sent_ops(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Op]]:
    """Return the operations sent to each run, in order."""
    result: dict[str, list[Op]] = {}

    def noting(kind: type, send: Callable[..., Any]) -> None:
        async def noted(self: Any, frame: bytes) -> None:
            for run, op in ops(decode_frame(frame)):
                result.setdefault(run, []).append(op)
            await send(self, frame)

        monkeypatch.setattr(kind, "send", noted)

    noting(PipeLink, PipeLink.send)
    noting(ChannelLink, ChannelLink.send)
    return result


class Slow:
    """A way that takes its time."""

    def __init__(self, inner: FrameChannel) -> None:
        self._inner = inner

    async def send(self, frame: bytes) -> None:
        await asyncio.sleep(0.004)
        await self._inner.send(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        await self._inner.deliver(to)

    async def close(self) -> None:
        await self._inner.close()


def plain(text: str, max_tokens: int) -> Request:
    """Return a request without guesses, since useless steps reach only some runs."""
    return replace(request(text, max_tokens), guesses=False)


def before_each_forgetting(sent_ops: list[Op], common: set[Op]) -> dict[tuple[Op, int], list[Op]]:
    """Return the steps before each FORGET, by the operation and its index among equal ones."""
    result: dict[tuple[Op, int], list[Op]] = {}
    steps: list[Op] = []
    for op in sent_ops:
        if op[0] == "step":
            steps += [op] if op in common else []
        elif op in common:
            result[op, sum(key[0] == op for key in result)] = list(steps)
    return result


@pytest.mark.long
async def test_what_ends_is_forgotten_at_the_same_place_by_every_run(sent_ops: dict[str, list[Op]]) -> None:
    """Answers of other lengths share their cells, and leave while others are under way."""
    form = shape(slots=4, kv_cells=512, context=256, chunk_rows=16)
    async with pool(2, 2, 2, 2, form=form, wrap=Slow) as built:
        requests = [plain("x" * (3 + 11 * n), 5 + 6 * n) for n in range(7)]
        await asyncio.gather(*(answer(built.pipeline, query) for query in requests))
        async with asyncio.timeout(30):  # nothing is put off for ever
            while min(sum(op[0] == "forget" for op in group) for group in sent_ops.values()) < len(requests):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert len(sent_ops) == 4
    common = set.intersection(*map(set, sent_ops.values()))
    first, *rest = (before_each_forgetting(group, common) for group in sent_ops.values())
    assert len(first) >= len(requests)
    for other in rest:
        assert list(other) == list(first)
        for op in first:
            assert other[op] == first[op], op
    assert any(steps != list(first.values())[-1] for steps in first.values())


def test_what_came_behind_a_step_goes_behind_it() -> None:
    course = SlotOpLog()
    first, last = SlotOpCursor(course), SlotOpCursor(course, is_first=False)
    number = first.enter(0)
    last.defer(1, 5)
    assert list(last.due()) == list(last.due(number)) == []
    assert last.enter(number) == number
    last.defer(2, 0)
    assert list(last.due()) == [(1, 5), (2, 0)]
    dropped = first.enter(0)  # it never comes to the last run
    last.defer(3, 0)
    assert list(last.due()) == []
    assert last.is_behind
    assert list(last.due(dropped + 1)) == [(3, 0)]
    assert not last.is_behind
