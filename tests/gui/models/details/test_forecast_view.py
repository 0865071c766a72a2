"""Tests of the text about a model's speed: forecast, estimated, not measured, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.api import models, plans
from app.core.errors import Reason
from app.decoding import convert
from app.gui.models.details.forecast_view import ForecastView
from app.gui.models.details.plan_loader import PlanLoader, Setup
from app.gui.models.model_item import offer_item, shelf_item
from tests.gui.models.offers import offer

Json = dict[str, Any]
KNOWN = {"decode_tok_s": 11.8, "together_tok_s": 30.0, "ttft_s": 2.9}
FIRST = {"prompt_tokens": 1000, "ttft_s": 2.9}


def plan(*codes: str, **more: Any) -> plans.Plan:
    why = [{"code": code, "facts": {"architecture": "odd"}} for code in codes]
    made = {"model": "m", "users": 1, "forecast": None, "first_token": FIRST, "why": why, "advice": []}
    return convert(made | more, plans.Plan)


@pytest.fixture
def view(qtbot: QtBot) -> ForecastView:
    made = ForecastView(lambda: None, lambda: None, lambda: None)
    qtbot.addWidget(made)
    qtbot.addWidget(made.reasons)
    return made


def said(view: ForecastView) -> str:
    return " ".join(label.text() for label in view.reasons.findChildren(QLabel))


def test_a_forecast_is_a_range_and_has_one_name(view: ForecastView) -> None:
    view.show_plan(plan(forecast=KNOWN | {"spread": 1.25}))
    assert (view.rate.text, view.first.text) == ("9–15 tok/s", "2.3–3.6 s")
    assert view.rate._caption.whole() == "forecast"
    view.show_estimate(plan("plan_sketched", forecast=KNOWN | {"estimated": True, "spread": 1.6}), None)
    assert view.rate.text == "7–19 tok/s"
    assert view.rate._caption.whole() == "forecast"
    assert "based on the model's published data" in said(view)
    view.show_plan(plan(users=3, forecast=KNOWN | {"together_tok_s": 338.0, "spread": 1.5}))
    assert view.rate.text == "230–510 tok/s"
    assert view.rate._caption.whole() == "forecast for 3 simultaneous users"
    assert view.measure.isHidden()


def test_what_was_not_measured_can_be_also_before_it_is_here(view: ForecastView) -> None:
    view.show_estimate(plan("plan_unmeasured"), None)
    assert not view.measure.isHidden()
    assert "plan_unmeasured" not in said(view)


def test_a_model_whose_file_is_missing_is_not_offered_to_be_measured(view: ForecastView) -> None:
    view.show_plan(plan("plan_unmeasured"))
    assert not view.measure.isHidden()
    view.show_plan(plan("plan_unmeasured"), missing=True)
    assert view.measure.isHidden()


def test_where_nothing_can_be_said_it_says_why_and_offers_no_test(view: ForecastView) -> None:
    view.show_plan(plan("unforecast_indexer"))
    assert view.measure.isHidden()
    assert "odd models choose for each token" in said(view)
    view.show_estimate(plan(), Reason("unforecast_indexer", {"architecture": "odd"}))
    assert view.measure.isHidden()
    assert said(view)


class Asked:
    """A client that remembers the last call and answers when told."""

    def __init__(self) -> None:
        self.path, self.body = "", Json()
        self.done: Callable[[Any], None] = lambda _: None

    def call(self, _: str, path: str, body: Json, done: Any, *__: Any, **types: object) -> Asked:
        self.path, self.body, self.done = path, body, done
        return self

    running = False

    def cancel(self) -> None:
        """Nothing is under way."""


def test_a_model_that_is_not_here_is_measured_by_layers_like_its_own(qtbot: QtBot) -> None:
    client, verdicts = Asked(), list[models.Verdict]()
    planning = PlanLoader(client)  # type: ignore[arg-type]
    planning.estimated.connect(verdicts.append)
    planning.ask(Setup(offer_item(offer("big", active_parameters=3_000_000_000))))
    planning.measure()
    assert (client.path, client.body["measure"], client.body["place"]) == ("/verdicts", True, True)
    assert client.body["sketches"][0]["active_parameters"] == 3_000_000_000
    begun = planning.measuring
    verdict = models.Verdict("fits")
    client.done(models.Verdicts({"chosen": verdict}))
    assert verdicts == [verdict]
    assert (begun, planning.measuring) == (True, False)
    planning.ask(Setup(shelf_item(convert({"name": "here"}, models.ShelfModel))))
    planning.measure()
    assert client.path == "/plan"
    planning.forget()


def test_two_forecasts_that_differ_say_what_each_is_for(view: ForecastView) -> None:
    last = {
        "at": 1.0, "model": "m", "machines": 1, "prompt_tokens": 8, "output_tokens": 8,
        "tok_s": 58.6, "forecast_tok_s": 559.0, "ttft_s": 0.1, "forecast_ttft_s": 0.2,
    }  # fmt: skip
    view.show_fact(convert(last, plans.AnswerOutcome))
    view.show_plan(plan(forecast=None))
    assert "for the same lengths and machines" in view.fact.text()
    assert "above" not in view.fact.text()  # nothing stands there
    assert view._unmeasured.text().startswith("These settings have not been measured yet.")
    view.show_plan(plan(forecast=KNOWN))
    assert "The figures above apply to a typical request" in view.fact.text()
    view.show_fact(None)
    view.show_plan(plan(forecast=KNOWN))
    assert view.fact.isHidden()
    assert view._unmeasured.text().startswith("Not measured yet.")


def test_a_forecast_measured_beside_other_programs_says_so_and_can_be_measured_again(qtbot: QtBot) -> None:
    pressed: list[str] = []
    view = ForecastView(lambda: None, lambda: None, lambda: pressed.append("again"))
    qtbot.addWidget(view)
    qtbot.addWidget(view.reasons)
    view.show_plan(plan("plan_measured", forecast=KNOWN | {"spread": 1.6, "disturbed": "den"}))
    assert view.disturbed.isVisibleTo(view)
    assert view.disturbed.text().startswith("den was busy while it was measured")
    assert view.again.isVisibleTo(view.reasons)
    view.again.click()
    assert pressed == ["again"]
    view.show_plan(plan("plan_measured", forecast=KNOWN))
    assert not view.disturbed.isVisibleTo(view)


def test_a_forecast_that_a_busy_computer_makes_wrong_can_be_measured_again(view: ForecastView) -> None:
    known = KNOWN | {"disturbed": "den", "too_busy": True}
    view.show_plan(plan(forecast=known).as_shown())
    assert "too busy for a reliable one" in said(view)
    assert "too busy" in view._unmeasured.text()
    assert not view.measure.isHidden()
    assert not view.disturbed.isVisibleTo(view)


def test_what_busy_computers_measured_is_measured_again_and_not_looked_up(qtbot: QtBot) -> None:
    client = Asked()
    planning = PlanLoader(client)  # type: ignore[arg-type]
    view = ForecastView(planning.measure, planning.stop_measuring, planning.measure_again)
    qtbot.addWidget(view)
    qtbot.addWidget(view.reasons)
    planning.ask(Setup(shelf_item(convert({"name": "here"}, models.ShelfModel))))
    view.show_plan(plan("plan_unmeasured"))
    view.measure.click()
    assert (client.body["measure"], client.body.get("again")) == (True, None)
    view.show_plan(plan(forecast=KNOWN | {"disturbed": "den", "too_busy": True}).as_shown())
    view.measure.click()
    assert (client.path, client.body["measure"], client.body["again"]) == ("/plan", True, True)
    planning.forget()


def test_the_factor_between_fact_and_forecast_is_that_of_a_quiet_computer(view: ForecastView) -> None:
    view.show_factor(1.06)
    view.show_plan(plan(forecast=KNOWN))
    last = {"prompt_tokens": 9, "output_tokens": 9, "forecast_ttft_s": 0.5, "ttft_s": 0.4, "forecast_tok_s": 11.0}
    view.show_fact(convert(last | {"tok_s": 11.8, "other_load": 0.1}, plans.AnswerOutcome))
    assert "When the computer was otherwise idle, answers were 1.06 times as fast as forecast." in view.fact.text()
    view.show_fact(convert(last | {"tok_s": 3.0, "other_load": 0.6}, plans.AnswerOutcome))
    assert "Other programs used 60% of the processor." in view.fact.text()
    assert "quiet" not in view.fact.text()
