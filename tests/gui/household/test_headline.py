"""The head of the Pool page: what it says of a model without a forecast, and when measuring would help."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.household.headline import Acts, Headline
from app.gui.household.outlook import Expected, read
from app.gui.theme import Scheme, Theme
from tests.gui.household.snapshots import loaded

MODEL = "Llama 3.3 70B Q4_K_M"
NEVER = "Its speed is not forecast: how the layers of odd models compute was not counted yet."
WHY = [{"code": "unforecast_family", "sentence": NEVER}]
UNMEASURED = Expected(MODEL, fits=True)
MEASURED = Expected(MODEL, fits=True, tok_s=9.0, ttft_s=1.0)


@pytest.fixture
def head(qtbot: QtBot, qapp: QApplication) -> Headline:
    def nothing() -> None:
        """No button is pressed."""

    made = Headline(
        Theme(qapp, Scheme.LIGHT, 1.0), Acts(nothing, nothing, nothing, nothing, nothing)
    )
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.mark.parametrize(
    ("why", "expected", "sentence", "measures"),
    [
        ([], UNMEASURED, "No forecast: its speed here is not measured yet.", True),
        ([], MEASURED, "No forecast: it was loaded before its speed here was measured.", False),
        ([], Expected(), "No forecast.", False),
        ([], Expected("another", fits=True, tok_s=1.0), "No forecast.", False),
        ([], Expected(MODEL, problem="It does not fit."), "No forecast.", False),
        (WHY, Expected(), NEVER, False),
        (WHY, Expected(MODEL, fits=True, never=NEVER), NEVER, False),
    ],
)
def test_a_model_without_a_forecast_says_why(
    head: Headline, why: list[Any], expected: Expected, sentence: str, measures: bool
) -> None:
    now = loaded(2) | {"forecast": None, "last_answer": None, "why": why}
    head.show_pool(now, expected, measuring=False)
    assert head.figures.text() == sentence
    assert head.measure.isVisible() is measures


def test_what_can_never_be_forecast_is_not_offered_to_be_measured(head: Headline) -> None:
    plan = {"model": MODEL, "why": WHY, "forecast": None, "stages": []}
    head.show_pool(None, read(plan), measuring=False)
    assert head.figures.text() == f"{MODEL} fits. {NEVER}"
    assert not head.measure.isVisible()
