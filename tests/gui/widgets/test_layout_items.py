"""Layouts of our own measure what is inside them once at each width, and anew when it is another."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import paragraph

WIDE, NARROW = 400, 120


class Counted(Flow):
    measured = 0

    def height_at(self, width: int) -> int:
        self.measured += 1
        return super().height_at(width)


def test_a_height_is_measured_once_for_each_width(qtbot: QtBot) -> None:
    top, box = QWidget(), Counted(QLabel("One"), QLabel("Two"))
    qtbot.addWidget(top)
    top.setLayout(box)
    for width in (WIDE, NARROW, WIDE, NARROW):
        box.heightForWidth(width)
    assert box.measured == 2


@pytest.mark.parametrize("kind", [Beside, Flow])
def test_it_follows_what_is_inside(qtbot: QtBot, kind: type[Beside | Flow]) -> None:
    words = paragraph("Some words")
    top, box = QWidget(), kind(words, QLabel("and more"))
    qtbot.addWidget(top)
    top.setLayout(box)
    top.show()
    short = box.heightForWidth(NARROW)
    words.setText("Many more words, " * 20)
    long = box.heightForWidth(NARROW)
    assert long > short
    words.hide()
    assert box.heightForWidth(NARROW) < long
    words.show()
    assert box.heightForWidth(NARROW) == long
    added = paragraph("Still more. " * 20)
    box.addWidget(added)
    added.show()
    assert box.heightForWidth(NARROW) > long
    box.takeAt(2)
    assert box.heightForWidth(NARROW) == long
