"""Tests of the words for a forecast."""

from __future__ import annotations

import msgspec
import pytest

from app.api.plans import FirstToken, Forecast, LoadedModel, Notice, Plan, Stage
from app.cli.views.placement_view import ROUGH, forecast_line, headline
from app.cli.views.status_view import pool_sentence
from app.core.errors import Reason


@pytest.mark.parametrize(("tok_s", "rough"), [(9.3, False), (60.0, False), (330.0, True)])
def test_a_forecast_of_a_tiny_model_is_called_rough(tok_s: float, rough: bool) -> None:
    known = Forecast(1.2, tok_s, tok_s, 10.0)
    text = forecast_line(Plan(model="guide", first_token=FirstToken(512)), known)
    assert text.startswith(f"Forecast for a 512-token prompt: first word after 1.20 s, then {tok_s:.1f} tok/s.")
    assert text.endswith(ROUGH) is rough


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
    assert pool_sentence(lost, online=online) == f"{sentence} The next question loads it again."
