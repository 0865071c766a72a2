"""Tests of the words for a forecast."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console, Group

from app.api.plans import AnswerOutcome, Explanation, FirstToken, Forecast, LoadedModel, Notice, Plan, Stage
from app.cli.views.placement_view import forecast_line, headline, placement_view, plan_view
from app.cli.views.status_view import model_view, pool_sentence
from app.core.errors import Reason
from app.core.planner.speed_estimates import is_too_small


def test_a_forecast_is_a_range_whatever_it_is_based_on() -> None:
    known = Forecast(1.2, 9.3, 31.0, 10.0, estimated=True, spread=1.25)
    plan = Plan(model="guide", users=8, first_token=FirstToken(1000, 2.9))
    words = "first token after 2.3–3.6 s, then 7–12 tok/s (8 at once: 25–39 tok/s in total)"
    assert forecast_line(plan, known) == f"Forecast for a 1,000-token prompt: {words}."


def small(**more: Any) -> LoadedModel:
    """A loaded model with a forecast, too small for it to be right."""
    why = [Explanation("plan_forced", {}, "You chose this split."), Explanation("plan_measured", {}, "As measured.")]
    stages = [Stage("den", "d", "whole", 0, 8)]
    known = Forecast(0.01, 330.0, 330.0, 0.1)
    advice = [Explanation("advice_memory_rate", {}, "Lend more.")]
    last = AnswerOutcome(
        prompt_tokens=9, output_tokens=9, forecast_ttft_s=0.1, ttft_s=9.0, forecast_tok_s=330.0, tok_s=9.0
    )
    return LoadedModel(
        model="guide", stages=stages, forecast=known, why=why, advice=advice, reasons=["You chose this split."],
        last_answer=last, too_small=True, **more,
    )  # fmt: skip


def test_no_forecast_is_said_of_a_model_too_small_for_one() -> None:
    shown = small().as_shown()
    assert (shown.forecast, shown.first_token, shown.advice, shown.last_answer) == (None, None, [], None)
    assert [reason.code for reason in shown.why] == ["plan_forced", "unforecast_small"]
    assert shown.reasons == [reason.sentence for reason in shown.why]
    larger = msgspec.structs.replace(small(), too_small=False)
    assert larger.as_shown() is larger
    for view in (plan_view(small()), Group(*model_view(small()))):
        output = io.StringIO()
        Console(file=output, width=100).print(view)
        assert "tok/s" not in output.getvalue()
        assert "Forecast" not in output.getvalue()


def test_what_computes_each_part_is_shown_as_soon_as_a_card_computes_one() -> None:
    stages = [Stage("den", "d", "first", 0, 3), Stage("attic", "a", "middle", 3, 8, card="NVIDIA GeForce RTX 3060")]

    def shown(*parts: Stage) -> str:
        output = io.StringIO()
        Console(file=output, width=140).print(placement_view(Plan(model="guide", stages=list(parts))))
        return output.getvalue()

    den, attic = shown(*stages).splitlines()
    assert den.rstrip().endswith("its processor")
    assert attic.rstrip().endswith("NVIDIA GeForce RTX 3060")
    assert "its processor" not in shown(stages[0])


@pytest.mark.parametrize(
    ("n_parameters", "too_small"), [(0, False), (5_000_000, True), (49_999_999, True), (135_000_000, False)]
)
def test_what_is_too_small_for_a_forecast(n_parameters: int, too_small: bool) -> None:
    assert is_too_small(n_parameters) is too_small


def test_a_split_beside_whole_machines_is_named_as_both() -> None:
    split = [Stage("den", "d", "first", 0, 3), Stage("attic", "a", "middle", 3, 6), Stage("den", "d", "last", 6, 8)]
    whole = Stage("shed", "s", "whole", 0, 8)
    both = Plan(model="guide", shape="replicas", stages=[*split, whole], number="f16")
    assert headline(both) == "guide · split over 2 machines and whole on 1 more · f16"
    replicas = Plan(model="guide", shape="replicas", stages=[whole, Stage("den", "d", "whole", 0, 8)], number="f16")
    assert headline(replicas) == "guide · replicas on 2 machines"


@pytest.mark.parametrize(
    ("there", "shape", "sentence"),
    [
        (["d", "a", "s"], "replicas on 3 machines", "Ready. guide is loaded on 3 machines."),
        (["d", "a"], "replicas on 2 machines", "Ready. guide is loaded on 2 machines."),
        (["d"], "on one machine", "Ready. guide is loaded on this machine."),
        (["a"], "on one machine", "Ready. guide is loaded on attic."),
    ],
)
def test_only_replicas_that_are_there_are_counted(there: list[str], shape: str, sentence: str) -> None:
    wholes = [Stage(name, name[0], "whole", 0, 8) for name in ("den", "attic", "shed")]
    plan = LoadedModel(model="guide", shape="replicas", stages=wholes, state="ready", holders=there)
    assert headline(plan) == f"guide · {shape}"
    assert pool_sentence(plan) == sentence
    text = "attic is leaving. It continues to compute while its layers are loaded on shed (about 40 s)."
    leaves = msgspec.structs.replace(plan, recovery=Notice(text=text))
    assert pool_sentence(leaves) == f"{sentence} {text}"


@pytest.mark.parametrize(
    ("code", "online", "sentence"),
    [
        ("link_lost", {"d", "a"}, "guide was lost, but its machines are connected again."),
        ("link_lost", {"d"}, "guide was lost. attic is gone."),
        ("worker_died", {"d", "a"}, "guide was lost. attic is gone."),
    ],
)
def test_an_old_loss_is_not_reported_once_its_machines_are_back(code: str, online: set[str], sentence: str) -> None:
    stages = [Stage("den", "d", "first", 0, 3), Stage("attic", "a", "middle", 3, 6)]
    lost = LoadedModel(model="guide", stages=stages, state="lost", reason="attic is gone.", reason_facts=Reason(code))
    assert pool_sentence(lost, online=online) == f"{sentence} The next question will load it again."
