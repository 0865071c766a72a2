"""The head of the Pool page: what it says of a model without a forecast, and when measuring would help."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.api.plans import Forecast, LoadedModel, Plan, Stage
from app.api.snapshot import FailedLoad
from app.core.errors import Fact, Reason
from app.decoding import convert
from app.gui.app.app_context import AppContext
from app.gui.look.sentences import said
from app.gui.look.theme import Scheme, Theme
from app.gui.pool.headline import Headline
from app.gui.pool.load_forecast import PlanOutcome, expected_from_plan
from app.gui.pool.pool_actions import ModelActions
from app.gui.widgets.fold import Fold
from app.gui.widgets.progress import WHOLE
from testbed.snapshots import Json, last_answer, loaded

MODEL = "Llama 3.3 70B Q4_K_M"
WHY = [{"code": "unforecast_family", "facts": {"architecture": "odd"}}]
NEVER = said(Reason("unforecast_family", {"architecture": "odd"}))
UNMEASURED = PlanOutcome(MODEL, fits=True)
MEASURED = PlanOutcome(MODEL, fits=True, tok_s=9.0, ttft_s=1.0)


def model(content: Json) -> LoadedModel:
    return convert(content, LoadedModel)


@pytest.fixture
def head(qtbot: QtBot, qapp: QApplication) -> Headline:
    services = cast("AppContext", SimpleNamespace(theme=Theme(qapp, Scheme.LIGHT, 1.0), go=Mock()))
    made = Headline(services, cast("ModelActions", Mock()))
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.mark.parametrize(
    ("why", "expected", "sentence", "measures"),
    [
        ([], UNMEASURED, "No forecast yet: the model's speed hasn't been measured.", True),
        ([], MEASURED, "No forecast: the model was loaded before its speed was measured.", False),
        ([], PlanOutcome(), "No forecast.", False),
        ([], PlanOutcome("another", fits=True, tok_s=1.0), "No forecast.", False),
        ([], PlanOutcome(MODEL, problem="It does not fit."), "No forecast.", False),
        (WHY, PlanOutcome(), NEVER, False),
        (WHY, PlanOutcome(MODEL, fits=True, unforecast_reason=NEVER), NEVER, False),
    ],
)
def test_a_model_without_a_forecast_says_why(
    head: Headline, why: list[Any], expected: PlanOutcome, sentence: str, measures: bool
) -> None:
    now = loaded(2) | {"forecast": None, "last_answer": None, "why": why}
    head.show_pool(model(now), expected, measuring=False)
    assert head.figures.text() == sentence
    assert head.measure.isVisible() is measures


FIRST = {"prompt_tokens": 1024, "ttft_s": 1.3}


@pytest.mark.parametrize(
    ("first", "expected", "planned"),
    [
        (
            FIRST,
            "Forecast: 12 tok/s, first token after 1.3 s (1024-token prompt). No answer measured yet.",
            f"{MODEL} would run at 12 tok/s, with the first token after 1.3 s (1024-token prompt).",
        ),
        (None, "Forecast: 12 tok/s. No answer measured yet.", f"{MODEL} would run at 12 tok/s."),
    ],
)
def test_the_first_word_is_that_of_the_models_page_and_names_its_prompt(
    head: Headline, first: Any, expected: str, planned: str
) -> None:
    now = loaded(2) | {"last_answer": None, "first_token": first}
    head.show_pool(model(now), PlanOutcome(), measuring=False)
    assert head.figures.text() == expected
    head.show_pool(None, expected_from_plan(model(now)), measuring=False)
    assert head.figures.text() == planned


def test_an_interrupted_answer_says_so(head: Headline) -> None:
    last = last_answer(3.0, 12.0, interruptions=1)
    head.show_pool(model(loaded(2) | {"last_answer": last}), MEASURED, measuring=False)
    text = "Last answer: 3.0 tok/s. Forecast: 10–15 tok/s. This includes the time it took to replace a lost machine"
    assert head.figures.text().startswith(text)


def test_a_load_that_failed_is_told_with_its_cause(head: Headline) -> None:
    why = "llama.cpp cannot load it."
    head.show_pool(None, MEASURED, measuring=False, failed=FailedLoad(model="odd", facts={"why": why}))
    assert head.title.whole() == "odd could not be loaded"
    assert head.figures.text() == why
    assert head.choose.isVisible()
    head.show_pool(model(loaded(2)), MEASURED, measuring=False)
    assert head.title.whole().startswith("Ready. ")


def test_what_can_never_be_forecast_is_not_offered_to_be_measured(head: Headline) -> None:
    plan = {"model": MODEL, "why": WHY, "forecast": None, "stages": []}
    head.show_pool(None, expected_from_plan(convert(plan, Plan)), measuring=False)
    assert head.figures.text() == f"{MODEL} fits. {NEVER}"
    assert not head.measure.isVisible()


@pytest.mark.parametrize("known", [Forecast(0.01, 330.0, 330.0, 0.1), None], ids=["measured", "not measured"])
def test_a_model_too_small_for_a_forecast_has_none(head: Headline, known: Forecast | None) -> None:
    """A forecast far from what happens is worse than none."""
    plan = Plan(model=MODEL, forecast=known, too_small=True, stages=[Stage("den", "d", "whole", 0, 8)])
    head.show_pool(None, expected_from_plan(plan), measuring=False)
    assert head.figures.text().startswith(f"{MODEL} fits. No speed forecast is available. With such a small model, ")
    assert not head.measure.isVisible()


@pytest.mark.parametrize(
    ("roles", "lost", "where"),
    [
        (["whole"] * 3, 0, "with a full copy on each of 3 machine(s)"),
        (["whole"] * 3, 1, "with a full copy on each of 2 machine(s)"),
        (["whole"] * 3, 2, "on this machine"),
        (["first", "last", "whole"], 0, "split, with a full copy on 1 more machine(s)"),
        (["first", "last", "whole"], 1, "on 2 machine(s)"),
    ],
)
def test_only_replicas_that_are_there_are_counted(head: Headline, roles: list[str], lost: int, where: str) -> None:
    now = loaded(3) | {"shape": "replicas"}
    for stage, role in zip(now["stages"], roles, strict=True):
        stage["role"] = role
    now["holders"] = [machine["id"] for machine in now["machines"]][: 3 - lost]
    head.show_pool(model(now), MEASURED, measuring=False)
    assert head.title.whole() == f"Ready. {MODEL} {where}"


def test_with_several_models_the_head_tells_the_others_and_which_one_it_unloads(head: Headline) -> None:
    head.show_pool(model(loaded(2)), PlanOutcome(), measuring=False, beside=["Guide is also ready."])
    assert head.figures.text().endswith(" Guide is also ready.")
    assert head.unload.text() == f"Unload {MODEL}"
    head.show_pool(model(loaded(2)), PlanOutcome(), measuring=False)
    assert head.unload.text() == "Unload"


def test_a_load_that_is_stopped_cannot_be_left_again(head: Headline) -> None:
    now = loaded(2) | {"state": "loading", "progress": {}}
    head.show_pool(model(now), PlanOutcome(), measuring=False)
    assert head.cancel.isVisible()
    head.show_pool(model(now | {"stopping": True}), PlanOutcome(), measuring=False)
    assert head.title.whole() == f"Stopping {MODEL}"
    assert not head.cancel.isVisible()


def test_who_takes_over_from_a_machine_that_leaves_is_told_while_all_serves(head: Headline) -> None:
    text = "attic is leaving. It continues to compute while its layers are loaded on study (about 40 s)."
    leaving = {"code": "recovery_leaving", "facts": {"machine": "attic", "with": "study", "seconds": 40}}
    head.show_pool(model(loaded(2) | {"recovery": {"text_facts": leaving}}), PlanOutcome(), measuring=False)
    assert head.title.whole().startswith("Ready.")
    assert head.figures.text().startswith(text)


def test_how_far_a_rebuilt_model_is_stands_behind_what_happened(head: Headline) -> None:
    step = {"step": "sending", "machine": "kitchen", "done": 1, "total": 4, "unit": "layers"}
    now = loaded(2) | {
        "state": "recovering",
        "reason_facts": {"code": "machine_doubted", "facts": {"machine": "attic"}},
    }
    head.show_pool(model(now), PlanOutcome(), measuring=False)
    trouble = head.figures.text()
    assert trouble.startswith("attic computed wrong numbers")
    assert not head._bar.isVisible()
    head.show_pool(model(now | {"progress": {"kitchen": step}}), PlanOutcome(), measuring=False)
    assert head.figures.text() == f"{trouble} kitchen: receiving layers"
    assert (head._bar.isVisible(), head._bar.value()) == (True, WHOLE // 4)
    assert not head.cancel.isVisible()  # nothing is loaded that could be left


def test_before_the_first_step_its_bar_has_no_end(head: Headline) -> None:
    now = loaded(2) | {"state": "loading", "progress": {}}
    head.show_pool(model(now), PlanOutcome(), measuring=False)
    assert (head._bar.isVisible(), head._bar.is_known) == (True, False)


def test_a_model_that_a_mistake_of_ours_ended_has_details_and_the_way_to_the_log(head: Headline, qtbot: QtBot) -> None:
    ended = loaded(2) | {"state": "lost"}
    bug = {"code": "bug", "facts": {"what": "KeyError@work.py:7"}}
    for reason, shown in ((bug, True), ({"code": "machine_doubted", "facts": {"machine": "attic"}}, False)):
        head.show_pool(model(ended | {"reason_facts": reason}), PlanOutcome(), measuring=False)
        qtbot.wait(20)
        assert any(fold.isVisible() for fold in head.findChildren(Fold)) is shown
    head.show_pool(model(loaded(2) | {"reason_facts": bug}), PlanOutcome(), measuring=False)
    assert not any(fold.isVisible() for fold in head.findChildren(Fold)), "it is ready"


def test_a_model_whose_memory_an_owner_took_back_has_not_failed(head: Headline) -> None:
    ended = loaded(2) | {"state": "lost"}
    back = Reason("lend_taken_back", {"machine": "attic", "why": Reason("pause_owner")}).to_json()
    gone = Reason("peer_offline", {"name": "attic"}).to_json()
    for reason, title in ((back, "is not loaded now"), (gone, "stopped unexpectedly")):
        head.show_pool(model(ended | {"reason_facts": reason}), PlanOutcome(), measuring=False)
        assert head.title.whole().endswith(title)
        assert head.figures.text().endswith("The next question will load it again.")
        assert head.again.isVisibleTo(head)


def test_why_an_engine_ended_stays_open_while_the_pool_tells_it_again(head: Headline, qtbot: QtBot) -> None:
    words = "ops.cpp:4132: GGML_ASSERT(ids) failed."
    facts: dict[str, Fact] = {"worker": "attic", "how": "it was killed by SIGABRT", "words": words}
    result = Reason("worker_died", facts).to_json()
    now = loaded(2) | {"state": "lost", "reason_facts": result}
    head.show_pool(model(now), PlanOutcome(), measuring=False)
    assert words not in head.figures.text()
    (fold,) = head.findChildren(Fold)
    assert [label.text() for label in fold.findChildren(QLabel) if words in label.text()] == [words]
    fold.open()
    head.show_pool(model(now), PlanOutcome(), measuring=False)
    qtbot.wait(20)
    assert head.findChildren(Fold) == [fold]
    assert fold.button.isChecked()
