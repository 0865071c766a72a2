"""The line above the composer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId, Message, MessageId, Role, add
from app.gui.api.node_state import NodeState
from app.gui.app.preferences import Preferences
from app.gui.chat.composer import ComposerHint
from tests.gui.speaking import speaking
from tests.gui.typed_api import pool_of


def pool_with(model: str | None, load_failed: str = "") -> NodeState:
    """A pool with this loaded."""
    loaded = {"model": model} if model else None
    return pool_of({"loaded": loaded, "load_failed": {"model": load_failed} if load_failed else None})


ASKED = (Message(MessageId("1"), None, Role.USER, "Wie füge ich einen Computer hinzu?", 0.0),)
NONE = "Es ist kein Modell geladen, daher antwortet der Guide."
ONLY = "Der Guide versteht nur Englisch."


@pytest.mark.parametrize(
    ("language", "loaded", "messages", "words"),
    [
        ("de", "guide", ASKED, ONLY),
        ("de", "guide", (), ""),  # an empty chat says it at length
        ("de", "big", ASKED, ""),
        ("de", None, (), NONE),
        ("de", None, ASKED, f"{NONE} {ONLY}"),
        ("en", "guide", ASKED, ""),
    ],
)
def test_a_person_who_writes_another_language_hears_what_the_guide_understands(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, language: str, loaded: str | None,
    messages: tuple[Message, ...], words: str,
) -> None:  # fmt: skip
    chat = Chat(ChatId("7"), messages={message.id: message for message in messages})
    pool = pool_with(loaded)
    with speaking(qapp, language):
        hint = ComposerHint(Preferences(tmp_path), lambda _: None)
        qtbot.addWidget(hint)
        hint.show_for(chat, (), pool, is_full=False)
        assert hint.words.text() == words


def test_who_agreed_to_leave_out_the_oldest_is_told_that_this_comes(qtbot: QtBot, tmp_path: Path) -> None:
    pool = pool_with("guide")
    hint = ComposerHint(Preferences(tmp_path), lambda _: None)
    qtbot.addWidget(hint)
    hint.show_for(Chat(ChatId("7")), (), pool, is_full=True)
    assert hint.words.text() == "The context is nearly full. The next answer may stop early."
    hint.show_for(Chat(ChatId("7")), (), pool, is_full=True, may_trim=True)
    assert "the oldest messages will be left out" in hint.words.text()


def test_where_the_guide_was_asked_and_does_not_fit_it_promises_no_answer(qtbot: QtBot, tmp_path: Path) -> None:
    pool = pool_with(None)
    hint = ComposerHint(Preferences(tmp_path), lambda _: None)
    qtbot.addWidget(hint)
    chat = add(Chat(ChatId("7")), Message(MessageId("1"), None, Role.USER, "Why?", 0.0))
    hint.show_for(chat, (), pool, is_full=False, guide_fails=True)
    assert hint.words.text() == "No model is loaded, and there is not enough memory for the Guide."
    hint.show_for(chat, (), pool, is_full=False)
    assert hint.words.text() == "No model is loaded, so the Guide answers."


def test_after_a_failed_load_it_promises_no_answer_of_the_guide(qtbot: QtBot, tmp_path: Path) -> None:
    pool = pool_with(None, load_failed="odd")
    used: list[str] = []
    hint = ComposerHint(Preferences(tmp_path), used.append)
    qtbot.addWidget(hint)
    hint.show_for(Chat(ChatId("7")), (), pool, is_full=False)
    assert hint.words.text() == "", "the empty chat's invitation says it"
    chat = add(Chat(ChatId("7")), Message(MessageId("1"), None, Role.USER, "Why?", 0.0))
    hint.show_for(replace(chat, model="guide"), (), pool, is_full=False)
    assert hint.words.text() == "", "it was chosen for this chat, and answers"
    hint.show_for(chat, (), pool, is_full=False)
    assert hint.words.text() == "odd could not be loaded, so no model is available."
    assert hint.other.text() == "Ask the Guide"
    hint.other.click()
    assert used == ["guide"]
