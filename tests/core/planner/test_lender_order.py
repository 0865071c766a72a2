"""Orders of runs against trying every one."""

from __future__ import annotations

from itertools import permutations
from random import Random

from app.core.planner.split_search import Arrangement, arrange, reachable_ends


def stands(arrangement: Arrangement, firsts: int, starts: list[int], lengths: list[int]) -> bool:
    """Return whether every run of an arrangement begins at an allowed layer."""
    edge = arrangement.first_run
    legal = bool(firsts >> edge & 1)
    for lender in arrangement.order:
        legal = legal and bool(starts[lender] >> edge & 1)
        edge += lengths[lender]
    return legal and sorted(arrangement.order) == list(range(len(lengths)))


def test_an_order_is_found_exactly_when_there_is_one() -> None:
    n_found = 0
    for seed in range(400):
        chance = Random(seed)
        n = chance.randint(1, 4)
        firsts = chance.getrandbits(6)
        starts = [chance.getrandbits(20) for _ in range(n)]
        lengths = [chance.randint(1, 4) for _ in range(n)]
        every = (Arrangement(edge, order) for edge in range(6) for order in permutations(range(n)))
        there = any(stands(item, firsts, starts, lengths) for item in every)
        arrangement = arrange(firsts, starts, lengths)
        assert (arrangement is not None) == there, f"seed {seed}"
        assert arrangement is None or stands(arrangement, firsts, starts, lengths), f"seed {seed}"
        n_found += there
    assert 40 < n_found < 360


def test_the_edges_that_runs_can_reach() -> None:
    anywhere = (1 << 20) - 1
    assert reachable_ends(0b10, [[(2, anywhere), (3, anywhere)]]) == 0b11000
    assert reachable_ends(0b10, [[(2, anywhere)], [(1, 0b1000)]]) == 0b10000
    assert reachable_ends(0b10, [[(2, 0b100)]]) == 0
