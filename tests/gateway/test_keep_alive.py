"""Tests of which models a program may unload. No node."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import BadInput, Busy
from app.gateway.dialects.ollama_routes import ModelUnloader
from app.gateway.fair_queue import FairQueue


class Model:
    """One that is loaded, and whom `n_askers` ask."""

    def __init__(self) -> None:
        self.entry, self.n_requests, self.is_ready = SimpleNamespace(name="guide"), 0, True
        self.loaded_by_request = True


class Held(dict[str, Model]):
    """The loaded models."""

    def named(self, name: str) -> Model | None:
        return self.get(name)


class Pool:
    """A hosting that has `guide` loaded, and notes what it is to give back."""

    def __init__(self, *, may_load: bool = True, room: int = 1) -> None:
        self.running: Any = Model()
        self.gone: list[str] = []
        hosting: Any = SimpleNamespace(
            loaded=Held({"guide": self.running}), give_back=lambda item: self.gone.append(item.entry.name)
        )
        self.queue = FairQueue(lambda _: room)
        answering: Any = SimpleNamespace(queue=self.queue)
        self.going = ModelUnloader(hosting, lambda: may_load, answering)


@pytest.mark.parametrize(
    ("may_load", "brought", "goes"),
    [(True, True, True), (True, False, True), (False, True, True), (False, False, False)],
)
def test_what_was_there_before_stays_unless_programs_may_change_it(may_load: bool, brought: bool, goes: bool) -> None:
    pool = Pool(may_load=may_load)
    pool.going.unload_unused("guide", frozenset() if brought else frozenset({pool.running}))
    assert pool.gone == (["guide"] if goes else [])


def test_while_others_ask_it_it_stays_for_them() -> None:
    pool = Pool()
    pool.running.n_requests = 1
    pool.going.unload_unused("guide", frozenset())
    with pytest.raises(Busy, match="api_model_asked"):
        pool.going.unload_now("guide")
    assert not pool.gone
    pool.running.n_requests = 0
    pool.going.unload_now("guide")
    assert pool.gone == ["guide"]


async def test_who_waits_for_it_is_one_who_asks_it() -> None:
    pool = Pool(room=0)

    async def wait() -> None:
        async with pool.queue.turn("anna", "guide"):
            pass

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait(), name="wait")
        await asyncio.sleep(0)  # it is in line now
        assert pool.queue.n_waiting == 1
        pool.going.unload_unused("guide", frozenset())
        assert not pool.gone
        waiting.cancel()


def test_a_program_that_may_not_is_told_so_and_of_what_is_not_there_nothing() -> None:
    pool = Pool(may_load=False)
    with pytest.raises(BadInput, match="api_model_stays"):
        pool.going.unload_now("guide")
    pool.going.unload_now("other")
    pool.going.unload_unused("other", frozenset())
    assert not pool.gone


class Gone(Exception):
    """Any error of an answer."""


@pytest.mark.parametrize(
    ("end", "unload_after", "goes"),
    [
        (None, True, True),
        (None, False, False),
        (GeneratorExit, True, True),
        (asyncio.CancelledError, True, True),
        (asyncio.CancelledError, False, False),
        (Gone, True, False),
    ],
)
def test_who_leaves_before_the_end_keeps_it_no_longer_either(
    end: type[BaseException] | None, unload_after: bool, goes: bool
) -> None:
    pool = Pool()
    with (
        suppress(GeneratorExit, asyncio.CancelledError, Gone),
        pool.going.unloading_after("guide", unload_after=unload_after),
    ):
        (suppress(GeneratorExit, asyncio.CancelledError, Gone),)
        (pool.going.unloading_after("guide", unload_after=unload_after),)
        assert not pool.gone
        if end is not None:
            raise end
    assert pool.gone == (["guide"] if goes else [])
