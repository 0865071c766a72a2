"""Plans for machines whose graphics cards have less memory than they lend in all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.families.effort_reader import stand_in_effort, stand_in_shape
from app.core.errors import DoesNotFit
from app.core.planner.forecast import Step, cost, fast_layers, forecast, scaled_speed
from app.core.planner.placement import Candidate, Plan, Topology, Workload
from app.core.planner.plan import plan
from app.core.planner.speed_estimates import MeasuredLayer, estimate_speed
from app.core.planner.split_search import SplitSearch, _breaks
from app.core.planner.stage_memory import WORK_FLOOR_BYTES, fixed_bytes, planned_stage
from app.core.planner.work_shape import ShapeBytes, WorkShape, measured_work
from backends.contract import Layers, Role, scored_rows
from testbed.households import MIB, every_split, link, machine, model, speed

MADE, WORK = model([100 * MIB] * 10), Workload(64)
FAST, SLOW = 0.001, 0.01
FIXED = fixed_bytes(Role.WHOLE, MADE, WORK) / MIB


def with_card(name: str, card_mib: float, main_mib: float, *, measured: bool = True, far: bool = False) -> Candidate:
    made = machine(name, card_mib + main_mib, speed(FAST), link() if far else None)
    made = replace(made, card_bytes=int(card_mib * MIB))
    return replace(made, speed=replace(speed(FAST), processor=speed(SLOW))) if measured else made


def test_the_layers_that_fit_cost_as_on_the_card_and_the_others_as_on_the_processor() -> None:
    host = with_card("m0", FIXED + 405, 2000)
    assert fast_layers(host, MADE, WORK, Role.WHOLE) == 4
    made = cost(host, Step(1, 0, 1), MADE, WORK, Role.WHOLE)
    assert made.compute_s(4) - made.compute_s(3) == pytest.approx(FAST)
    assert made.compute_s(5) - made.compute_s(4) == pytest.approx(SLOW)
    assert cost(replace(host, card_bytes=0), Step(1, 0, 1), MADE, WORK, Role.WHOLE).fast_layers == 0


def test_a_corrected_or_estimated_speed_keeps_that_of_the_processor() -> None:
    both = replace(speed(FAST), processor=speed(SLOW))
    assert scaled_speed(both, 2).processor == scaled_speed(speed(SLOW), 2)
    effort = stand_in_effort(stand_in_shape("Q4_K"))
    estimated = estimate_speed(MeasuredLayer(both, effort, 64), effort)
    assert estimated.processor == estimate_speed(MeasuredLayer(speed(SLOW), effort, 64), effort)


@pytest.mark.parametrize(
    ("fast_layers", "unit", "ends"), [(5, 2, (2, 3)), (4, 2, (2,)), (2, 2, ()), (5, 1, (5,)), (20, 2, ())]
)
def test_a_block_that_a_card_holds_in_part_ends_the_fast_ones(
    fast_layers: int, unit: int, ends: tuple[int, ...]
) -> None:
    assert _breaks(fast_layers, unit, 9) == ends


def test_a_slower_card_than_its_processor_gains_nothing_by_overflowing() -> None:
    host = with_card("m0", FIXED + 405, 2000)
    host = replace(host, speed=replace(speed(SLOW), processor=speed(FAST)))
    made = cost(host, Step(1, 0, 1), MADE, WORK, Role.WHOLE)
    assert made.compute_s(9) - made.compute_s(8) == pytest.approx(SLOW)


def test_layers_go_to_another_card_before_they_go_to_the_processor() -> None:
    placed = plan(with_card("m0", FIXED + 600, 2000), [with_card("m1", 900, 2000, far=True)], MADE, WORK)
    assert placed.topology is Topology.SPLIT
    assert "plan_overflow" not in [reason.code for reason in placed.reasons]


def test_a_model_that_no_card_has_room_for_is_placed_and_told() -> None:
    host = with_card("m0", FIXED + 505, 2000)
    placed = plan(host, [], MADE, WORK)
    (overflow,) = [reason for reason in placed.reasons if reason.code == "plan_overflow"]
    assert overflow.facts["machine"] == "m0"
    assert 40 <= int(overflow.facts["percent"]) <= 55  # type: ignore[arg-type]
    whole = forecast(placed.stages, {host.id: replace(host, card_bytes=None)}, MADE, WORK)
    assert placed.forecast is not None
    assert whole is not None
    assert placed.forecast.decode_tok_s < whole.decode_tok_s / 2


def test_a_split_that_a_person_chose_tells_what_the_card_has_no_room_for() -> None:
    lender = with_card("m1", FIXED + 505, 2000, far=True)
    for split, n_overflows in (([1, 8, 1], 1), ([4, 2, 4], 0)):
        placed = plan(with_card("m0", 4000, 0), [lender], MADE, WORK, split)
        overflows = [reason.facts["machine"] for reason in placed.reasons if reason.code == "plan_overflow"]
        assert overflows == ["m1"] * n_overflows, split


def test_a_processor_that_was_not_measured_gives_no_forecast_but_a_place() -> None:
    placed = plan(with_card("m0", FIXED + 505, 2000, measured=False), [], MADE, WORK)
    assert placed.forecast is None
    assert "plan_overflow" in [reason.code for reason in placed.reasons]


def test_by_memory_alone_cards_are_preferred() -> None:
    host = replace(with_card("m0", FIXED + 600, 2000), speed=None)
    lender = replace(with_card("m1", 900, 0, far=True), speed=None)
    placed = plan(host, [lender], MADE, WORK)
    assert placed.topology is Topology.SPLIT
    assert "plan_overflow" not in [reason.code for reason in placed.reasons]
    assert plan(host, [], MADE, WORK).topology is Topology.ONE_MACHINE
    with pytest.raises(DoesNotFit):
        plan(replace(host, lends_bytes=host.card_bytes or 0), [], MADE, WORK)


@pytest.mark.parametrize("n_fast", [2, 3, 4])
def test_layers_are_divided_by_what_a_further_one_costs_on_each_machine(n_fast: int) -> None:
    """The machine with the fastest card has by far the slowest processor."""
    made, work = model([100 * MIB] * 8), Workload(64, prompt_tokens=600, output_tokens=64)
    machines = []
    for number, (card, card_s, processor_s) in enumerate([(n_fast, 0.001, 0.05), (2, 0.002, 0.004), (2, 0.0015, 0.5)]):
        candidate = with_card(f"m{number}", 250 + 100.5 * card, 5000, far=number > 0)
        machines.append(replace(candidate, speed=replace(speed(card_s), processor=speed(processor_s))))
    host, *lenders = machines
    search = SplitSearch(host, lenders, made, work)
    best = search.best(search.all_sets())
    by_id = {candidate.id: candidate for candidate in machines}
    forecasts = [forecast(stages, by_id, made, work) for stages in every_split(host, lenders, made, work)]
    assert best is not None
    assert best.request_s == pytest.approx(min(known.request_s for known in forecasts if known))


def test_a_plan_counts_with_the_working_memory_that_was_measured_on_each_card() -> None:
    """Measured, the same card holds one layer more or less; other roles keep their estimates."""
    host, far = with_card("m0", FIXED + 450, 2000), with_card("m1", FIXED + 450, 2000, far=True)
    whole = planned_stage(host, Role.WHOLE, MADE.layers, MADE, WORK)
    for more, n_fast in ((-100 * MIB, 5), (100 * MIB, 3)):
        measured = ((Role.WHOLE, whole.work_bytes - 4 * scored_rows(WORK.slots) * MADE.n_vocab + more),)
        known = replace(host, measured_work=measured)
        assert fast_layers(known, MADE, WORK, Role.WHOLE) == n_fast
        assert planned_stage(known, Role.WHOLE, MADE.layers, MADE, WORK).work_bytes == whole.work_bytes + more
        assert fast_layers(known, MADE, WORK, Role.LAST) == fast_layers(host, MADE, WORK, Role.LAST)
        percents = [_overflow_percent(plan(each, [], MADE, WORK)) for each in (host, known)]
        assert (percents[0] > percents[1]) == (more < 0)
    middle = fixed_bytes(Role.MIDDLE, MADE, WORK)
    known = replace(far, measured_work=((Role.MIDDLE, 1),))
    assert fixed_bytes(Role.MIDDLE, MADE, WORK, known) < middle == fixed_bytes(Role.MIDDLE, MADE, WORK, far)


def test_what_was_measured_for_a_stage_is_for_roles_of_the_same_sizes() -> None:
    host = with_card("m0", FIXED + 450, 2000)
    last = WorkShape.planned(MADE, WORK, Role.LAST, Layers(6, 10))
    known = measured_work(host, MADE, WORK, [ShapeBytes(last, 5 * MIB)])
    assert known == ((Role.LAST, WORK_FLOOR_BYTES + 5 * MIB), (Role.WHOLE, WORK_FLOOR_BYTES + 5 * MIB))
    assert measured_work(host, MADE, replace(WORK, users=2), [ShapeBytes(last, 5 * MIB)]) == ()
    assert measured_work(replace(host, processor_family="x"), MADE, WORK, [ShapeBytes(last, 5 * MIB)]) == ()


def _overflow_percent(placed: Plan) -> int:
    (overflow,) = [reason for reason in placed.reasons if reason.code == "plan_overflow"]
    return int(str(overflow.facts["percent"]))
