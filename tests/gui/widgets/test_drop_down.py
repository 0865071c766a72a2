"""A box to choose from: its lines have room, and its list is round."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QStyle, QStyleOptionComboBox
from pytestqt.qtbot import QtBot

from app.gui.look.theme import Scheme
from app.gui.widgets.fields import DropDown
from tests.gui.desk import Desk


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_longest_line_has_room_and_the_list_has_round_corners(qtbot: QtBot, away: Desk, scale: float) -> None:
    away.services.theme.choose(Scheme.LIGHT, scale)
    box = DropDown()
    qtbot.addWidget(box)
    box.addItems(["Alles", "Antworten"])
    box.show()
    option, control = QStyleOptionComboBox(), QStyle.ComplexControl.CC_ComboBox
    box.initStyleOption(option)
    part = QStyle.SubControl.SC_ComboBoxEditField
    room = box.style().subControlRect(control, option, part, box).width()
    words = box.fontMetrics().horizontalAdvance("Antworten")
    box.showPopup()
    qtbot.wait(20)
    around = box.view().window()
    picture = around.grab().toImage()
    corners = [picture.pixelColor(at, 0).alpha() for at in (0, picture.width() - 1)]
    middle = picture.pixelColor(picture.rect().center()).alpha()
    box.hidePopup()
    away.services.theme.choose(Scheme.LIGHT, 1.0)
    assert room > words + 2
    assert (corners, middle) == ([0, 0], 255)
