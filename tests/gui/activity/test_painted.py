"""The painted figures: their lines say what a screen reader reads, and their pixels show it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QFontMetricsF
from pytestqt.qtbot import QtBot

from app.gui.activity.journal_feed import MachineWork
from app.gui.activity.overview import DOT, HATCHED, SOLID, SQUARE, ForecastChart, Legend
from app.gui.activity.timeline import NAME_SHARE, WORDS_SHARE, Timeline, share_lines
from app.gui.look import sizes
from app.gui.look.theme import LIGHT
from tests.gui.activity.made import answer
from tests.gui.desk import Desk


def test_a_timeline_shows_phases_and_machines(qtbot: QtBot, away: Desk) -> None:
    made = Timeline(away.services.theme)
    qtbot.addWidget(made)
    made.show_answer(answer(tokens=21, queued_s=0.0, ttft_s=1.0, decode_tok_s=10.0))
    assert [line.name for line in made.lines] == ["Answer", "den", "attic"]
    assert [line.words for line in made.lines] == [
        "reading 1.0 s, writing 2.0 s", "computing 17%, waiting 0%", "computing 33%, waiting 7%",
    ]  # fmt: skip
    assert "attic: computing 33%" in made.accessibleDescription()
    made.resize(1000, made.sizeHint().height())
    picture = made.grab().toImage()
    bar = 1000 * (1 - NAME_SHARE - WORDS_SHARE)
    row = made.height() // 3
    reads = QPoint(int(1000 * NAME_SHARE + 0.1 * bar), row // 2)
    writes = QPoint(int(1000 * NAME_SHARE + 0.8 * bar), row // 2)
    computes = QPoint(int(1000 * NAME_SHARE + 0.1 * bar), row + row // 2)
    assert picture.pixelColor(reads) == QColor(LIGHT.muted)
    assert picture.pixelColor(writes) == QColor(LIGHT.accent)
    assert picture.pixelColor(computes) == QColor(LIGHT.good)


def test_what_a_machine_computed_and_waited_is_no_more_than_the_time() -> None:
    """A prompt in pieces: the next one waits while the one before is computed."""
    (line,) = share_lines([MachineWork("den", ((0, 8),), 1.8, 0.46, 0)], 2.0)
    assert line.words == "computing 90%, waiting 10%"


def test_a_wait_for_a_slot_is_said(qtbot: QtBot, away: Desk) -> None:
    made = Timeline(away.services.theme)
    qtbot.addWidget(made)
    made.show_answer(answer(queued_s=0.4, ttft_s=1.0))
    assert made.lines[0].words.startswith("waiting 0.4 s")


def test_nothing_is_drawn_of_an_answer_that_broke_off(qtbot: QtBot, away: Desk) -> None:
    made = Timeline(away.services.theme)
    qtbot.addWidget(made)
    made.show_answer(answer(end="stopped", ttft_s=None, decode_tok_s=None, stages=[]))
    assert made.lines == ()
    assert made.sizeHint().height() == 0


def test_the_chart_says_how_far_forecasts_were_off(qtbot: QtBot, away: Desk) -> None:
    chart = ForecastChart(away.services.theme)
    qtbot.addWidget(chart)
    assert chart.show_answers([]) == ""
    answers = [answer(ttft_s=1.0, forecast_ttft_s=1.1, decode_tok_s=10.0, forecast_tok_s=12.0), answer(alone=False)]
    said = chart.show_answers(answers)
    assert "10%" in said
    assert "20%" in said
    assert chart.n_shown == 1
    far = answer(ttft_s=1.0, forecast_ttft_s=81.0)
    assert "a factor of 81 for the first token" in ForecastChart(away.services.theme).show_answers([far])
    chart.resize(600, 150)
    picture = chart.grab().toImage()
    shown = {picture.pixelColor(x, y).name() for x in range(80, 200) for y in range(150)}
    assert {LIGHT.accent, LIGHT.selected} <= shown


def test_the_words_beside_the_chart_are_whole_in_every_language(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart = ForecastChart(away.services.theme)
    qtbot.addWidget(chart)
    chart.resize(600, 150)
    long = "ganz genau so, wie es vorhergesagt war"
    monkeypatch.setattr(chart, "_words", lambda: ("schneller", long, "langsamer"))
    measure = QFontMetricsF(away.services.theme.font(sizes.CAPTION))
    assert chart.room().left() > measure.horizontalAdvance(long)


def test_a_legend_has_its_words(qtbot: QtBot, away: Desk) -> None:
    legend = Legend(away.services.theme, ("good", SOLID, "a"), ("warning", HATCHED, "b"),
                    ("accent", DOT, "c"), ("warning", SQUARE, "d"))  # fmt: skip
    qtbot.addWidget(legend)
    assert not legend.grab().isNull()
