"""A small text is as high as it needs to be: at another width, and in another size at the same one."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui.chat.message.message_view import WrappedLabel
from app.gui.look.theme import Scheme
from app.gui.widgets.layouts import column
from tests.gui.desk import Desk

WORDS = "128 tok/s (rough forecast 520) · first token 20 ms · 40 tokens"


def test_it_is_as_high_as_its_words(qtbot: QtBot, away: Desk) -> None:
    holder, made = QWidget(), WrappedLabel(WORDS, "caption")
    qtbot.addWidget(holder)
    holder.setLayout(column(made, None))
    holder.resize(500, 300)
    holder.show()
    qtbot.wait(20)
    lines = [made.height()]
    for wide, text in ((200, 1.0), (200, 2.0), (500, 2.0), (500, 1.0)):
        holder.resize(wide, 300)
        away.services.theme.choose(Scheme.LIGHT, text)
        qtbot.wait(20)
        assert made.height() == made.heightForWidth(wide)
        lines.append(made.height())
    assert lines[0] == lines[-1] < lines[1] < lines[2]
