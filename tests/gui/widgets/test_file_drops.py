"""Files dragged over a part of the window: what becomes of them is said, and only files are taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QUrl
from PySide6.QtGui import QDragLeaveEvent
from PySide6.QtWidgets import QApplication, QLabel, QTextBrowser, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.gui.chat.chat_page import ChatPage
from app.gui.widgets.files import FileDrops
from tests.gui.desk import Desk
from tests.gui.dragging import dragged, drop, enter


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    made = tmp_path / "notes.txt"
    made.write_text("Milk, bread.", encoding="utf-8")
    return made


def test_what_becomes_of_a_file_is_said_until_it_is_let_go(qtbot: QtBot, notes: Path) -> None:
    place, taken = QWidget(), list[str]()
    qtbot.addWidget(place)
    text = QTextBrowser()  # of an answer: it takes no files, what is around it does
    QVBoxLayout(place).addWidget(text)
    FileDrops(place, "Let go here").dropped.connect(taken.extend)
    place.show()
    words = next(label for label in place.findChildren(QLabel) if label.text() == "Let go here")
    assert not words.isVisible()
    assert enter(text.viewport(), dragged(notes))
    assert words.isVisible()
    QApplication.sendEvent(place, QDragLeaveEvent())
    assert not words.isVisible()
    drop(place, dragged(notes, notes.parent))
    assert taken == [str(notes)]
    assert not words.isVisible()


def test_folders_and_links_are_left_alone(qtbot: QtBot, tmp_path: Path) -> None:
    place = QWidget()
    qtbot.addWidget(place)
    FileDrops(place, "Let go here")
    link = QMimeData()
    link.setUrls([QUrl("https://example.org/notes.txt")])
    assert not enter(place, dragged(tmp_path))
    assert not enter(place, link)


def test_a_file_is_attached_wherever_it_is_dropped_beside_the_list(qtbot: QtBot, away: Desk, notes: Path) -> None:
    page = ChatPage(away.services)
    qtbot.addWidget(page)
    page.show()
    drops = page.findChild(FileDrops)
    assert drops is not None
    drop(drops.parent(), dragged(notes))  # type: ignore[arg-type]
    assert [file["name"] for file in page.composer.files] == ["notes.txt"]
    page.close_history()
