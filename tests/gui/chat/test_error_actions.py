"""Tests of the actions offered after a failed answer: those that can help, and never only those that fail again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QComboBox, QPushButton
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId, Message, MessageId, Role, add
from app.core.errors import AppError
from app.gui.app import navigation
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.chat_settings import ChatSettings
from app.gui.chat.error_actions import CONTEXT, NO_MODEL, TOO_BIG, TOO_LONG, TOO_LONG_FOR_LOADED, ErrorActions, Handlers
from tests.gui.chat.test_chat_page import ask, page, rested
from tests.gui.typed_api import pool_of

__all__ = ["page"]  # a fixture
LONG = "What is a host? " + "Tell me all about hosts, please. " * 300
OLDEST, LARGER, EDIT = (
    "Leave out the oldest messages", "Choose a larger context", "Edit message",
)  # fmt: skip


def asked(*texts: str) -> Chat:
    chat = Chat(ChatId("1"))
    for number, text in enumerate(texts):
        role = Role.ASSISTANT if number % 2 else Role.USER
        chat = add(chat, Message(MessageId(str(number)), chat.leaf, role, text, 0.0))
    return chat


ALONE, AFTER = asked("Why?"), asked("Why?", "Because.", "And then?")
CASES = [
    (TOO_LONG_FOR_LOADED, ALONE, False, False, [LARGER, EDIT]),
    (TOO_LONG_FOR_LOADED, AFTER, False, False, [OLDEST, LARGER, EDIT]),
    (TOO_LONG_FOR_LOADED, AFTER, True, False, [LARGER, EDIT]),
    (TOO_LONG_FOR_LOADED, AFTER, False, True, [OLDEST, EDIT]),
    *((code, ALONE, False, False, [EDIT]) for code in TOO_LONG if code != TOO_LONG_FOR_LOADED),
    *((code, AFTER, False, False, [OLDEST, EDIT]) for code in TOO_LONG if code != TOO_LONG_FOR_LOADED),
    *((code, ALONE, False, False, ["Choose another context"]) for code in CONTEXT),
    *((code, ALONE, False, False, ["Choose another model", "Try again"]) for code in TOO_BIG),
    (NO_MODEL, ALONE, False, False, ["Choose another model", "Ask the Guide"]),
    ("bug", ALONE, False, False, ["Try again"]),
    ("bug", asked("Why?", "Bec"), False, False, ["Continue"]),
]


@pytest.mark.parametrize(("code", "chat", "may_trim", "is_guest", "offered"), CASES)
def test_only_what_can_help_is_offered(
    qapp: QApplication, code: str, chat: Chat, may_trim: bool, is_guest: bool, offered: list[str]
) -> None:
    went = list[str]()
    session: Any = SimpleNamespace(may_trim=lambda _: may_trim)
    pool = pool_of({"hosts": ["den"] if is_guest else None})
    buttons = Handlers(went.append, list, list, list, list, list, went.append)
    entries = dict(ErrorActions(session, pool, lambda _: None, buttons).for_error(AppError(code), chat))
    assert list(entries) == offered
    if "Choose another model" in entries:
        entries["Choose another model"]()
        assert went == [navigation.MODELS]


def test_a_server_answers_once_a_click_allows_it(qapp: QApplication) -> None:
    went = list[str]()
    session: Any = SimpleNamespace(may_trim=lambda _: False)
    buttons = Handlers(list, list, list, list, list, list, went.append)
    error = AppError("server_consent", name="lab", model="smol")
    entries = dict(ErrorActions(session, pool_of({}), lambda _: None, buttons).for_error(error, ALONE))
    assert list(entries) == ["Allow lab to answer", "Choose another model"]
    entries["Allow lab to answer"]()
    assert went == ["lab"]


def button(page: ChatPage, words: str) -> QPushButton:
    QApplication.processEvents()  # they are laid out
    buttons = [push_button for push_button in page.notice.findChildren(QPushButton) if not push_button.isHidden()]
    return next(push_button for push_button in buttons if push_button.text() == words)


@pytest.mark.long
def test_a_message_too_long_for_its_model_is_edited(qtbot: QtBot, page: ChatPage) -> None:
    """The Guide reads no more, however it is loaded, and there is nothing older to leave out."""
    ask(qtbot, page, LONG)
    assert "can read at most 1,024" in page.notice.sentence
    words = [push_button.text() for push_button in page.notice.findChildren(QPushButton) if push_button.text()]
    assert words == [EDIT]
    button(page, EDIT).click()
    editor = page.conversation.views[0]._editor
    assert editor is not None
    editor.field.setPlainText("What is a host?")
    editor.accept.click()
    rested(qtbot, page)
    assert not page.notice.sentence
    assert page.conversation.views[-1].message.text


def test_a_context_beyond_the_model_is_chosen_anew(qtbot: QtBot, page: ChatPage) -> None:
    """The context was chosen for another model. The saved choice then answers the question that failed."""
    qtbot.waitUntil(lambda: page._models.context_length("guide") == 1_024)
    known = page.history.chat(page.chat.id)
    assert known is not None
    page._set_up(Chat(known.id, context=131_072))
    ask(qtbot, page, "What is a host?")
    assert "Choose 1024 tokens or fewer" in page.notice.sentence.replace(",", "")
    button(page, "Choose another context").click()
    dialog = page.findChild(ChatSettings)
    assert dialog is not None
    assert sizes_of(dialog.context) == [None, 1_024]
    dialog._save()
    rested(qtbot, page)
    assert not page.notice.sentence
    assert page.conversation.views[-1].message.text


def sizes_of(box: QComboBox) -> list[int | None]:
    return [box.itemData(at) for at in range(box.count())]
