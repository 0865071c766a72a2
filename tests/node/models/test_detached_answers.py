"""Answers go on without whoever asked, and are taken up again where they are by then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.api.responses import Answer
from app.core.errors import AppError, BadInput, StageLost
from app.inference.pipeline.completion import Delta
from app.node.control.answer_conversion import AnswerPart
from app.node.models.detached_answers import KEPT_S, MOST_OVER, DetachedAnswers, Parts
from tests.node.pool import node

ASK: dict[str, Any] = {
    "model": "guide",
    "prompt_ids": [5] * 40,
    "max_tokens": 400,
    "ignore_end": True,
    "sampling": {"temperature": 0},
}


def piece(number: int) -> Delta:
    return Delta(f"{number} ", (number,))


class Work:
    """An answer that says a number whenever it is let."""

    def __init__(self, end: AppError | None = None) -> None:
        self.let, self.end, self.closed = asyncio.Semaphore(0), end, asyncio.Event()

    async def lines(self, most: int = 3) -> Parts:
        try:
            for number in range(most):
                await self.let.acquire()
                yield piece(number)
            if self.end is not None:
                raise self.end
            yield Answer(text="all")
        finally:
            self.closed.set()

    def say(self, times: int) -> None:
        for _ in range(times):
            self.let.release()


@asynccontextmanager
async def answers(now: list[float] | None = None) -> AsyncIterator[DetachedAnswers]:
    kept = DetachedAnswers(lambda: now[0]) if now else DetachedAnswers()
    async with asyncio.TaskGroup() as group:
        kept.open(group)
        yield kept
        await kept.close()


async def first(kept: DetachedAnswers, key: str, many: int) -> list[AnswerPart]:
    """The first lines; then whoever followed is gone."""
    results: list[AnswerPart] = []
    async with aclosing(kept.follow(key)) as lines:
        async for line in lines:
            results.append(line)
            if len(results) == many:
                break
    return results


async def test_it_goes_on_without_a_follower_and_comes_whole_to_the_next() -> None:
    work = Work()
    async with answers() as kept:
        await kept.begin("a", work.lines())
        work.say(1)
        assert await first(kept, "a", 1) == [piece(0)]
        assert kept.keys == ["a"]
        work.say(2)
        await work.closed.wait()
        both = Delta("0 1 2 ", (0, 1, 2))
        assert [line async for line in kept.follow("a")] == [both, Answer(text="all")]
        assert kept.keys == []
        with pytest.raises(BadInput, match="answer_gone"):
            await first(kept, "a", 1)


async def test_what_ended_it_is_told_to_whoever_comes_then() -> None:
    work = Work(StageLost("bug"))
    async with answers() as kept:
        await kept.begin("a", work.lines(1))
        work.say(1)
        await work.closed.wait()
        lines = kept.follow("a")
        assert await anext(lines) == piece(0)
        with pytest.raises(StageLost):
            await anext(lines)
        assert kept.keys == []


async def test_it_can_be_stopped_and_one_of_its_key_takes_its_place() -> None:
    work, two = Work(), Work()
    async with answers() as kept:
        await kept.begin("a", work.lines())
        await asyncio.sleep(0)
        await kept.begin("a", two.lines())
        assert work.closed.is_set()
        await asyncio.sleep(0)
        await kept.stop("a")
        assert (two.closed.is_set(), kept.keys) == (True, [])
        await kept.stop("a")


async def test_what_nobody_fetches_is_forgotten() -> None:
    now = [0.0]
    async with answers(now) as kept:
        for number in range(MOST_OVER + 2):
            work = Work()
            await kept.begin(str(number), work.lines(0))
            await work.closed.wait()
        assert kept.keys == [str(number) for number in range(2, MOST_OVER + 2)]
        now[0] = KEPT_S + 1
        assert kept.keys == []


@pytest.mark.long
async def test_a_window_that_was_killed_finds_the_whole_answer(tmp_path: Path) -> None:
    with node(tmp_path, "den") as den:
        async with den.client() as client:
            whole = await client.work("POST", "/ask", ASK)
            async with aclosing(client.stream("POST", "/answers/one", ASK)) as lines:
                async for line in lines:
                    if "delta" in line:
                        break
            assert (await client.get("/answers"))["answers"] == ["one"]
            ids = list[int]()
            async for line in client.stream("GET", "/answers/one"):
                ids += line["delta"]["token_ids"] if "delta" in line else []
            assert ids == whole["token_ids"]
            assert (await client.get("/answers"))["answers"] == []
            async with aclosing(client.stream("POST", "/answers/two", ASK)) as lines:
                await anext(lines)
            await client.delete("/answers/two")
            await den.until_nobody()
