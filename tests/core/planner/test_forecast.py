"""The forecast, against sums done by hand and against what the pool was measured to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.household.link import LinkKind
from app.core.planner.forecast import (
    LAST_LAYER_SAVING,
    Step,
    forecast,
    step_layer_s,
    users_per_pipeline,
    whole_forecast,
)
from app.core.planner.placement import Candidate, Forecast, Part, Workload
from app.core.planner.speed_estimates import Speed
from app.core.planner.stage_memory import split_stages
from backends.contract import NumberFormat
from testbed.households import MIB, link, machine, model

# one pinned core and a 0.75 B model of 16 layers, head like four (README): 65 ms a token, 0.93 s a chunk of 64
CORE = Speed(
    layer_s=0.00325, layer_row_s=0.00117, position_s=0.0, chunk_s=0.0581,
    chunk_position_s=0.0, step_s=0.0,
    head_s=0.013, head_row_s=0.0047,
)  # fmt: skip
QUICK = link(0.0002, 1e9)
MODEL = model([25 * MIB] * 16, width=2048)


def of(split: list[int], machines: list[Candidate], work: Workload, made: object = MODEL) -> Forecast:
    edges = [sum(split[:n]) for n in range(len(split) + 1)]
    holders = machines if len(split) == 1 else [machines[0], *machines[1:], machines[0]]
    stages = split_stages(holders, edges, MODEL, work)
    known = forecast(stages, {candidate.id: candidate for candidate in machines}, MODEL, work)
    assert known is not None
    return known


def core(name: str, speed: Speed = CORE) -> Candidate:
    return machine(name, 9000, speed, None if name == "m0" else QUICK)


def test_one_machine() -> None:
    known = of([16], [core("m0")], Workload(1024))
    assert known.decode_tok_s == pytest.approx(1 / (16 * 0.00325 + 0.013))
    assert known.ttft_s == pytest.approx(8 * (16 - LAST_LAYER_SAVING) * 0.0581 + 0.013)
    assert known.request_s == pytest.approx(known.ttft_s + 255 / known.decode_tok_s)
    assert (known.bottleneck.part, known.bottleneck.name) == (Part.MACHINE, "m0")
    assert known.bottleneck.share == pytest.approx(1.0)


def test_two_machines_do_as_the_benchmark_measured() -> None:
    item = of([1, 8, 7], [core("m0"), core("m1")], Workload(1024))
    assert item.ttft_s == pytest.approx(4.2, rel=0.05)
    assert 1e3 / item.decode_tok_s == pytest.approx(65, rel=0.08)
    eight = Workload(1024, users=8)
    assert of([1, 9, 6], [core("m0"), core("m1")], eight).together_tok_s == pytest.approx(61, rel=0.15)
    assert of([16], [core("m0")], eight).together_tok_s == pytest.approx(34, rel=0.1)


def test_a_link_costs_its_round_trip_and_its_bytes() -> None:
    slow = replace(core("m1"), link=replace(QUICK, round_trip_s=0.02, out_bytes_per_s=1e6, in_bytes_per_s=2e6))
    work = Workload(1024)
    near, far = (of([1, 8, 7], [core("m0"), candidate], work) for candidate in (core("m1"), slow))
    row = NumberFormat.F16.row_bytes(2048)
    way_s = 0.02 + row / 1e6 + row / 2e6
    quick_s = 0.0002 + row / 1e9 + row / 0.9e9
    assert 1 / far.decode_tok_s - 1 / near.decode_tok_s == pytest.approx(way_s - quick_s)
    share = next(share for share in far.shares if share.part is Part.LINK)
    chunk_s = 0.02 + 64 * row / 1e6 + 64 * row / 2e6
    assert share.busy_s == pytest.approx(8 * chunk_s + 255 * way_s)
    assert share.share == pytest.approx(share.busy_s / far.request_s)


def test_chunks_follow_at_the_pace_of_the_slowest() -> None:
    slow = replace(core("m1"), link=replace(QUICK, out_bytes_per_s=0.3e6, in_bytes_per_s=0.4e6))
    known = of([1, 8, 7], [core("m0"), slow], Workload(1024))
    row = NumberFormat.F16.row_bytes(2048)
    out_s, in_s = 64 * row / 0.3e6, 64 * row / 0.4e6
    first = (16 - LAST_LAYER_SAVING) * 0.0581 + 0.0002 + out_s + in_s + 0.013
    two_under_way = (8 * 0.0581 + 0.0002 + out_s + in_s) / 2
    assert known.ttft_s == pytest.approx(first + 7 * max(out_s, two_under_way))
    on_air = replace(slow, link=replace(slow.link, far_kind=LinkKind.WIFI))  # type: ignore[type-var]
    known = of([1, 8, 7], [core("m0"), on_air], Workload(1024))
    assert known.ttft_s == pytest.approx(first + 7 * (out_s + in_s))


def test_many_answers_share_a_way_that_is_long() -> None:
    far = replace(core("m1"), link=replace(QUICK, round_trip_s=1.0))
    work = Workload(1024, users=2)
    known = of([1, 8, 7], [core("m0"), far], work)
    assert known.together_tok_s == pytest.approx(2 * known.decode_tok_s, rel=1e-9)


def test_requests_of_many_queue_for_the_busiest() -> None:
    work = Workload(1024, users=40)
    known = of([1, 9, 6], [core("m0"), core("m1")], work)
    # two groups of 20 rows: the lender's part of one request, times 40
    step_s = 9 * (0.00325 + 19 * 0.00117)
    assert known.request_s == pytest.approx(40 * (8 * 9 * 0.0581 + 255 * step_s / 20), rel=0.02)
    assert known.bottleneck.name == "m1"
    assert known.bottleneck.share == pytest.approx(1.0, rel=0.02)


def test_more_answers_than_groups_take_turns() -> None:
    work = Workload(1024, users=256)
    known = of([16], [core("m0")], work)
    step_s = 16 * 0.0581 + 0.013 + 63 * 0.0047
    assert known.together_tok_s == pytest.approx(64 / step_s)


def test_what_was_not_measured_is_not_forecast() -> None:
    machines = [core("m0"), replace(core("m1"), link=None)]
    stages = split_stages([machines[0], machines[1], machines[0]], (0, 1, 9, 16), MODEL, Workload(64))
    assert forecast(stages, {candidate.id: candidate for candidate in machines}, MODEL, Workload(64)) is None


def test_a_step_of_few_rows_is_computed_like_tokens() -> None:
    def layer_s(speed: Speed, rows: float, position: float = 0) -> float:
        return step_layer_s(speed, Step(rows, position, 0), 64)

    assert layer_s(CORE, 1) == CORE.layer_s
    assert layer_s(CORE, 3) == pytest.approx(CORE.layer_s + 2 * CORE.layer_row_s)
    assert layer_s(CORE, 64) == CORE.chunk_s
    assert layer_s(CORE, 48) == pytest.approx(0.75 * CORE.chunk_s)
    deep = replace(CORE, position_s=1e-6, chunk_position_s=2e-5)
    assert layer_s(deep, 3, 100) == pytest.approx(layer_s(CORE, 3) + 300e-6)
    assert layer_s(deep, 64, 100) == pytest.approx(CORE.chunk_s + 2e-3)  # not the rows' own, too
    slow_rows = replace(CORE, layer_row_s=1.0)
    assert layer_s(slow_rows, 30) == CORE.chunk_s


def test_replicas_share_the_users_by_their_speed() -> None:
    twice = replace(CORE, layer_s=CORE.layer_s / 2, layer_row_s=CORE.layer_row_s / 2,
                    chunk_s=CORE.chunk_s / 2, head_s=CORE.head_s / 2,
                    head_row_s=CORE.head_row_s / 2)  # fmt: skip
    machines = [core("m0"), core("m1", twice)]
    work = Workload(1024, users=6)
    whole = [split_stages([candidate], (0, 16), MODEL, work)[0] for candidate in machines]
    by_id = {candidate.id: candidate for candidate in machines}
    assert users_per_pipeline([[stage] for stage in whole], by_id, MODEL, work) == [2, 4]
    known = forecast(whole, by_id, MODEL, work)
    assert known is not None
    each = [whole_forecast(candidate, MODEL, work, n) for candidate, n in zip(machines, (2, 4), strict=True)]
    assert known.together_tok_s == pytest.approx(sum(item.together_tok_s for item in each))
    assert known.request_s == max(item.request_s for item in each)


def test_a_split_beside_a_whole_one_serves_as_many_as_its_own_forecast_bears() -> None:
    host, lender, other = core("m0"), core("m1"), core("m2")
    work, by_id = Workload(1024, users=6), {candidate.id: candidate for candidate in (host, lender, other)}
    split = split_stages([host, lender, host], (0, 4, 12, 16), MODEL, work)
    whole = split_stages([other], (0, 16), MODEL, work)
    users = users_per_pipeline([split, whole], by_id, MODEL, work)
    assert sum(users) == 6
    assert users[0] > users[1] > 0  # two machines do more than one
    known = forecast((*split, *whole), by_id, MODEL, work)
    assert known is not None
    each = [forecast(part, by_id, MODEL, replace(work, users=n)) for part, n in zip((split, whole), users, strict=True)]
    assert known.request_s == max(item.request_s for item in each if item)
    assert known.together_tok_s == pytest.approx(sum(item.together_tok_s for item in each if item))


def test_a_typical_request_is_no_longer_than_the_context() -> None:
    assert (Workload(512).prompt, Workload(512).output) == (341, 171)
    assert (Workload(4096).prompt, Workload(4096).output) == (512, 256)
    assert (Workload(1).prompt, Workload(1).output) == (1, 1)
