"""The shape of a placement, as a person chooses it: with forecasts, and with the planner's choice first."""

from __future__ import annotations

from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.api import plans
from app.decoding import convert
from app.gui.models.details.setup_form import ShapeChoice

Json = dict[str, Any]


def forecast(alone: float, together: float, request_s: float) -> Json:
    return {"decode_tok_s": alone, "together_tok_s": together, "request_s": request_s}


ALONE = {"shape": "one machine", **forecast(9.6, 20.0, 30.0)}
SPLIT = {"shape": "split", **forecast(14.0, 50.0, 20.0)}
TWICE = {"shape": "replicas", **forecast(9.6, 64.0, 15.0)}


def plan(users: int, *known: Json) -> Json:
    best = min(known, key=lambda item: float(item["request_s"]))
    return {"model": "m", "users": users, "shape": best["shape"], "forecast": best, "alternatives": list(known)}


@pytest.fixture
def choice(qtbot: QtBot) -> ShapeChoice:
    made = ShapeChoice()
    qtbot.addWidget(made)
    made.set_useful(True)
    return made


def kinds(choice: ShapeChoice) -> list[str | None]:
    """Return the requested shape, in a list, since mypy would treat a None as permanent."""
    return [choice.kind]


def texts(choice: ShapeChoice) -> list[str]:
    return [choice.combo.itemText(at) for at in range(choice.combo.count())]


def test_each_shape_has_its_forecast_for_as_many_people(choice: ShapeChoice) -> None:
    choice.show_plan(convert(plan(1, ALONE, SPLIT), plans.Plan))
    assert texts(choice) == [
        "Best: Split over several machines, 14 tok/s", "One machine, 9.6 tok/s",
        "Split over several machines, 14 tok/s", "Copies on several machines",
    ]  # fmt: skip
    choice.show_plan(convert(plan(4, ALONE, SPLIT, TWICE), plans.Plan))
    assert texts(choice)[0] == "Best: Copies on several machines, 64 tok/s"
    assert texts(choice)[2:] == ["Split over several machines, 50 tok/s", "Copies on several machines, 64 tok/s"]


def test_the_planner_chooses_until_a_person_does(qtbot: QtBot, choice: ShapeChoice) -> None:
    assert kinds(choice) == [None]
    with qtbot.waitSignal(choice.changed):
        choice.combo.setCurrentIndex(choice.combo.findData("replicas"))
    assert kinds(choice) == ["replicas"]
    assert "that machine can read it" in choice.hint.text()
    assert choice.combo.accessibleDescription() == choice.hint.text()
    forced = {**plan(1, ALONE, SPLIT), "shape": "replicas", "forecast": TWICE}  # for one person
    choice.show_plan(convert(forced, plans.Plan))
    assert texts(choice)[0] == "Best: Split over several machines, 14 tok/s"  # it stays the best
    assert texts(choice)[3] == "Copies on several machines, 9.6 tok/s"
    choice.show_plan(None)
    assert texts(choice)[:2] == ["Best", "One machine"]


def test_a_shape_that_is_slower_says_so_before_it_is_loaded(choice: ShapeChoice) -> None:
    choice.combo.setCurrentIndex(choice.combo.findData("split"))
    choice.show_plan(convert(plan(1, SPLIT | {"request_s": 60.0, "decode_tok_s": 3.1}, ALONE), plans.Plan))
    assert choice.hint.text().startswith("About 68% slower than the best option.")
    choice.combo.setCurrentIndex(choice.combo.findData("one"))
    assert "Slower" not in choice.hint.text()
    choice.combo.setCurrentIndex(0)
    assert not choice.hint.text()


def test_what_was_not_measured_names_the_shape_alone(choice: ShapeChoice) -> None:
    choice.show_plan(plans.Plan(model="m", users=1, shape="split"))
    assert texts(choice)[0] == "Best: Split over several machines"


def test_it_begins_with_what_is_loaded_and_orders_nothing_where_it_is_hidden(choice: ShapeChoice) -> None:
    choice.offer("split")
    assert kinds(choice) == ["split"]
    choice.set_useful(False)
    assert kinds(choice) == [None]
    assert choice.isHidden()
    choice.offer(None)
    choice.set_useful(True)
    assert kinds(choice) == [None]
