"""Tests of the outcomes of forecasts (compared, saved, learned from) and of plans from measurements, on real nodes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from app.api.plans import Progress
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan, Workload
from app.core.planner.plan import plan
from app.core.planner.speed_estimates import Speed
from app.inference.pipeline.completion import Summary
from app.inference.pipeline.speed_measurement import StageFigures
from app.node.models.outcomes import ConcurrentAnswers
from app.node.planning.forecast_history import ForecastHistory, Outcome, forecast_alone
from testbed.households import MIB, link, machine, model
from tests.node.pool import paired

CORE = Speed(
    layer_s=0.003, layer_row_s=0.001, position_s=0.0, chunk_s=0.05, chunk_position_s=0.0, step_s=0.0005,
    head_s=0.01, head_row_s=0.004,
)  # fmt: skip
MODEL = model([25 * MIB] * 16, width=2048)
DEN = machine("den", 9000, CORE, None)
ATTIC = machine("attic", 9000, CORE, link(0.001, 1e8))
SPLIT = plan(DEN, [ATTIC], MODEL, Workload(1024), [1, 9, 6])


def answered(slower: float, chosen: Plan = SPLIT, n_tokens: int = 100) -> Summary:
    """An answer in which everything took `slower` times as long as forecast."""
    known = forecast_alone(chosen, MODEL, 64, n_tokens)
    assert known is not None
    busy = dict.fromkeys((stage.machine for stage in chosen.stages), 0.0)
    for share in known.shares:
        busy[share.machine] += slower * share.busy_s
    runs = [stage.machine for stage in chosen.stages]
    stages = tuple(
        StageFigures(stage.name, 1, busy[stage.machine] / runs.count(stage.machine)) for stage in chosen.stages
    )
    return Summary(
        "", (1,) * n_tokens, 64, 0, 0.0, 0.0, slower * known.ttft_s, known.decode_tok_s / slower,
        "length", None, stages,
    )  # fmt: skip


def corrected_rate(forecasts: ForecastHistory) -> float:
    machines = tuple(forecasts.corrected(candidate) for candidate in SPLIT.machines)
    known = forecast_alone(replace(SPLIT, machines=machines), MODEL, 64, 100)
    assert known is not None
    return known.decode_tok_s


def test_a_steady_error_is_learned_and_outlives_the_node(tmp_path: Path) -> None:
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    before = corrected_rate(forecasts)
    for _ in range(12):
        # each plan is made with what was learned by then, as the node does
        machines = tuple(forecasts.corrected(candidate) for candidate in SPLIT.machines)
        now = replace(SPLIT, machines=machines)
        assert forecasts.learn(now, MODEL, as_it_is(now)) is not None
    assert corrected_rate(forecasts) == pytest.approx(before / 1.5, rel=0.05)
    forecasts.save(forecasts.content())
    again = ForecastHistory(tmp_path / "forecasts.json")
    assert corrected_rate(again) == pytest.approx(corrected_rate(forecasts))
    assert again.snapshot() == forecasts.snapshot()
    assert again.snapshot().answers == 12


def test_one_placement_learns_the_same_as_many(tmp_path: Path) -> None:
    """A model that stays loaded is planned once: what its answers say of its machines is said once, not each time."""
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    before = corrected_rate(forecasts)
    for _ in range(30):
        forecasts.learn(SPLIT, MODEL, answered(1.5))
    assert corrected_rate(forecasts) == pytest.approx(before / 1.5, rel=0.05)
    outcome = forecasts.learn(SPLIT, MODEL, answered(1.5))
    assert outcome is not None
    assert outcome.errors == pytest.approx((0, 0), abs=0.05)  # and its forecast is a better one


def test_a_placement_is_known_after_few_answers_whatever_its_machines_do_elsewhere(tmp_path: Path) -> None:
    """Prompts and answers of it are off in ways of their own, and so are two placements of the same machines."""
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    other = plan(DEN, [ATTIC], MODEL, Workload(1024), [4, 8, 4])
    for slower, late in ((1.5, 0.9), (1.45, 0.85), (1.55, 0.95)):
        once = answered(slower)
        forecasts.learn(SPLIT, MODEL, replace(once, ttft_s=once.ttft_s * late))
    forecasts.learn(other, MODEL, answered(0.8, other))
    plain = forecast_alone(SPLIT, MODEL, 64, 100)
    known = forecasts.expected(SPLIT, MODEL, 64, 100)
    assert plain is not None
    assert known is not None
    assert known.decode_tok_s == pytest.approx(plain.decode_tok_s / 1.5, rel=0.02)
    assert known.ttft_s == pytest.approx(plain.ttft_s * 1.5 * 0.9, rel=0.02)
    forecasts.save(forecasts.content())
    assert ForecastHistory(tmp_path / "forecasts.json").expected(SPLIT, MODEL, 64, 100) == known
    forecasts.unlearn({ATTIC.id})
    assert forecasts.expected(SPLIT, MODEL, 64, 100) != known


def as_it_is(now: Plan) -> Summary:
    """Return the true time: 1.5 times the first measurement, whatever is forecast."""
    return replace(answered(1.5), stages=tuple(
        replace(figures, name=stage.name)
        for figures, stage in zip(answered(1.5).stages, now.stages, strict=True)
    ))  # fmt: skip


def test_an_outcome_says_how_far_off_the_forecast_was(tmp_path: Path) -> None:
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    outcome = forecasts.learn(SPLIT, MODEL, answered(1.25))
    assert outcome is not None
    assert outcome.errors == pytest.approx((-0.2, 0.25))
    odd = forecasts.learn(SPLIT, MODEL, answered(2.75))
    assert odd is not None
    assert (outcome.is_far_off, odd.is_far_off) == (False, True)
    assert odd.errors[1] == pytest.approx(2.75 / 1.25 - 1)  # as the one before was
    assert forecasts.snapshot().decode_error == pytest.approx((0.25 + odd.errors[1]) / 2)


def test_how_fast_prompts_are_read_is_known_of_each_model(tmp_path: Path) -> None:
    forecasts = ForecastHistory(tmp_path / "forecasts.json")

    def learn(summary: Summary) -> None:
        assert forecasts.learn(SPLIT, MODEL, summary)
        forecasts.unlearn({DEN.id, ATTIC.id})  # else the forecasts themselves become better

    assert forecasts.reading_ratio(MODEL.name) is None
    for slower in (1.5, 3.0, 1.5):
        learn(answered(slower))
    assert forecasts.reading_ratio(MODEL.name) == pytest.approx(1.5)
    assert forecasts.reading_ratio("another") is None
    for _ in range(10):
        learn(answered(0.5))
    assert forecasts.reading_ratio(MODEL.name) == pytest.approx(0.5)  # it became quicker
    short = replace(answered(9.0), prompt_tokens=8)
    for _ in range(10):
        learn(short)
    assert forecasts.reading_ratio(MODEL.name) == pytest.approx(0.5)


def test_what_cannot_be_compared_teaches_nothing(tmp_path: Path) -> None:
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    unknown = plan(DEN, [replace(ATTIC, speed=None)], MODEL, Workload(1024), [1, 9, 6])
    assert forecasts.learn(unknown, MODEL, answered(1.0)) is None
    assert forecasts.learn(SPLIT, MODEL, answered(1.0, n_tokens=3)) is None
    assert forecasts.learn(SPLIT, MODEL, replace(answered(1.0), guessed=3)) is None
    assert forecasts.snapshot().answers == 0


def test_a_removed_machine_is_forgotten(tmp_path: Path) -> None:
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    forecasts.learn(SPLIT, MODEL, answered(1.5))
    forecasts.keep_only({DEN.id: None})
    assert set(forecasts.snapshot().factors) == {DEN.id}


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"\xff": 1}', b'{"machines": {"m": {"value": 1e99, "answers": 2}}}',
     b'{"links": {"m": {"value": "x", "answers": 2}}}', b'{"outcomes": [{"at": 1}]}', b"[" * 100_000,
     b" " * (2 << 20)],
    ids=range(8),
)  # fmt: skip
def test_a_damaged_file_is_no_loss(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "forecasts.json").write_bytes(content)
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    odd = Candidate(MachineId("m"), "m", 1, CORE)
    assert forecasts.corrected(odd) == odd


def test_company_is_noticed_on_both_sides() -> None:
    company = ConcurrentAnswers()
    seen: list[bool] = []
    with company.count() as first:
        seen.append(first.alone)
        with company.count() as second:
            seen.append(second.alone)
        seen.append(first.alone)
    with company.count() as third:
        seen.append(third.alone)
    assert seen == [True, False, False, True]


@pytest.mark.long
async def test_real_nodes_measure_forecast_and_compare(tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        lines: list[Progress] = []
        async with den.client() as host:
            planned = await host.work("POST", "/plan", {"model": "guide"}, lines.append)
            assert {line.machine for line in lines if line.step == "measuring"} == {
                "den", "attic",
            }  # fmt: skip
            known = {item["id"]: item for item in planned["from"]["machines"]}
            assert all(item["speed"]["layer_s"] > 0 for item in known.values())
            link = known[attic.ready["id"]]["link"]
            assert link["kind"] == "loopback"
            assert 0 < link["round_trip_s"] < 0.1
            assert link["out_bytes_per_s"] > 1e6
            split = {"model": "guide", "split": [1, 6, 1]}
            loaded = (await host.work("POST", "/load", split))["loaded"]
            assert loaded["forecast"]["bottleneck"]["machine"] in ("den", "attic")
            order = {"prompt_ids": [5] * 70, "max_tokens": 30, "ignore_end": True, "guesses": False}
            answer = await host.work("POST", "/ask", order)
            assert answer["predicted"]["ttft_s"] > 0
            await asyncio.gather(
                *(host.work("POST", "/ask", order | {"max_tokens": 400}) for _ in range(2))
            )  # not alone: these say nothing
            status = await host.get("/status")
            again = (await host.work("POST", "/load", split))["loaded"]
        assert again["last_answer"] is None  # another placement's says nothing of this one
        last = status["loaded"]["last_answer"]
        assert status["forecasts"]["answers"] == 1
        assert last["forecast_tok_s"] > 0
        assert last["tok_s"] > 0
        factors = set(status["forecasts"]["factors"])
        assert factors in (set(known), set())  # none where it was so far off that all is doubted
        assert (den.root / "household" / "forecasts.json").exists()


def test_only_answers_of_a_quiet_computer_count_for_the_factor(tmp_path: Path) -> None:
    history = ForecastHistory(tmp_path / "forecasts.json")
    for tok_s, load in ((11.0, 0.05), (3.0, 0.8), (12.0, 0.1), (13.0, 0.0)):
        outcome = Outcome(1.0, "m", 1, 40, 20, 0.5, 0.5, 10.0, tok_s)
        history._outcomes.append(outcome)
        assert history.note_load(outcome, load).other_load == load
    known = history.snapshot()
    assert (known.answers, known.quiet_answers, known.factor) == (4, 3, 1.2)
    history.save(history.content())
    assert ForecastHistory(tmp_path / "forecasts.json").snapshot() == known
