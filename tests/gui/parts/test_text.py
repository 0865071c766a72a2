"""Labels show all of their words."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.gui.parts.text import label
from app.gui.theme import Scheme
from tests.gui.desk import Desk

ROOM = 8  # pixels
LOST = 0.01  # of the ink: the edge of a line that is smoothed


def ink(qtbot: QtBot, role: str, room: int = 0) -> int:
    """How much of three letters with dots is drawn."""
    shown = label("ÄÖÜ", role)
    qtbot.addWidget(shown)
    if room:
        shown.setContentsMargins(0, room, 0, 0)
    shown.ensurePolished()
    shown.adjustSize()
    image = shown.grab().toImage()
    points = [image.pixelColor(x, y) for y in range(image.height()) for x in range(image.width())]
    return sum(255 - point.lightness() for point in points if point.alpha())


@pytest.mark.parametrize("role", ["", "caption", "muted", "section", "title", "figure"])
@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_the_dots_of_german_capitals_are_not_cut_off(
    qtbot: QtBot, away: Desk, role: str, scale: float
) -> None:
    """Some fonts, DejaVu Sans among them, draw them above what they say of their height."""
    away.services.theme.choose(Scheme.LIGHT, scale)
    drawn, whole = ink(qtbot, role), ink(qtbot, role, ROOM)
    away.services.theme.choose(Scheme.LIGHT, 1.0)
    assert whole
    assert drawn >= (1 - LOST) * whole
