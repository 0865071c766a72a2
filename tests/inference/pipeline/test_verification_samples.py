"""Tests of which steps are kept as samples: sometimes a sequence's first, if it runs alone through a lender."""

from __future__ import annotations

import pytest

from app.core.verification import REST_S, largest_distance, rows_of
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.result_checks import MOST_RUNS, REST_EACH_S, Samples
from app.inference.stages.stage_client import Run, Step
from backends.contract import NumberFormat, Role, Segment
from tests.inference.pool import answer, pool, request

WIDTH = 4


def run(number: int = 0, role: Role = Role.MIDDLE) -> Run:
    return Run(bytes([number]) * 16, role, WIDTH)


def step(*segments: Segment) -> Step:
    n_rows = sum(segment.n_tokens for segment in segments)
    return Step.of(segments, (), bytes(range(256))[: n_rows * 8])


FIRST = step(Segment(2, 20, 0))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("role", "value", "chance"),
    [
        (Role.LAST, FIRST, 0.0),
        (Role.WHOLE, FIRST, 0.0),
        (Role.MIDDLE, step(Segment(2, 20, 64)), 0.0),
        (Role.MIDDLE, step(Segment(2, 20, 0), Segment(3, 1, 9)), 0.0),
        (Role.MIDDLE, step(Segment(2, 8, 0)), 0.0),
        (Role.MIDDLE, FIRST, 0.99),
    ],
)
def test_what_is_no_sample(role: Role, value: Step, chance: float) -> None:
    samples = Samples(lambda: chance)
    samples.offer(run(role=role), value, value)
    assert samples.oldest is None


def test_one_of_each_run_is_kept_and_then_it_rests() -> None:
    clock = Clock()
    samples = Samples(lambda: 0.0, clock)
    other = step(Segment(0, 24, 0))
    samples.offer(run(), FIRST, other)
    samples.offer(run(), other, other)
    first = samples.oldest
    assert first is not None
    assert (first.n_rows, first.given, first.answered) == (20, FIRST.rows, other.rows)
    samples.forget(first)
    assert samples.oldest is None
    clock.now_s = REST_S - 1
    samples.offer(run(), FIRST, FIRST)
    assert samples.oldest is None
    clock.now_s = REST_S
    samples.offer(run(), FIRST, FIRST)
    assert samples.oldest is not None


def test_one_that_came_to_nothing_lets_others_go_first_and_rests_longer_each_time() -> None:
    clock = Clock()
    samples = Samples(lambda: 0.0, clock)
    for number in (1, 2):
        samples.offer(run(number), FIRST, FIRST)
    first, second = samples._kept.values()
    assert samples.postpone(first) == 1
    assert [samples.oldest] == [second]
    samples.forget(second)
    for n in (2, 3):
        assert [samples.oldest] == [None]
        clock.now_s += (n - 1) * REST_EACH_S
        assert [samples.oldest] == [first]
        assert samples.postpone(first) == n
    samples.forget(first)
    assert not samples._postponed
    samples.postpone(first)  # it is gone already
    assert not samples._postponed


def test_runs_that_are_gone_make_room() -> None:
    samples = Samples(lambda: 0.0)
    for number in range(2 * MOST_RUNS):
        samples.offer(run(number), FIRST, FIRST)
        samples.postpone(next(iter(samples._kept.values())))
    assert len(samples._kept) == MOST_RUNS
    assert samples._postponed.keys() <= samples._kept.keys()
    samples._postponed.clear()
    while (oldest := samples.oldest) is not None:
        samples.forget(oldest)
    for number in range(2 * MOST_RUNS):
        samples.offer(run(100 + number), FIRST, FIRST)
        assert samples.oldest is not None
        samples.forget(samples.oldest)
    assert len(samples._checked_s) == MOST_RUNS


def keeping(pipeline: Pipeline) -> Samples:
    pipeline._samples = samples = Samples(lambda: 0.0)
    return samples


async def test_a_pipeline_keeps_what_went_through_a_lender_and_came_back() -> None:
    """Each layer of the fake engine adds one to every value."""
    async with pool(3, 2, 3) as built:
        samples = keeping(built.pipeline)
        await answer(built.pipeline, request("a question of some length, as people ask", 3))
        oldest = samples.oldest
        assert oldest is not None
        values_given, answered = (
            rows_of(payload, oldest.run.width, NumberFormat.F16) for payload in (oldest.given, oldest.answered)
        )
        assert oldest.run.pipeline == built.lent[0]
        assert oldest.n_rows == len(values_given) == len(answered) == 40
        assert largest_distance([[value + 2 for value in row] for row in values_given], answered) == 0
