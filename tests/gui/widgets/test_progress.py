"""A bar whose end is unknown wanders, or is filled faintly where nothing may move; it never stands at nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.look.motion import ALWAYS, NEVER
from app.gui.widgets.progress import ROUND_MS, STEPS, WHOLE, Progress
from tests.gui.desk import Desk


@pytest.fixture
def bar(qtbot: QtBot, away: Desk) -> Iterator[Progress]:
    made = Progress("Loading")
    qtbot.addWidget(made)
    away.services.motion.choose(NEVER)
    made.resize(200, 8)
    made.show()
    yield made
    away.services.motion.choose("")


def accents(bar: Progress) -> list[bool]:
    """Return where the bar is filled along its middle, compared with an empty one."""
    image, empty = bar.grab().toImage(), Progress()
    empty.tell(0)
    empty.resize(bar.size())
    blank = empty.grab().toImage()
    y = bar.height() // 2
    return [image.pixel(x, y) != blank.pixel(x, y) for x in range(4, bar.width() - 4)]


def test_it_wanders_while_nobody_knows(qapp: QApplication, bar: Progress) -> None:
    assert bar.is_moving
    assert not bar.is_known
    assert STEPS * 1000 / ROUND_MS <= 30, "it is painted no more often"
    bar._wanders.pause()
    bar._wanders.setCurrentTime(0)
    bar._wanders.resume()
    bar._wanders.setCurrentTime(bar._wanders.duration() // 2)
    some = accents(bar)
    assert any(some)
    assert not all(some)
    bar.hide()
    assert [bar.is_moving] == [False], "nobody sees it"
    bar.show()
    bar.tell(0.25)
    assert [bar.is_moving, bar.value(), bar.maximum()] == [False, WHOLE // 4, WHOLE]
    bar.tell(7)
    assert bar.value() == WHOLE


def test_where_nothing_may_move_it_is_filled_and_rests(qtbot: QtBot, bar: Progress, away: Desk) -> None:
    away.services.motion.choose(ALWAYS)
    qtbot.waitUntil(lambda: not bar.is_moving)  # also one that wanders already
    assert all(accents(bar))
    bar.tell(None)
    assert not bar.is_moving
    bar.tell(0)
    assert not any(accents(bar))
