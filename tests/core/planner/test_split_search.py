"""The best split against trying everything, and how little has to be looked at for it."""

from __future__ import annotations

from random import Random

import pytest

from app.core.errors import DoesNotFit
from app.core.planner.forecast import forecast
from app.core.planner.placement import ONE_PIPELINE, Candidate, Workload
from app.core.planner.plan import plan
from app.core.planner.split_search import SplitSearch
from testbed.households import (
    MIB,
    every_split,
    fits,
    least_request_s,
    link,
    machine,
    model,
    some_household,
    some_link,
    some_speed,
    speed,
)

HOUSEHOLDS = 2400


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_the_planner_is_never_worse_than_trying_everything(part: int) -> None:
    n_split = n_none = 0
    for seed in range(part * HOUSEHOLDS // 4, (part + 1) * HOUSEHOLDS // 4):
        host, lenders, made, work = some_household(Random(seed))
        least = least_request_s(host, lenders, made, work)
        try:
            placed = plan(host, lenders, made, work, topologies=ONE_PIPELINE)
        except DoesNotFit:
            assert least is None, f"seed {seed}: {least} s is possible"
            n_none += 1
            continue
        assert least is not None, f"seed {seed}: the plan does not fit"
        assert placed.forecast is not None
        assert placed.forecast.request_s == pytest.approx(least, rel=1e-8), f"seed {seed}"
        machines = {candidate.id: candidate for candidate in [host, *lenders]}
        assert fits(placed.stages, machines), f"seed {seed}"
        edges = [stage.layers.first for stage in placed.stages[1:]]
        assert set(edges) <= set(made.cuts.boundaries), f"seed {seed}"
        assert made.may_cut(tuple(stage.layers for stage in placed.stages)), f"seed {seed}"
        n_split += len(placed.stages) > 1
    assert n_split > HOUSEHOLDS // 16, "the households are no test of splits"
    assert n_none < HOUSEHOLDS // 4 // 2


def test_what_is_found_costs_what_the_forecast_says() -> None:
    for seed in range(200):
        host, lenders, made, work = some_household(Random(seed))
        search = SplitSearch(host, lenders, made, work)
        split = search.best(search.all_sets())
        if split:
            machines = {candidate.id: candidate for candidate in [host, *lenders]}
            known = forecast(split.stages, machines, made, work)
            assert known is not None
            assert split.request_s == pytest.approx(known.request_s, rel=1e-9), f"seed {seed}"


def test_with_graphics_cards_the_planner_is_never_worse_than_trying_everything() -> None:
    """The processor computes the layers that a card has no room for, so the cost of a further layer rises once."""
    n_split = n_overflow = 0
    for seed in range(250):
        host, lenders, made, work = some_household(Random(seed), cards=True)
        least = least_request_s(host, lenders, made, work)
        try:
            placed = plan(host, lenders, made, work, topologies=ONE_PIPELINE)
        except DoesNotFit:
            assert least is None, f"seed {seed}: {least} s is possible"
            continue
        assert least is not None
        assert placed.forecast is not None
        assert placed.forecast.request_s == pytest.approx(least, rel=1e-8), f"seed {seed}"
        n_split += len(placed.stages) > 1
        n_overflow += any(reason.code == "plan_overflow" for reason in placed.reasons)
    assert n_split > 40
    assert n_overflow > 40


def test_only_asked_sets_are_searched() -> None:
    host, lenders = machine("m0", 5000, speed(0.01)), _lenders(Random(3), 3, 5000)
    made, work = model([100 * MIB] * 6), Workload(1024)
    search = SplitSearch(host, lenders, made, work)
    split = search.best([(0, 2)])
    assert split is not None
    assert {stage.name for stage in split.stages} == {"m0", "m2"}
    machines = {candidate.id: candidate for candidate in [host, *lenders]}
    least = min(
        known.request_s
        for stages in every_split(host, [lenders[1]], made, work)
        if (known := forecast(stages, machines, made, work))
    )
    assert split.request_s == pytest.approx(least)
    assert search.best([(0, 2)], below_s=split.request_s) is None


def _lenders(chance: Random, n: int, lends_mib: float) -> list[Candidate]:
    return [machine(f"m{i}", lends_mib, some_speed(chance), some_link(chance)) for i in range(1, n + 1)]


@pytest.mark.parametrize(("n_machines", "n_layers"), [(8, 80), (10, 126)])
@pytest.mark.parametrize("plenty", [1.3, 3.0, 12.0])
@pytest.mark.parametrize("users", [1, 8])
def test_large_households_need_few_looks(n_machines: int, n_layers: int, plenty: float, users: int) -> None:
    for seed in range(3):
        chance = Random(seed)
        # as quantized files are: every third layer, and those at both ends, are larger
        eighth = n_layers // 8
        layers = [(230 if n < eighth or n >= 7 * eighth or n % 3 == 2 else 200) * MIB for n in range(n_layers)]
        made, work = model(layers, width=8192), Workload(2048, users)
        each = 300 + plenty * 215 * n_layers / n_machines
        lenders = _lenders(chance, n_machines - 1, each)
        search = SplitSearch(machine("m0", each, some_speed(chance)), lenders, made, work)
        assert search.best(search.all_sets()) is not None, f"seed {seed}"
        assert search.exact
        assert search.visited < 5000, f"seed {seed}"


def test_layers_of_a_block_stay_together() -> None:
    made = model([100 * MIB] * 12, boundaries=(4, 8))
    host, lender = machine("m0", 5000, speed(0.1)), machine("m1", 5000, speed(0.001), link())
    search = SplitSearch(host, [lender], made, Workload(1024))
    split = search.best(search.all_sets())
    assert split is not None
    assert [(s.layers.first, s.layers.last) for s in split.stages] == [(0, 4), (4, 8), (8, 12)]


def test_an_order_is_found_when_only_one_fits() -> None:
    # the small lender fits only where the layers are small, at the end
    made = model([100 * MIB, 300 * MIB, 300 * MIB, 50 * MIB, 50 * MIB, 100 * MIB])
    host = machine("m0", 450, speed(0.01))
    small, large = machine("m1", 220, speed(0.01), link()), machine("m2", 720, speed(0.01), link())
    search = SplitSearch(host, [small, large], made, Workload(64))
    split = search.best(search.all_sets())
    assert split is not None
    assert [stage.name for stage in split.stages] == ["m0", "m2", "m1", "m0"]


def test_where_very_many_counts_fit_in_no_order_the_search_ends() -> None:
    chance = Random(2)
    layers = [chance.choice([100, 100, 200, 340, 600]) * MIB for _ in range(60)]
    made = model(layers, tuple(n for n in range(1, 60) if chance.random() < 0.5))
    each = 1.25 * sum(layers) / MIB / 8 + 300
    lenders = _lenders(chance, 7, each)
    search = SplitSearch(machine("m0", each + 300, some_speed(chance)), lenders, made, Workload(64))
    split = search.best(search.all_sets())
    if split is not None:
        machines = {candidate.id: candidate for candidate in [machine("m0", each + 300, None), *lenders]}
        assert fits(split.stages, machines)
    assert search.visited < 50_000
