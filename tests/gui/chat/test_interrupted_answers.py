"""A chat whose answer was cut is found from outside: by the notification, and by the tray's first line."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.core.errors import AppError, BadInput, StageLost
from app.gui.api.node_client import NodeClient
from app.gui.app.navigation import chat_address
from app.gui.chat.answer import InterruptedAnswers
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.session import RunningAnswer
from tests.findings import tells
from tests.gui.chat.test_chat_page import page
from tests.gui.typed_api import answer_line

__all__ = ["page"]  # a fixture
SHORT = {"recovery": {"state": "short", "machine": "attic", **tells("attic is gone.", "text")}}
WORD = {"delta": {"text": "One ", "token_ids": [1]}}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that never answers by itself."""
    monkeypatch.setattr(NodeClient, "call", lambda *_, **__: None)


def asked(page: ChatPage) -> RunningAnswer:
    """A question under way."""
    page.composer.field.setPlainText("Why?")
    page.composer._send()
    return page.session.running[page.chat.id]


def test_the_last_one_that_was_cut_with_a_model_is_found() -> None:
    cut = InterruptedAnswers()
    assert cut.page("m", "pool") == "pool"
    for chat in ("a", "b", "c"):
        cut.add(chat, "other" if chat == "c" else "m")  # type: ignore[arg-type]
    assert cut.page("m", "pool") == chat_address("b")
    cut.remove("b")  # type: ignore[arg-type]
    assert cut.page("m", "pool") == chat_address("a")


@pytest.mark.parametrize(
    ("error", "is_cut"),
    [
        (StageLost("stage_lost", machine="attic"), True),
        (BadInput("prompt_too_long", tokens=9, context=8), False),
        (AppError("node_away"), False),
    ],
)
def test_an_answer_that_broke_off_with_its_model_is_noted(
    silent: None, page: ChatPage, error: AppError, is_cut: bool
) -> None:
    running, cut = asked(page), page.services.interrupted
    running.answer._receive(answer_line(WORD))
    assert cut.page(running.model, "") == ""
    running.answer.fail(error)
    assert cut.page(running.model, "") == (chat_address(page.chat.id) if is_cut else "")
    page._retry()
    assert cut.page(running.model, "") == ""  # it goes on


def test_an_answer_that_waits_for_a_machine_is_noted_until_it_goes_on(
    qtbot: QtBot, silent: None, page: ChatPage
) -> None:
    running, cut = asked(page), page.services.interrupted
    running.answer._receive(answer_line(SHORT))
    assert cut.page(running.model, "") == chat_address(page.chat.id)
    running.answer._receive(answer_line(WORD))
    qtbot.waitUntil(lambda: cut.page(running.model, "") == "")
    running.answer._receive(answer_line(SHORT))
    running.answer.fail(AppError("node_away"))  # the rest cannot hold it
    assert cut.page(running.model, "") == chat_address(page.chat.id)


def test_the_page_opens_the_chat_it_is_sent_to(page: ChatPage) -> None:
    first = page.chat.id
    page.composer.field.setPlainText("kept")
    page.open_chat(page.history.begin().id)
    assert page.chat.id != first
    page.open(chat_address(first).partition("/")[2])
    assert page.chat.id == first
