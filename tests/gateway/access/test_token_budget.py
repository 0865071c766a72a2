"""Tokens a minute: had, waited for, had again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.api.requests import Ask
from app.core.errors import Busy
from app.gateway.access.auth import CALLER
from app.gateway.access.token_budget import TokenBudget
from app.gateway.answer_service import Caller
from app.gateway.dialects.embedding_routes import EmbeddingRoutes
from app.gateway.metrics import Metrics
from app.gateway.servers.member_server import MemberRoutes
from app.inference.pipeline.completion import Delta, GenerationRequest
from app.node.control.answer_conversion import AnswerPart
from tests.node.prometheus import samples


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_has_had_his_tokens_waits_until_enough_are_a_minute_old() -> None:
    clock = Clock()
    budget = TokenBudget(lambda key: 100 if key == "a" else 0, clock)
    budget.check("a")
    budget.spend("a", 60)
    clock.now = 20.0
    budget.check("a")  # what is left is begun, and may be more in the end
    budget.spend("a", 90)
    with pytest.raises(Busy) as busy:
        budget.check("a")
    assert busy.value.reason.facts == {"most": 100, "seconds": 40}  # when the 60 are forgotten
    clock.now = 59.5
    with pytest.raises(Busy) as busy:
        budget.check("a")
    assert busy.value.reason.facts["seconds"] == 1
    clock.now = 60.0
    budget.check("a")
    for key in ("b", "a"):
        budget.spend(key, 1000)
    budget.check("b")  # has no limit, and is not counted
    with pytest.raises(Busy):
        budget.check("a")


def test_several_old_answers_must_go_where_one_is_not_enough() -> None:
    clock = Clock()
    budget = TokenBudget(lambda _: 10, clock)
    for at in (0.0, 10.0, 20.0):
        clock.now = at
        budget.spend("a", 9)
    clock.now = 30.0
    with pytest.raises(Busy) as busy:
        budget.check("a")
    assert busy.value.reason.facts["seconds"] == 40  # the second of them is gone at 70
    clock.now = 70.0
    budget.check("a")


async def test_who_leaves_after_some_texts_has_had_those() -> None:
    budget, made, figures = TokenBudget(lambda _: 10, lambda: 0.0), asyncio.Event(), Metrics()

    async def model(_: str) -> None:
        return None

    async def embed(*_: object, cut: bool, read: Callable[[int], None]) -> None:
        read(10)
        made.set()
        await asyncio.Event().wait()

    vectors = cast("Any", SimpleNamespace(model=model, embed=embed))
    routes = EmbeddingRoutes(vectors, budget, figures)
    request = cast("Any", {CALLER: Caller("a", "r")})
    async with asyncio.TaskGroup() as group:
        asks = group.create_task(routes._embed(request, "m", "ab", None, cut=True), name="vectors")
        await made.wait()
        asks.cancel()
    with pytest.raises(Busy):
        budget.check("a")
    assert samples(figures.page().decode(), "tokens_total", kind="vectors") == [10]


async def test_a_guest_who_leaves_has_had_what_was_read() -> None:
    budget = TokenBudget(lambda _: 9, lambda: 0.0)

    @asynccontextmanager
    async def line(_: str, __: str) -> AsyncGenerator[Any, None]:
        yield SimpleNamespace(wait=admitted)

    async def admitted(_: float) -> bool:
        return True

    async def assigned_model(_: object, model: str) -> str:
        return model

    async def answered(expected: str, ask: Callable[[Any], Any], *, may_load: bool) -> AsyncGenerator[AnswerPart, None]:
        question: GenerationRequest = await ask(SimpleNamespace(entry=SimpleNamespace(name=expected)))
        try:
            yield Delta("word", (1,))
        finally:
            assert question.read is not None
            question.read(8)

    answering = cast("Any", SimpleNamespace(line=line, assigned_model=assigned_model, needs_load=lambda _: False))
    hosting = cast("Any", SimpleNamespace(answer=answered, notice=lambda named, model: ""))
    nobody = cast("Any", None)
    routes = MemberRoutes(answering, budget, hosting, nobody, nobody)
    async with aclosing(routes._answer(Ask(prompt="x"), Caller("a", "r"))) as lines:
        await anext(lines)
        budget.check("a")
    with pytest.raises(Busy):
        budget.check("a")
