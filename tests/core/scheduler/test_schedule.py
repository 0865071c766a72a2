"""The schedule: who enters, who is admitted, and, in a small model of machines, how busy they are kept."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from app.core.scheduler.schedule import (
    CHUNK_ROWS,
    MAX_OVERTAKEN,
    Admission,
    Batch,
    IdleSlot,
    Limits,
    admit,
    next_batch,
    prompt_chunks,
    queue_place,
    shared_prefix,
)
from backends.contract import Segment


@dataclass
class Row:
    slot: int
    entered: int
    known: int
    since: int = 0
    end: int | None = None  # of its next chunk, if that is not all
    is_apart: bool = False
    block: int = 0  # the rows that must be computed in one step
    block_sees_all: bool = True

    @property
    def until(self) -> int:
        return self.known if self.end is None else self.end


def limits(**changes: Any) -> Limits:
    return Limits(**{"slots": 8, "kv_cells": 1024, "context": 512, "machines": 2, **changes})


@pytest.mark.parametrize(
    ("n_tokens", "chunks"), [(0, ()), (1, (1,)), (64, (64,)), (65, (48, 17)), (130, (48, 48, 34)), (512, (64,) * 8)]
)
def test_a_prompt_enters_in_few_chunks_of_whole_blocks(n_tokens: int, chunks: tuple[int, ...]) -> None:
    assert prompt_chunks(n_tokens) == chunks


@pytest.mark.parametrize("n_tokens", range(1, 700, 37))
def test_chunks_are_what_the_schedule_lets_in(n_tokens: int) -> None:
    row, sizes = Row(0, 0, n_tokens), []
    while batch := next_batch([row], limits(), 0, 1):
        sizes.append(batch.segments[0].n_tokens)
        row.entered = batch.segments[0].end
    assert tuple(sizes) == prompt_chunks(n_tokens)


def test_a_chunk_ends_where_it_must_and_others_fill_the_micro_batch() -> None:
    rows = [Row(0, 0, 90, end=10), Row(1, 20, 90, end=21)]
    batch = next_batch(rows, limits(), 0, 1)
    assert batch == Batch((Segment(1, 1, 20), Segment(0, 10, 0)), True)


def test_a_picture_whose_rows_see_each_other_is_computed_whole_and_alone() -> None:
    picture = Row(1, 7, 400, since=1, is_apart=True, block=256)
    batch = next_batch([Row(0, 5, 6, since=2), picture], limits(chunk_rows=64), 0, 1)
    assert batch is not None
    assert batch.segments == (Segment(1, 256, 7),)
    assert batch.sees_all
    assert batch.more
    picture.block_sees_all = False
    batch = next_batch([Row(0, 5, 6, since=2), picture], limits(chunk_rows=64), 0, 1)
    assert batch is not None
    assert (batch.segments, batch.sees_all) == ((Segment(1, 256, 7),), False)
    picture.since = 3
    batch = next_batch([Row(0, 5, 6, since=2), picture], limits(chunk_rows=64), 0, 1)
    assert batch is not None
    assert batch.segments == (Segment(0, 1, 5),)
    assert not batch.sees_all


def test_nothing_ready_gives_nothing() -> None:
    assert next_batch([], limits(), 0, 1) is None
    assert next_batch([Row(0, 5, 5)], limits(), 0, 1) is None


def test_answers_are_shared_between_the_machines_oldest_first() -> None:
    rows = [Row(slot, 10, 11, since=8 - slot) for slot in range(8)]
    batch = next_batch(rows, limits(), 0, 9)
    assert batch == Batch(tuple(Segment(slot, 1, 10) for slot in (4, 5, 6, 7)), True)


def test_groups_become_neighbors() -> None:
    """Answers that began in any order: each group returns, and the next one is formed of what is there."""
    rows = {slot: Row(slot, 10, 11, since=slot % 2) for slot in range(8)}
    under_way, formed = [[0, 2, 4, 6], [1, 3, 5, 7]], list[list[int]]()
    for row in rows.values():
        row.entered = row.known
    for number in range(2, 12):
        for slot in under_way.pop(0):
            rows[slot].known += 1
        batch = next_batch(list(rows.values()), limits(), len(under_way), number)
        assert batch is not None
        formed.append([segment.slot for segment in batch.segments])
        under_way.append(formed[-1])
        for slot in formed[-1]:
            rows[slot].entered, rows[slot].since = rows[slot].known, number
    assert {tuple(group) for group in formed[-4:]} == {(0, 1, 2, 3), (4, 5, 6, 7)}


def test_while_somebody_hears_an_answer_there_is_no_spare_micro_batch() -> None:
    prompt = Row(1, 0, 64)
    assert next_batch([prompt], limits(), 2, 9) == Batch((Segment(1, 64, 0),), False)
    for answering in (Row(0, 10, 11), Row(0, 11, 11)):
        assert next_batch([answering, prompt], limits(), 2, 9) is None
        assert next_batch([answering, prompt], limits(), 1, 9) is not None


def test_answers_ride_with_a_prompt_and_rows_stay_within_the_chunk() -> None:
    batch = next_batch([Row(0, 10, 11), Row(1, 0, 512)], limits(machines=1), 0, 1)
    assert batch is not None
    assert batch.segments == (Segment(0, 1, 10), Segment(1, 63, 0))


def test_what_a_prompt_leaves_free_goes_to_the_next_prompt() -> None:
    batch = next_batch([Row(0, 0, 40), Row(1, 0, 30)], limits(), 0, 1)
    assert batch is not None
    assert batch.segments == (Segment(1, 30, 0), Segment(0, 34, 0))
    assert batch.more


def test_prompts_that_are_computed_apart_are_not_chopped_into_what_others_leave() -> None:
    """Each piece would be a pass over all weights of its own; a whole chunk that fits rides along."""
    apart = limits(prompts_apart=True)
    batch = next_batch([Row(0, 0, 40), Row(1, 0, 30)], apart, 0, 1)
    assert batch == Batch((Segment(1, 30, 0),), True)
    batch = next_batch([Row(0, 0, 40), Row(1, 0, 30), Row(2, 0, 20)], apart, 0, 1)
    assert batch == Batch((Segment(2, 20, 0), Segment(1, 30, 0)), True)
    batch = next_batch([Row(0, 9, 10), Row(1, 0, 64)], apart, 0, 1)
    assert batch == Batch((Segment(0, 1, 9), Segment(1, 48, 0)), True)  # whole blocks


def test_a_prompt_goes_on_however_many_answers_ride_along() -> None:
    answers = [Row(slot, 9, 10) for slot in range(60)]
    batch = next_batch([*answers, Row(60, 0, 64)], limits(slots=61, machines=1, prompts_apart=True), 0, 1)
    assert batch is not None
    assert batch.segments[-1] == Segment(60, 4, 0)


@pytest.mark.parametrize(("apart", "passes"), [(False, 5), (True, 4)])
def test_two_prompts_at_once_take_no_more_passes_than_one_after_the_other(apart: bool, passes: int) -> None:
    rows, count, number = [Row(0, 0, 100), Row(1, 0, 100)], 0, 0
    while batch := next_batch(rows, limits(prompts_apart=apart), 0, number := number + 1):
        count += len(batch.segments)
        for segment in batch.segments:
            rows[segment.slot].entered, rows[segment.slot].since = segment.end, number
    assert count == passes


def test_a_long_prompt_is_overtaken_by_short_ones_but_not_for_ever() -> None:
    long, served = Row(0, 0, 8192), []
    for number in range(1, 200):
        batch = next_batch([long, Row(1, 0, 64, since=number - 1)], limits(), 0, number)
        assert batch is not None
        served.append(batch.segments[0].slot)
        for segment in batch.segments:
            if segment.slot == 0:
                long.entered, long.since = segment.end, number
    assert 1 in served[:3]
    assert served.count(0) >= 4


# admission


@dataclass
class Request:
    ids: tuple[int, ...]
    cells: int
    conversation: str | None = None
    overtaken: int = 0
    has_priority: bool = False


def test_the_empty_slot_is_taken_before_a_full_one_and_the_oldest_of_these() -> None:
    full = [IdleSlot(0, 7, "a", (1, 2)), IdleSlot(1, 3, "b", (1, 2))]
    assert admit([Request((1, 2, 3), 10)], [*full, IdleSlot(2, 9)], 0, limits()) == Admission(0, 2, 0)
    assert admit([Request((1, 2, 3), 10)], full, 0, limits()) == Admission(0, 1, 0)


def test_a_prefix_is_reused_within_its_conversation_only_and_never_the_whole_prompt() -> None:
    idle = [IdleSlot(0, 1, "mine", (1, 2, 3, 4)), IdleSlot(1, 2, "other", (1, 2, 3, 4, 5))]
    assert admit([Request((1, 2, 9), 10, "mine")], idle, 0, limits()) == Admission(0, 0, 2)
    assert admit([Request((1, 2, 3), 10, "mine")], idle, 0, limits()) == Admission(0, 0, 2)
    assert admit([Request((1, 2, 3), 10, None)], idle, 0, limits()) == Admission(0, 0, 0)
    # what another conversation holds is longer, and told to nobody by how soon an answer comes
    assert admit([Request((1, 2, 3, 4, 5, 6), 10, "mine")], idle, 0, limits()) == Admission(0, 0, 4)
    assert admit([Request((1, 2, 3, 4, 5, 6), 10, "new")], idle, 0, limits()) == Admission(0, 0, 0)


def test_who_shares_most_goes_first_a_few_times() -> None:
    idle = [IdleSlot(0, 1, "mine", (1, 2, 3, 4))]
    first, second = Request((7, 8), 10, "new"), Request((1, 2, 3, 9), 10, "mine")
    assert admit([first, second], idle, 0, limits()) == Admission(1, 0, 3)
    first.overtaken = MAX_OVERTAKEN
    assert admit([first, second], idle, 0, limits()) == Admission(0, 0, 0)


def test_the_owner_s_own_stand_before_others_a_few_times_and_nobody_takes_their_turn() -> None:
    idle = [IdleSlot(0, 1, "mine", (1, 2, 3, 4))]
    requests = [Request((1, 2, 3, 9), 10, "mine"), Request((7, 8), 10)]
    line = list(requests)
    assert queue_place(line, has_priority=False) == 2
    for n in range(MAX_OVERTAKEN):
        assert queue_place(line, has_priority=True) == n  # in the order in which they came
        line.insert(n, Request((5, 6), 10, has_priority=True))
    assert [other.overtaken for other in requests] == [MAX_OVERTAKEN] * 2
    assert admit(line, idle, 0, limits()) == Admission(0, 0, 0)
    assert queue_place(line, has_priority=True) == len(line)  # now it is theirs
    assert admit(requests[::-1], idle, 0, limits()) == Admission(0, 0, 0)


def test_idle_slots_are_emptied_when_cells_are_short_oldest_first() -> None:
    idle = [IdleSlot(0, 5, "a", range(300)), IdleSlot(1, 2, "b", range(300)), IdleSlot(2, 1)]
    request = Request((1,), 300)
    assert admit([request], idle, 100, limits()) == Admission(0, 2, 0)
    assert admit([request], idle, 200, limits()) == Admission(0, 2, 0, (1,))
    assert admit([request], idle, 500, limits()) == Admission(0, 2, 0, (1, 0))
    assert admit([request], idle, 800, limits()) is None


def test_no_slot_or_nobody_waiting() -> None:
    assert admit([], [IdleSlot(0, 1)], 0, limits()) is None
    assert admit([Request((1,), 1)], [], 0, limits()) is None


def test_shared_prefix() -> None:
    chance = random.Random(1)
    for _ in range(300):
        a = [chance.randrange(2) for _ in range(chance.randrange(12))]
        b = [chance.randrange(2) for _ in range(chance.randrange(12))]
        expected = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
        assert shared_prefix(a, b) == (min(len(a), len(b)) if expected is None else expected)


# a model of machines: each computes its steps in the order in which they come


@dataclass
class Model:
    """Stages as (machine, seconds of a step); steps of one row cost `decode` of that."""

    stages: list[tuple[int, float]]
    limits: Limits
    rows: list[Row]
    answer: int = 0  # tokens each
    decode: float = 1.0
    hop: float = 0.0  # seconds between two stages
    now: float = 0.0
    tokens: list[tuple[float, int]] = field(default_factory=list)

    def run(self) -> float:
        """Seconds until every sequence has its answer."""
        free = dict.fromkeys((machine for machine, _ in self.stages), 0.0)
        events: list[tuple[float, int, int, Batch]] = []
        left = {row.slot: self.answer for row in self.rows}
        by_slot = {row.slot: row for row in self.rows}
        number = under_way = 0
        while True:
            while under_way < self.limits.micro_batches:
                batch = next_batch([r for r in self.rows if left[r.slot]], self.limits, under_way, number + 1)
                if batch is None:
                    break
                number, under_way = number + 1, under_way + 1
                for segment in batch.segments:
                    by_slot[segment.slot].entered, by_slot[segment.slot].since = segment.end, number
                heapq.heappush(events, (self.now, number, 0, batch))
            if not events:
                return self.now
            self.now, tag, stage, batch = heapq.heappop(events)
            if stage == len(self.stages):
                under_way -= 1
                for segment in batch.segments:
                    row = by_slot[segment.slot]
                    if segment.end == row.known:
                        row.known, left[row.slot] = row.known + 1, left[row.slot] - 1
                        self.tokens.append((self.now, row.slot))
                continue
            machine, seconds = self.stages[stage]
            if all(segment.n_tokens == 1 for segment in batch.segments):
                seconds *= self.decode
            free[machine] = max(free[machine], self.now) + seconds
            heapq.heappush(events, (free[machine] + self.hop, tag, stage + 1, batch))


HALVES = [(0, 0.25), (1, 0.5), (0, 0.25)]
THIRDS = [(0, 1 / 6), (1, 1 / 3), (2, 1 / 3), (0, 1 / 6)]


@pytest.mark.parametrize(
    ("stages", "machines", "most"),
    [(HALVES, 2, 0.563), (THIRDS, 3, 0.417), ([(0, 0.1), (1, 0.5), (0, 0.4)], 2, 0.563),
     ([(0, 0.4), (1, 0.5), (0, 0.1)], 2, 0.563)],
)  # fmt: skip
def test_a_prompt_keeps_all_machines_busy(stages: list[tuple[int, float]], machines: int, most: float) -> None:
    """8 chunks over n machines: (8 + n - 1) / 8n of one machine's time is the best there is."""
    took = Model(stages, limits(machines=machines), [Row(0, 0, 512)], answer=1).run()
    assert took / 8 <= most


@pytest.mark.parametrize(("stages", "machines"), [(HALVES, 2), (THIRDS, 3)])
def test_many_answers_keep_all_machines_busy(stages: list[tuple[int, float]], machines: int) -> None:
    rows = [Row(slot, 9, 10) for slot in range(2 * 3 * machines)]
    took = Model(stages, limits(machines=machines, slots=18), rows, answer=50, hop=0.001).run()
    steps = 50 * machines  # as many groups; one machine would take a second for each
    assert took <= 1.03 * steps / machines


def test_a_long_prompt_does_not_starve_running_answers() -> None:
    rows = [Row(0, 9, 10), Row(1, 0, 64 * 40)]
    model = Model(HALVES, limits(), rows, answer=20)
    model.run()
    times = [time for time, slot in model.tokens if slot == 0]
    gaps = [b - a for a, b in pairwise(times)]
    assert max(gaps) <= 1.01  # the way of one chunk through both machines
    assert CHUNK_ROWS == 64


def test_who_stands_apart_shares_no_micro_batch_and_waits_no_longer_than_others() -> None:
    rows = [Row(0, 5, 6, since=1), Row(1, 0, 40, since=2, is_apart=True), Row(2, 5, 6, since=3)]
    seen = []
    for number in range(4, 10):
        batch = next_batch(rows, limits(machines=1), 0, number)
        assert batch is not None
        seen.append([segment.slot for segment in batch.segments])
        for segment in batch.segments:
            row = next(row for row in rows if row.slot == segment.slot)
            row.entered, row.since = segment.end, number
            row.known = max(row.known, row.entered + 1)
        assert batch.more
    assert [0, 2] in seen
    assert [1] in seen
    assert all(1 not in slots or slots == [1] for slots in seen)


def test_two_that_stand_apart_take_turns() -> None:
    rows = [Row(0, 5, 6, since=2, is_apart=True), Row(1, 5, 6, since=1, is_apart=True)]
    first = next_batch(rows, limits(), 0, 3)
    assert first == Batch((Segment(1, 1, 5),), more=True)
    rows[1].entered, rows[1].since = 6, 3
    assert next_batch(rows, limits(), 0, 4) == Batch((Segment(0, 1, 5),), more=False)
