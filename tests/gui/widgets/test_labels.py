"""Labels show all of their words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.gui.look.theme import Scheme
from app.gui.widgets.labels import Chip, ElidedLabel, ValueLabel, label, paragraph
from app.gui.widgets.layouts import row
from tests.gui.desk import Desk

ROOM = 8  # pixels
SETTLED_MS = 60
LOST = 0.01  # of the ink: the edge of a line that is smoothed


class Painted(QObject):
    """A counter of how often a widget was painted."""

    def __init__(self, watched: QWidget) -> None:
        super().__init__(watched)
        self.often = 0
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        self.often += event.type() == QEvent.Type.Paint
        return False


def ink(qtbot: QtBot, shown: QLabel, ratio: int, room: int = 0, spare: int = 0) -> int:
    """Return how much of its text is drawn at this device pixel ratio."""
    qtbot.addWidget(shown)
    if room:
        shown.setContentsMargins(0, room, 0, 0)
    shown.ensurePolished()
    shown.resize(ROOM * 8, shown.sizeHint().height() + spare)
    image = QImage(shown.size() * ratio, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.white)
    shown.render(image)
    ground = image.pixelColor(image.width() - 1, image.height() - 1).lightness()
    points = [image.pixelColor(x, y) for y in range(image.height()) for x in range(image.width())]
    return sum(abs(ground - point.lightness()) for point in points)


@pytest.mark.parametrize("role", ["", "caption", "muted", "section", "title", "figure"])
@pytest.mark.parametrize(("scale", "ratio"), [(1.0, 1), (1.25, 1), (1.0, 3)])
def test_the_dots_of_german_capitals_are_not_cut_off(
    qtbot: QtBot, away: Desk, role: str, scale: float, ratio: int
) -> None:
    """Some fonts, DejaVu Sans among them, draw them above what they say of their height."""
    away.services.theme.choose(Scheme.LIGHT, scale)
    drawn, whole = ink(qtbot, label("ÖÜ", role), ratio), ink(qtbot, label("ÖÜ", role), ratio, ROOM)
    wraps = ink(qtbot, paragraph("ÖÜ", role), ratio)
    higher = ink(qtbot, paragraph("ÖÜ", role), ratio, spare=5)
    away.services.theme.choose(Scheme.LIGHT, 1.0)
    assert whole
    assert min(drawn, wraps, higher) >= (1 - LOST) * whole
    assert max(wraps, higher) <= (1 + LOST) * whole  # nothing twice


@pytest.mark.parametrize("made", [lambda: ValueLabel("ÖÜ"), lambda: ElidedLabel("ÖÜ", "muted")])
def test_nor_those_of_a_value(qtbot: QtBot, away: Desk, made: Callable[[], QLabel]) -> None:
    whole = ink(qtbot, label("ÖÜ", "muted"), 1, ROOM)
    shown = made()
    shown.resize(ROOM * 8, ROOM)
    assert ink(qtbot, shown, 1) >= (1 - LOST / 4) * whole


@pytest.mark.parametrize("words", ["None yet", "Noch keine", "3 connected now", "On this computer"])
def test_a_value_is_one_line_where_that_has_room(qtbot: QtBot, away: Desk, words: str) -> None:
    shown = ValueLabel(words)
    qtbot.addWidget(shown)
    shown.ensurePolished()
    assert shown.sizeHint().height() < 2 * shown.fontMetrics().height()


def test_a_paragraph_that_is_only_looked_at_is_not_painted_again_and_again(qtbot: QtBot) -> None:
    """Its layout requests while painting would cause another paint, forever."""
    shown = paragraph("Words that wrap, and can be selected.")
    qtbot.addWidget(shown)
    painted = Painted(shown)
    shown.resize(ROOM * 8, 2 * shown.heightForWidth(ROOM * 8))
    with qtbot.waitExposed(shown):
        shown.show()
    shown.repaint()
    painted.often = 0
    qtbot.wait(SETTLED_MS)
    assert painted.often <= 2
    shown.setText("Other words, at another place.")
    qtbot.wait(SETTLED_MS)
    assert 1 <= painted.often <= 5


def test_a_chip_is_as_wide_as_its_name_and_is_shortened_where_there_is_less_room(qtbot: QtBot) -> None:
    name = "a long name of a file about a summer by the sea.txt, 1.0 KiB"
    holder, chip = QWidget(), Chip(name)
    holder.setLayout(row(chip, None))
    qtbot.addWidget(holder)
    holder.resize(2 * chip.sizeHint().width(), 60)
    holder.show()
    assert (chip.text(), chip.toolTip()) == (name, "")
    assert chip.width() == chip.sizeHint().width()
    holder.resize(chip.sizeHint().width() // 2, 60)
    qtbot.waitUntil(lambda: chip.text().endswith("…"))
    assert name in chip.toolTip()
    assert chip.fontMetrics().horizontalAdvance(chip.text()) <= chip.width()
