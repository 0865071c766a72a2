"""Parts of a page that is being made: nothing is dressed before it is seen, and what is hidden comes back."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui.this_computer.computer_page import ComputerPage
from app.gui.widgets.labels import label, show_if
from app.gui.widgets.layouts import column, scrolled
from tests.gui.desk import Desk

POLISHED = Qt.WidgetAttribute.WA_WState_Polished
SHARE = 0.1  # of its widgets: boxes to choose from dress themselves


def test_what_is_hidden_is_shown_again(qtbot: QtBot) -> None:
    holder, inner = QWidget(), label("words")
    qtbot.addWidget(holder)
    holder.setLayout(column(inner))
    show_if(inner, True)
    assert not inner.testAttribute(POLISHED), "it is laid out before anybody sees it"
    holder.show()
    assert inner.isVisible()
    for expected in (False, True, False):
        show_if(inner, expected)
        assert inner.isVisible() is expected


def test_a_view_measures_its_content_once_it_is_seen(qtbot: QtBot) -> None:
    holder, body, tall = QWidget(), QWidget(), label("words")
    qtbot.addWidget(holder)
    tall.setFixedHeight(900)
    view = scrolled(body)
    body.setLayout(column(tall))
    holder.setLayout(column(view))
    assert not tall.testAttribute(POLISHED)
    holder.resize(QSize(300, 200))
    holder.show()
    qtbot.waitUntil(lambda: view.verticalScrollBar().maximum() > 0)
    assert body.height() >= 900


def test_a_page_is_not_dressed_while_it_is_made(qtbot: QtBot, at_lone: Desk) -> None:
    page = ComputerPage(at_lone.services)
    qtbot.addWidget(page)
    page.finish()
    inside = page.findChildren(QWidget)
    dressed = [widget for widget in inside if widget.testAttribute(POLISHED)]
    assert len(dressed) < SHARE * len(inside), f"{len(dressed)} of {len(inside)}"
