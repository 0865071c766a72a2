"""Tests of what a screen reader reads of an answer: all of it at its end, or paragraph by paragraph."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.core.errors import AppError
from app.gui.app.preferences import PARAGRAPHS
from app.gui.chat import chat_page
from app.gui.chat.chat_page import ChatPage, finished
from tests.gui.desk import Desk
from tests.gui.typed_api import answer_line, finished_answer

TEXT = "One.\n\nTwo.\nStill two.\n\n```\na\n\nb\n```\n\nLast"


@pytest.mark.parametrize(
    ("text", "expected", "end"),
    [
        ("One.", 0, 0),
        ("One.\n", 0, 0),
        ("One.\n\n", 0, 6),
        ("One.\n\nTwo.", 6, 6),
        ("One.\n\n```\na\n\nb", 6, 6),  # a blank line in code ends nothing
        (TEXT, 6, TEXT.index("Last")),
        ("", 0, 0),
    ],
)
def test_where_a_paragraph_ends(text: str, expected: int, end: int) -> None:
    assert finished(text, expected) == end


@pytest.mark.parametrize(
    ("chosen", "heard"), [(False, ["One. Two. Bold. Three."]), (True, ["One.", "Two. Bold.", "Three."])]
)
def test_what_is_heard(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch, chosen: bool, heard: list[str]
) -> None:
    said: list[str] = []
    monkeypatch.setattr(chat_page, "announce", lambda _, words: said.append(words))
    away.services.preferences.keep(PARAGRAPHS, chosen)
    page = ChatPage(away.services)
    qtbot.addWidget(page)
    page.session.send(page.chat, "Say three things.")
    running = page.session.running[page.chat.id]
    for piece in ("One.", "\n\nTwo. **Bold**.", "\n\nThree."):
        running.answer._receive(answer_line({"delta": {"text": piece, "token_ids": [1]}}))
        page.session._tick()
    running.answer._done(finished_answer({"finish_reason": "stop", "token_ids": [1, 2, 3]}))
    assert [" ".join(words.split()) for words in said] == heard
    page.close_history()


def test_what_failed_is_not_read_as_an_answer(qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(chat_page, "announce", lambda _, words: said.append(words))
    page = ChatPage(away.services)
    qtbot.addWidget(page)
    page.session.send(page.chat, "Anything?")
    page.session.running[page.chat.id].answer.fail(AppError("node_away"))
    assert said == []
    page.close_history()
