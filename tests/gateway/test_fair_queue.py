"""Turns between programs: fair, bounded, the owner first, nobody forgotten."""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack

import pytest

from app.core.errors import Busy
from app.gateway.fair_queue import USUAL_S, FairQueue, Turn


class Room:
    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, _: str) -> int:
        return self.room


async def take(queue: FairQueue, name: str, order: list[str]) -> None:
    async with queue.turn(name):
        order.append(name)
        await asyncio.sleep(0)


async def all_had_a_turn() -> None:
    """Yield to the event loop often enough for everything that waits for no clock."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_programs_take_turns_however_much_one_asks() -> None:
    queue, order = FairQueue(Room(1)), list[str]()
    async with asyncio.TaskGroup() as group, queue.turn("first"):
        for name in "aaaaaabbc":
            group.create_task(take(queue, name, order), name=name)
        await asyncio.sleep(0)
        assert (queue.n_running, queue.n_waiting) == (1, 9)
    assert "".join(order) == "abcabaaaa"
    assert (queue.n_running, queue.n_waiting) == (0, 0)


async def test_as_many_run_as_there_is_room_for() -> None:
    room = Room(3)
    queue, most = FairQueue(room), 0

    async def run() -> None:
        nonlocal most
        async with queue.turn("a"):
            most = max(most, queue.n_running)
            await asyncio.sleep(0.001)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(run(), name=f"{number}")
    assert most == 3


async def test_room_that_comes_later_is_used_when_somebody_looks() -> None:
    room, order = Room(1), list[str]()
    queue = FairQueue(room)
    async with asyncio.TaskGroup() as group, queue.turn("a"):
        group.create_task(take(queue, "b", order), name="b")
        await all_had_a_turn()
        assert order == []
        room.room = 2  # the owner's answer is over
        queue.admit()
        await all_had_a_turn()
        assert order == ["b"]


async def test_too_many_are_told_when_to_come_again() -> None:
    queue = FairQueue(Room(1), max_waiting=2)
    async with asyncio.TaskGroup() as group, queue.turn("a"):
        order: list[str] = []
        for name in "bc":
            group.create_task(take(queue, name, order), name=name)
        await asyncio.sleep(0)
        with pytest.raises(Busy) as busy:
            async with queue.turn("d"):
                pass
        assert busy.value.reason.facts["waiting"] == 2
        assert busy.value.reason.number("seconds") >= 1


async def test_who_fills_the_line_keeps_nobody_out() -> None:
    """The last of the longest line is turned away, and told when to come again."""
    queue, order, refused = FairQueue(Room(1), max_waiting=4), list[str](), list[str]()

    async def ask(name: str) -> None:
        try:
            await take(queue, name[0], order)
        except Busy as busy:
            refused.append(f"{name} for {busy.reason.facts['waiting']}")

    async with asyncio.TaskGroup() as group, queue.turn("first"):
        for name in ("a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3", "c1"):
            group.create_task(ask(name), name=name)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert queue.n_waiting == 4
    assert refused == [f"{name} for 4" for name in ("a5", "a4", "a3", "b3", "a2")]
    assert "".join(order) == "abcb"
    assert (queue.n_running, queue.n_waiting) == (0, 0)


async def test_who_leaves_in_the_moment_he_is_turned_away_takes_nobodys_turn() -> None:
    queue, order = FairQueue(Room(1), max_waiting=2), list[str]()
    async with asyncio.TaskGroup() as group, queue.turn("first"):
        group.create_task(take(queue, "a", order), name="a")
        leaving = group.create_task(take(queue, "a", order), name="leaves")
        await asyncio.sleep(0)
        group.create_task(take(queue, "b", order), name="b")
        await asyncio.sleep(0)
        leaving.cancel()
    assert order == ["a", "b"]
    assert (queue.n_running, queue.n_waiting) == (0, 0)


@pytest.mark.parametrize("at_its_turn", [False, True])
async def test_who_leaves_takes_nobodys_turn(at_its_turn: bool) -> None:
    queue, order = FairQueue(Room(1)), list[str]()
    async with asyncio.TaskGroup() as group:
        async with queue.turn("a"):
            leaving = group.create_task(take(queue, "b", order), name="b")
            group.create_task(take(queue, "c", order), name="c")
            await asyncio.sleep(0)
            if not at_its_turn:
                leaving.cancel()
                await all_had_a_turn()
                assert queue.n_waiting == 1  # it is gone at once
        leaving.cancel()  # in the moment in which its turn has come
    assert order == ["c"]
    assert (queue.n_running, queue.n_waiting) == (0, 0)


async def test_a_model_with_room_is_not_kept_from_its_questions_by_one_that_is_full() -> None:
    queue = FairQueue(Room(1), by={"old": "one", "one": "one", "two": "two"}.__getitem__)
    order: list[str] = []

    async def ask(model: str) -> None:
        async with queue.turn("a", model):
            order.append(model)

    async with asyncio.TaskGroup() as group, queue.turn("a", "old"):
        assert [queue.is_full(model) for model in ("one", "old", "two")] == [True, True, False]
        for model in ("one", "one", "two"):
            group.create_task(ask(model), name=model)
        await all_had_a_turn()
        assert (order, queue.n_running, queue.n_waiting) == (["two"], 1, 2)
    assert order == ["two", "one", "one"]
    assert (queue.n_running, queue.n_waiting) == (0, 0)


async def test_a_request_sees_how_many_come_before_it() -> None:
    """Keys take turns: of a, b and c, the second request of a is fourth."""
    queue = FairQueue(lambda _: 1)
    with queue.line("running"), ExitStack() as lines:
        turns = [lines.enter_context(queue.line(key)) for key in "aaabbc"]
        places = [place[0] for turn in turns if (place := queue.place(turn)) is not None]
        assert places == [1, 4, 6, 2, 5, 3]
        assert queue.place(turns[0]) == (1, round(USUAL_S))
        assert not await turns[0].wait(0.01)
        lines.close()
        assert queue.place(turns[0]) is None
        assert queue.n_waiting == 0
    assert queue.n_running == 0


async def test_who_is_turned_away_while_waiting_for_a_while_is_told() -> None:
    queue = FairQueue(Room(1), max_waiting=2)
    with queue.line("first"), queue.line("a"), queue.line("a") as last, queue.line("b"):
        with pytest.raises(Busy):
            await last.wait(0)
        assert queue.place(last) is None
    assert (queue.n_running, queue.n_waiting) == (0, 0)


async def test_the_estimate_follows_how_long_turns_take() -> None:
    queue = FairQueue(Room(1))
    for _ in range(10):
        with queue.line("a"):
            pass
    with queue.line("first"), queue.line("a") as turn:
        assert queue.place(turn) == (1, 2)  # almost no time, and far less than at first


async def test_places_are_the_order_of_admission() -> None:
    """Requests are admitted in the order of the places that they were shown, whoever sent them."""
    seed = 35
    chance = random.Random(seed)
    for _ in range(50):
        queue, keys = FairQueue(lambda _: 1), [chance.choice("abcd") for _ in range(chance.randint(1, 12))]
        running = ExitStack()
        running.enter_context(queue.line("running"))
        held = dict[Turn, ExitStack]()
        for key in keys:
            stack = ExitStack()
            held[stack.enter_context(queue.line(key))] = stack
        places = [queue.place(turn) for turn in held]
        shown = sorted(range(len(keys)), key=lambda number: places[number] or (0, 0))
        running.close()
        admitted, numbers = list[int](), {turn: number for number, turn in enumerate(held)}
        while held:
            (now,) = [turn for turn in held if turn.admitted.done()]
            admitted.append(numbers[now])
            held.pop(now).close()
        assert admitted == shown, (seed, keys)
