"""Tests of the planner's choice with measured machines and links, and of its explanation."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import DoesNotFit, Reason
from app.core.household.link import LinkKind
from app.core.model import Model
from app.core.planner.placement import ALL_TOPOLOGIES, ONE_PIPELINE, Candidate, Part, Plan, Topology, Workload
from app.core.planner.plan import plan
from app.core.planner.topologies import forecast_of, with_replaced_pipeline
from app.core.reasons import said
from testbed.households import MIB, fits, link, machine, model, some_household, speed

LAYERS = model([100 * MIB] * 16, width=2048)
WORK = Workload(1024)


def lender(name: str, lends_mib: float, layer_s: float, round_trip_s: float = 0.0003, rate: float = 117e6) -> Candidate:
    return machine(name, lends_mib, speed(layer_s), link(round_trip_s, rate))


def codes(placed: Plan) -> list[str]:
    return [reason.code for reason in placed.reasons]


def sentences(placed: Plan) -> list[str]:
    return [said(reason) for reason in placed.reasons]


def test_a_slow_machine_is_left_out_and_the_numbers_say_why() -> None:
    host, quick = machine("host", 1200, speed(0.004)), lender("quick", 1500, 0.004)
    old = lender("Old laptop", 1500, 0.08)
    placed = plan(host, [quick, old], LAYERS, WORK)
    assert {stage.name for stage in placed.stages} == {"host", "quick"}
    out = next(reason for reason in placed.reasons if reason.code == "left_out_slower")
    assert placed.forecast is not None
    assert out.facts["without_tok_s"] == placed.forecast.decode_tok_s
    forced = plan(host, [quick, old], LAYERS, WORK, [1, 8, 1, 6])
    assert forced.forecast is not None
    assert forced.forecast.decode_tok_s <= out.number("with_tok_s") < placed.forecast.decode_tok_s
    assert said(out).startswith("Old laptop is not used")


def test_the_same_machine_takes_part_when_the_model_needs_it() -> None:
    host, quick = machine("host", 600, speed(0.004)), lender("quick", 800, 0.004)
    placed = plan(host, [quick, lender("old", 1500, 0.08)], LAYERS, WORK)
    assert {stage.name for stage in placed.stages} == {"host", "quick", "old"}
    assert codes(placed)[0] == "plan_split"


def test_a_far_machine_is_left_out_where_the_way_costs_more_than_it_brings() -> None:
    host = machine("host", 4000, speed(0.004))
    near, far = lender("near", 4000, 0.004), lender("far", 4000, 0.004, 2.0)
    placed = plan(host, [near, far], LAYERS, Workload(1024, users=8), topologies=ONE_PIPELINE)
    assert {stage.name for stage in placed.stages} == {"host", "near"}
    assert codes(placed)[0] == "plan_split_faster"
    assert codes(plan(host, [far], LAYERS, WORK))[0] == "plan_alone_faster"


def test_a_faster_lender_gets_most_layers() -> None:
    placed = plan(machine("host", 4000, speed(0.02)), [lender("fast", 4000, 0.002)], LAYERS, WORK)
    assert [len(stage.layers) for stage in placed.stages] == [1, 14, 1]


def test_one_machine_where_there_is_no_other() -> None:
    placed = plan(machine("host", 4000, speed(0.004)), [], LAYERS, WORK)
    assert placed.topology is Topology.ONE_MACHINE
    assert codes(placed) == ["plan_fits_host"]


def test_replicas_are_chosen_when_people_wait_unless_one_pipeline_is_asked_for() -> None:
    host, lenders = machine("host", 4000, speed(0.004)), [lender("attic", 4000, 0.004, 0.01, 5e6)]
    work = Workload(1024, users=8)
    assert plan(host, lenders, LAYERS, WORK).topology is not Topology.REPLICAS
    placed = plan(host, lenders, LAYERS, work, topologies=ONE_PIPELINE)
    known = {alternative.topology: alternative.forecast.request_s for alternative in placed.alternatives}
    assert placed.topology is not Topology.REPLICAS
    assert known[Topology.REPLICAS] < known[placed.topology]
    routed = plan(host, lenders, LAYERS, work)
    assert routed == plan(host, lenders, LAYERS, work, topologies=ALL_TOPOLOGIES)
    assert routed.topology is Topology.REPLICAS
    assert codes(routed)[0] == "plan_replicas"
    assert [(s.name, len(s.layers)) for s in routed.stages] == [("host", 16), ("attic", 16)]
    assert [part.topology for part in routed.parts] == [Topology.ONE_MACHINE] * 2
    assert [part.stages[0].name for part in routed.parts] == ["host", "attic"]
    assert {part.host for part in routed.parts} == {host.id}
    assert placed.parts == (placed,)


def test_a_person_chooses_the_shape_also_of_machines_that_were_not_measured() -> None:
    host, attic = machine("host", 4000, None), machine("attic", 4000, None)
    chosen = frozenset({Topology.REPLICAS})
    placed = plan(host, [attic, machine("small", 300, None)], LAYERS, WORK, topologies=chosen)
    assert placed.topology is Topology.REPLICAS
    assert {stage.name for stage in placed.stages} == {"host", "attic"}
    assert placed.forecast is None
    assert codes(placed)[0] == "plan_replicas_chosen"
    known = plan(
        replace(host, speed=speed(0.004)), [lender("attic", 4000, 0.004)], LAYERS, WORK,
        topologies=chosen,
    )  # fmt: skip
    assert known.forecast is not None


def test_a_part_of_several_may_go_to_a_machine_that_came_later() -> None:
    host, whole = machine("host", 900, speed(0.004)), lender("whole", 4000, 0.004)
    before, late = lender("before", 1500, 0.004), lender("late", 1500, 0.002)
    several = frozenset({Topology.REPLICAS})
    mixed = plan(host, [before, whole], LAYERS, Workload(1024, 4), [2, 12, 2], topologies=several)
    assert mixed.topology is Topology.REPLICAS
    part = plan(host, [late], LAYERS, Workload(1024, 4), [2, 12, 2])
    now = with_replaced_pipeline(mixed, 0, part, LAYERS)
    assert [stage.name for stage in now.stages] == ["host", "late", "host", "whole"]
    assert now.forecast is not None
    assert {candidate.name for candidate in now.machines} == {"host", "before", "whole", "late"}
    assert now.host == host.id


def test_the_forecast_of_replicas_is_of_those_that_are_there() -> None:
    host, work = machine("host", 4000, speed(0.004)), Workload(256, users=3)
    candidates = [lender("attic", 4000, 0.004), lender("shed", 4000, 0.004)]
    three = plan(host, candidates, LAYERS, work, topologies=frozenset({Topology.REPLICAS}))
    two = plan(host, candidates[:1], LAYERS, work, topologies=frozenset({Topology.REPLICAS}))
    left = [stage for stage in three.stages if stage.name != "shed"]
    assert three.forecast is not None
    assert forecast_of(three, three.stages, LAYERS) == three.forecast
    now = forecast_of(three, left, LAYERS)
    assert now == two.forecast
    assert now is not None
    assert now.together_tok_s < three.forecast.together_tok_s
    assert forecast_of(three, [], LAYERS) is None


def runs(placed: Plan) -> list[list[tuple[str, int]]]:
    """Return the number of layers per machine of each pipeline."""
    return [[(stage.name, len(stage.layers)) for stage in part.stages] for part in placed.parts]


def test_a_split_serves_beside_a_machine_that_holds_the_whole_model() -> None:
    """The host cannot hold it, a far lender can: two who ask at once get both."""
    host, near = machine("host", 1300, speed(0.004)), lender("near", 1300, 0.004)
    large = lender("large", 4000, 0.004, 0.1)
    work = Workload(256, users=2)
    placed = plan(host, [near, large], LAYERS, work)
    assert placed.topology is Topology.REPLICAS
    assert codes(placed)[0] == "plan_replicas_mixed"
    assert sentences(placed)[0].startswith("The model is split over 2 machines, with a full copy on 1 more. With 2 ")
    first, second = runs(placed)
    assert [name for name, _ in first] == ["host", "near", "host"]
    assert second == [("large", 16)]
    assert placed.forecast is not None
    split = plan(host, [near, large], LAYERS, work, topologies=ONE_PIPELINE)
    assert split.forecast is not None
    assert placed.forecast.request_s < split.forecast.request_s
    assert plan(host, [near, large], LAYERS, replace(work, users=1)).topology is Topology.SPLIT


def test_machines_too_small_for_all_of_it_still_help_beside_replicas() -> None:
    host, large = machine("host", 4000, speed(0.004)), lender("large", 4000, 0.004, 0.1)
    small = [lender(f"small-{n}", 1300, 0.004) for n in range(2)]
    placed = plan(host, [large, *small], LAYERS, Workload(256, users=8))
    first, second = runs(placed)
    assert {name for name, _ in first} == {"host", "small-0", "small-1"}
    assert second == [("large", 16)]


def test_a_person_gives_the_split_and_has_the_model_whole_elsewhere_too() -> None:
    host, near, large = (machine(name, 4000, None) for name in ("host", "near", "large"))
    chosen = frozenset({Topology.REPLICAS})
    placed = plan(host, [near, large], LAYERS, WORK, [5, 6, 5], topologies=chosen)
    assert runs(placed) == [[("host", 5), ("near", 6), ("host", 5)], [("large", 16)]]
    assert codes(placed) == ["plan_replicas_chosen_mixed"]
    assert placed.machines == (host, near, large)
    assert runs(plan(host, [near], LAYERS, WORK, [16], topologies=chosen)) == [[("host", 16)], [("near", 16)]]
    with pytest.raises(DoesNotFit) as error:
        plan(host, [near], LAYERS, WORK, [5, 6, 5], topologies=chosen)
    assert error.value.reason.code == "replicas_need_two"


def test_unmeasured_a_host_that_is_too_small_splits_with_whom_it_must() -> None:
    host, near = machine("host", 1000, None), machine("near", 1300, None)
    large, larger = machine("large", 4000, None), machine("larger", 5000, None)
    chosen = frozenset({Topology.REPLICAS})
    placed = plan(host, [larger, near, large], LAYERS, WORK, topologies=chosen)
    assert [{name for name, _ in part} for part in runs(placed)] == [{"host", "near"}, {"large"}, {"larger"}]
    placed = plan(host, [larger, large], LAYERS, WORK, topologies=chosen)
    assert [{name for name, _ in part} for part in runs(placed)] == [{"host", "large"}, {"larger"}]


def test_a_split_that_was_asked_for_needs_no_measurement() -> None:
    """The host would hold all of it; without that order it does."""
    host, attic = machine("host", 4000, None), machine("attic", 4000, None)
    chosen = frozenset({Topology.SPLIT})
    placed = plan(host, [attic], LAYERS, WORK, topologies=chosen)
    assert [stage.name for stage in placed.stages] == ["host", "attic", "host"]
    assert codes(placed)[0] == "plan_split_chosen"
    assert plan(host, [attic], LAYERS, WORK).topology is Topology.ONE_MACHINE
    for candidates in ([], [machine("attic", 1, None)]):
        with pytest.raises(DoesNotFit) as error:
            plan(host, candidates, LAYERS, WORK, topologies=chosen)
        assert error.value.reason.code == "shape_not_split"
        assert said(error.value)


@pytest.mark.parametrize(
    ("host_mib", "shape", "code"),
    [(1000, Topology.ONE_MACHINE, "shape_not_alone"), (1000, Topology.REPLICAS, "replicas_need_two")],
)
def test_a_shape_that_cannot_be_is_said(host_mib: int, shape: Topology, code: str) -> None:
    host, attic = machine("host", host_mib, None), machine("attic", 4000, None)
    with pytest.raises(DoesNotFit) as error:
        plan(host, [attic], LAYERS, WORK, topologies=frozenset({shape}))
    assert error.value.reason.code == code
    assert said(error.value)


@pytest.mark.parametrize(
    ("host_mib", "layer_s", "other", "expected"),
    [
        (1000, 0.004, lender("attic", 4000, 0.003), Part.MACHINE),
        (4000, 0.03, lender("attic", 4000, 0.0001, 0.3), Part.LINK),
        (700, 0.001, lender("attic", 4000, 0.02), Part.MEMORY),
    ],
)
def test_the_bottleneck_is_named(host_mib: float, layer_s: float, other: Candidate, expected: Part) -> None:
    host = machine("host", host_mib, speed(layer_s))
    placed = plan(host, [other], LAYERS, WORK)
    assert placed.forecast is not None
    assert placed.forecast.bottleneck.part is expected
    assert codes(placed)[1] == f"pace_{expected}"


def test_one_machine_alone_is_not_said_to_compute_all_the_time() -> None:
    placed = plan(machine("host", 4000, speed(0.004)), [], LAYERS, WORK)
    assert placed.forecast is not None
    assert placed.forecast.bottleneck.part is Part.MACHINE
    assert not [code for code in codes(placed) if code.startswith("pace_")]


def test_what_was_not_measured_is_placed_by_memory_and_said() -> None:
    host, attic = machine("host", 1000, None), machine("attic", 1500, None)
    placed = plan(host, [attic], LAYERS, WORK)
    assert placed.forecast is None
    assert codes(placed) == ["plan_split", "plan_unmeasured", "plan_unmeasured"]
    measured = replace(host, speed=speed(0.004))
    placed = plan(measured, [attic], LAYERS, WORK)
    assert [said(reason) for reason in placed.reasons][1:] == [
        "attic has not been measured yet, so the layers are distributed by memory alone."
    ]


def test_an_unmeasured_machine_is_left_out_while_the_measured_ones_are_enough() -> None:
    host, attic = machine("host", 4000, speed(0.004)), machine("attic", 4000, None)
    placed = plan(host, [attic], LAYERS, WORK)
    assert placed.forecast is not None
    assert "attic is not used because it has not been measured yet." in sentences(placed)


def test_a_machine_that_lends_nothing_is_left_out_for_that() -> None:
    host, attic = machine("host", 4000, speed(0.004)), machine("attic", 0, None)
    placed = plan(host, [replace(attic, is_lending=False)], LAYERS, WORK)
    assert "attic is not used because it is not lending any memory now." in sentences(placed)


def test_a_machine_without_room_is_left_out_and_said() -> None:
    host, small = machine("host", 4000, speed(0.004)), lender("small", 90, 0.004)
    said_of = sentences(plan(host, [small], LAYERS, WORK))
    assert "small is not used because the 90.0 MiB it lends is too little for any part of the model." in said_of


def test_a_family_that_runs_whole_says_so() -> None:
    whole = model([100 * MIB] * 4, boundaries=())
    placed = plan(machine("host", 4000, speed(0.004)), [lender("attic", 4000, 0.001)], whole, WORK)
    assert placed.topology is Topology.ONE_MACHINE


def test_a_forced_split_has_its_forecast() -> None:
    host, attic = machine("host", 4000, speed(0.004)), lender("attic", 4000, 0.004)
    placed = plan(host, [attic], LAYERS, WORK, [1, 8, 7])
    assert codes(placed) == ["plan_forced"]
    assert placed.forecast is not None
    assert placed.forecast.bottleneck.part is Part.MACHINE


@given(seed=st.integers(0, 1 << 32))
def test_a_plan_is_legal_and_never_over_memory(seed: int) -> None:
    host, lenders, made, work = some_household(Random(seed), 6, 20)
    try:
        placed = plan(host, lenders, made, work)
    except DoesNotFit:
        return
    assert fits(placed.stages, {candidate.id: candidate for candidate in [host, *lenders]})
    if placed.topology is Topology.REPLICAS:
        assert work.users > 1
        assert all(len(part.stages) == 1 for part in placed.parts[1:])
        assert sum(len({stage.machine for stage in part.stages}) for part in placed.parts) == len(
            {stage.machine for stage in placed.stages}
        )
    for part in placed.parts:
        runs = [stage.layers for stage in part.stages]
        assert (runs[0].first, runs[-1].last) == (0, made.n_layers)
        assert all(a.last == b.first and b.first in made.cuts.boundaries for a, b in pairwise(runs))
        held = [stage.machine for stage in part.stages[:-1]]
        assert len(set(held)) == len(held)
    first = placed.parts[0].stages
    assert first[0].machine == first[-1].machine == host.id


@given(seed=st.integers(0, 1 << 32), chance=st.randoms(use_true_random=False))
def test_the_order_of_the_lenders_does_not_matter(seed: int, chance: Random) -> None:
    host, lenders, made, work = some_household(Random(seed), 6, 16)
    shuffled = chance.sample(lenders, len(lenders))
    given_first = outcome(host, lenders, made, work)
    assert outcome(host, shuffled, made, work) == given_first


def outcome(host: Candidate, lenders: list[Candidate], made: Model, work: Workload) -> Plan | Reason:
    """The plan, or why there is none."""
    try:
        return plan(host, lenders, made, work)
    except DoesNotFit as error:
        return error.reason


def improved(machine: Candidate, label: str) -> Candidate:
    """The same machine with more of one thing."""
    match label:
        case "memory":
            return replace(machine, lends_bytes=machine.lends_bytes + 150 * MIB)
        case "speed" if machine.speed is not None:
            item = machine.speed
            return replace(machine, speed=replace(item, layer_s=0.7 * item.layer_s, chunk_s=0.8 * item.chunk_s))
        case "link" if machine.link is not None:
            one_link = machine.link
            quicker = replace(one_link, round_trip_s=one_link.round_trip_s / 2,
                              out_bytes_per_s=3 * one_link.out_bytes_per_s)  # fmt: skip
            return replace(machine, link=quicker)
        case "cable" if machine.link is not None:
            wired = replace(machine.link, kind=LinkKind.ETHERNET, far_kind=LinkKind.ETHERNET)
            return replace(machine, link=wired)
    return machine


@given(
    seed=st.integers(0, 1 << 32), choice=st.integers(0, 4), label=st.sampled_from(["memory", "speed", "link", "cable"])
)
def test_better_machines_never_make_the_forecast_worse(seed: int, choice: int, label: str) -> None:
    host, lenders, made, work = some_household(Random(seed), 5, 16)
    try:
        before = plan(host, lenders, made, work).forecast
    except DoesNotFit:
        return
    machines = [host, *lenders]
    choice %= len(machines)
    machines[choice] = improved(machines[choice], label)
    after = plan(machines[0], machines[1:], made, work).forecast
    assert before is not None
    assert after is not None
    assert after.request_s <= before.request_s * (1 + 1e-8)


@given(seed=st.integers(0, 1 << 32))
def test_another_machine_never_makes_the_forecast_worse(seed: int) -> None:
    host, lenders, made, work = some_household(Random(seed), 5, 16)
    if not lenders:
        return
    try:
        fewer = plan(host, lenders[1:], made, work).forecast
    except DoesNotFit:
        return
    more = plan(host, lenders, made, work).forecast
    assert fewer is not None
    assert more is not None
    assert more.request_s <= fewer.request_s * (1 + 1e-8)
