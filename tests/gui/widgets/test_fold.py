"""Tests of folded content, which unfolds in steps or at once."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui.look.motion import ALWAYS, NEVER
from app.gui.look.theme import HOVER_MS
from app.gui.widgets.fold import Fold
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column
from tests.gui.desk import Desk

WORDS = "A sentence that takes more than one line where there is little room. " * 5


def test_it_unfolds_in_steps_and_moves_what_is_below(qtbot: QtBot, away: Desk) -> None:
    away.services.motion.choose(NEVER)
    window, words, below = QWidget(), paragraph(WORDS), paragraph("Below")
    qtbot.addWidget(window)
    fold = Fold(away.services.theme, "All checks", words)
    box = column(fold, below)
    box.addStretch(1)
    window.setLayout(box)
    window.resize(300, 600)
    window.show()
    at_first = below.y()
    fold.open()
    moves, seen = fold._content._moves, [at_first]
    assert moves.duration() == HOVER_MS
    moves.pause()  # it goes as the test says
    for at in (1, HOVER_MS // 4, HOVER_MS):
        moves.setCurrentTime(at)
        qtbot.waitUntil(lambda: below.y() > seen[-1])
        seen.append(below.y())
        assert words.height() == words.heightForWidth(words.width()), "laid out once"
    assert fold._content.height() == words.height()
    window.resize(220, 600)
    qtbot.waitUntil(lambda: fold._content.height() == words.heightForWidth(words.width()))
    words.setText(WORDS * 2)
    qtbot.waitUntil(lambda: fold._content.height() == words.heightForWidth(words.width()))
    fold.open(False)
    qtbot.waitUntil(lambda: not words.isVisible())
    qtbot.waitUntil(lambda: below.y() == at_first)


def test_under_reduced_motion_it_is_there_at_once(qtbot: QtBot, away: Desk) -> None:
    away.services.motion.choose(ALWAYS)
    words = paragraph(WORDS)
    fold = Fold(away.services.theme, "All checks", words)
    qtbot.addWidget(fold)
    fold.resize(300, 600)
    fold.show()
    fold.open()
    assert words.isVisible()
    assert fold._content._part == 1
    fold.open(False)
    assert not words.isVisible()
    away.services.motion.choose(NEVER)
