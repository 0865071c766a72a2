"""The number of threads follows what steps take: on a quiet machine, beside other work, under a quota, and back."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from backends.llamacpp.thread_choice import EXACT_THREADS, ThreadChoice

Cost = Callable[[int, int], float]  # seconds of a step, by threads and the step's number


class Machine:
    """Computes steps on a choice's threads; now and then the system holds one up."""

    def __init__(self, choice: ThreadChoice, cost: Cost, seed: int) -> None:
        self.choice, self.cost, self.chance = choice, cost, random.Random(seed)
        self.rows = 1
        self.used: list[int] = []
        self.seconds: list[float] = []

    def compute(self, n_steps: int, n_rows: int = 1) -> None:
        for _ in range(n_steps):
            threads = self.choice.next(n_rows)
            seconds = self.cost(threads, len(self.used)) * self.chance.lognormvariate(0, 0.08)
            seconds *= 3 if self.chance.random() < 0.03 else 1
            self.choice.took(seconds)
            self.used.append(threads)
            self.seconds.append(seconds)

    def against_best(self, most: int) -> float:
        """The best fixed number's time over ours."""
        n = len(self.used)
        fixed = [sum(self.cost(k, i) for i in range(n)) for k in range(1, most + 1)]
        return min(fixed) * 1.06 / sum(self.seconds)  # the hold-ups are everybody's


def quiet(threads: int, _: int) -> float:
    return 0.0005 + 0.010 / threads


def beside_one_on_two(threads: int, _: int) -> float:
    return 0.010 if threads == 1 else 0.025


def eight_on_two(threads: int, _: int) -> float:
    return 0.010 / threads if threads <= 2 else 0.010 * threads


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("cost", "most", "begin", "bar"),
    [
        (quiet, 2, 2, 0.95),
        (quiet, 8, 8, 0.93),
        (beside_one_on_two, 2, 2, 0.9),
        (beside_one_on_two, 2, 1, 0.93),
        (eight_on_two, 8, 8, 0.65),
        (eight_on_two, 8, 2, 0.88),
    ],
)
def test_it_is_nearly_as_quick_as_the_best_number(cost: Cost, most: int, begin: int, bar: float, seed: int) -> None:
    machine = Machine(ThreadChoice(most, begin), cost, seed)
    machine.compute(400)
    assert machine.against_best(most) > bar


@pytest.mark.parametrize("seed", range(5))
def test_fewer_while_others_compute_and_more_again_later(seed: int) -> None:
    def cost(threads: int, step: int) -> float:
        return (beside_one_on_two if 200 <= step < 600 else quiet)(threads, step)

    machine = Machine(ThreadChoice(2, 2), cost, seed)
    machine.compute(1600)
    assert machine.used[150:200].count(2) > 35
    assert machine.used[250:600].count(1) > 300  # within a few steps
    assert machine.used[1400:].count(2) > 180  # this change says nothing by itself: a try finds it


def test_a_number_that_somebody_chose_stays() -> None:
    machine = Machine(ThreadChoice(4), eight_on_two, 1)
    machine.compute(100)
    assert set(machine.used) == {4}
    assert machine.choice.used == 4


def test_a_limit_holds_at_once_and_its_end_is_used() -> None:
    machine = Machine(ThreadChoice(8, 8), quiet, 1)
    machine.compute(50)
    machine.choice.limit(3)
    machine.compute(100)
    assert max(machine.used[50:]) == 3
    machine.choice.limit(100)
    machine.compute(300)
    assert max(machine.used[150:]) == 8
    assert machine.choice.used > 3


def test_prompts_and_answers_are_found_apart() -> None:
    """Threads that slow down single tokens beside other work may still speed up the chunks of a prompt."""

    def cost(threads: int, _: int) -> float:
        return 0.5 / threads if machine.rows > 16 else beside_one_on_two(threads, 0)

    machine = Machine(ThreadChoice(2, 2), cost, 1)
    for _ in range(20):
        machine.rows = 256
        machine.compute(4, 256)
        machine.rows = 1
        machine.compute(60, 1)
    used = machine.used[-60:]
    assert used.count(1) > 45
    assert machine.used[-64:-60].count(2) >= 3


def test_one_core_tries_nothing() -> None:
    machine = Machine(ThreadChoice(1, 1), quiet, 1)
    machine.compute(50)
    assert set(machine.used) == {1}


def test_where_a_number_changes_the_outcome_it_changes_only_for_slower_steps() -> None:
    choice, used, chance = ThreadChoice(2, 2), [], random.Random(1)
    for number in range(600):
        used.append(choice.next(1, tied=True))
        busy = number >= 400
        cost = beside_one_on_two(used[-1], 0) if busy else quiet(used[-1], 0)
        choice.took(cost * chance.lognormvariate(0, 0.08))
    assert set(used[:400]) == {2}
    assert used[450:].count(1) > 120


def test_after_a_moment_of_standstill_the_number_from_before_comes_back() -> None:
    """Some steps took five times as long for no reason of ours: any other number looks better then."""
    choice, used = ThreadChoice(2, 2), list[int]()
    for step in range(200):
        used.append(choice.next(1, tied=True))
        choice.took(0.066 if 50 <= step < 54 else 0.013 if used[-1] == 2 else 0.019)
    assert set(used[:50]) == {2}
    assert 1 in used[50:70]  # it looks for help
    assert set(used[100:]) == {2}


def test_beside_other_work_the_number_from_before_is_seldom_tried() -> None:
    choice, used = ThreadChoice(2, 2), list[int]()
    for step in range(2000):
        used.append(choice.next(1, tied=True))
        choice.took(beside_one_on_two(used[-1], step) if step > 50 else 0.006)
    assert used[100:].count(2) < 0.02 * len(used)
    assert used[-1] == 1


def test_a_try_ends_where_the_outcome_begins_to_depend_on_it() -> None:
    choice = ThreadChoice(2, 2)
    for _ in range(20):
        if choice.next(1) == 1:
            break
        choice.took(0.01)
    assert choice.next(1, tied=True) == 2


@pytest.mark.parametrize("start", [0, 4, 8])
def test_tied_steps_of_an_exact_stage_have_the_same_count_on_all_computers(start: int) -> None:
    """Whatever other steps find to be best in the meantime."""
    used, best = set(), set()
    for most in (4, 6, 16):
        choice = ThreadChoice(most, start, exact=True)
        for number in range(400):
            threads = choice.next(1)
            best.add(threads)
            choice.took(0.1 / threads)
            used.add(choice.next(1, tied=True))
            choice.took(0.03 + number * 1e-5)
    assert used == {EXACT_THREADS}
    assert len(best) > 1
    choice.limit(3)  # the owner wants the others
    assert choice.next(1, tied=True) == 3
    assert ThreadChoice(8, 8).next(1, tied=True) == 8


@pytest.mark.parametrize("is_busy", [False, True])
def test_an_exact_stage_returns_to_its_count_when_the_owner_allows_it_again(is_busy: bool) -> None:
    """Even if fewer threads are as fast, because others use that count. Other programs may have started meanwhile."""
    choice = ThreadChoice(8, 8, exact=True)

    def compute(n_steps: int, *, busy: bool = False) -> int:
        for _ in range(n_steps):
            threads = choice.next(1, tied=True)
            choice.took(0.06 * threads if busy and threads > 1 else 0.03)
        return choice.next(1, tied=True)

    assert compute(50) == EXACT_THREADS
    choice.limit(3)
    assert compute(50, busy=is_busy) <= 3
    choice.limit(8)
    assert choice.next(1, tied=True) == EXACT_THREADS
    assert (compute(300, busy=is_busy) < EXACT_THREADS) is is_busy


def test_an_exact_stage_does_not_use_threads_for_which_there_is_no_core() -> None:
    """Two threads beside another program on two cores would take ten times as long as one."""
    choice = ThreadChoice(2, 1, exact=True)
    machine = Machine(choice, lambda threads, _: 0.02 if threads == 1 else 0.25, 1)
    machine.compute(200)
    assert choice.next(1, tied=True) == 1
    slowed = ThreadChoice(4, 4, exact=True)
    used = []
    for number in range(400):  # other programs have started on the cores
        used.append(slowed.next(1, tied=True))
        slowed.took(0.02 if number < 50 else 0.06 * used[-1])
    assert set(used[:50]) == {EXACT_THREADS}
    assert used[-1] < EXACT_THREADS
