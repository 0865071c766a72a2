"""Tests of the notes below an answer: how it ended, what happened to it, and a context that is too short."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import ENDED, FIGURES, FULL, Message, Role
from app.gui.chat.answer import Answer, Ending
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.message.message_view import MessageAction, WrappedLabel
from tests.gui.chat.test_chat_page import ask, page, rested
from tests.gui.typed_api import finished_answer

__all__ = ["page"]  # a fixture
ROOM = 10  # tokens of the context that a long question leaves


@pytest.mark.long
def test_where_the_context_is_too_short_one_may_leave_out(
    qtbot: QtBot, page: ChatPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This applies to any model except the Guide, which gets only the last question."""
    monkeypatch.setattr("app.gui.chat.session.GUIDE", "another")
    ask(qtbot, page, "Is it free? " + "Really, honestly, truly? " * 60)
    ask(qtbot, page, "And is it free tomorrow? " + "I would like to know that. " * 60)
    ask(qtbot, page, "What is a host? " + "Tell me all about hosts, please. " * 50)
    assert "can read at most" in page.notice.sentence
    assert tree.path(page.chat)[-1].role is Role.USER
    page._leave_out()
    rested(qtbot, page)
    assert page.chat_head.is_nearly_full is ("oldest messages will be left out" in page.hint.words.text())
    last = tree.path(page.chat)[-1]
    assert last.text
    assert "left out" in last.details["notes"][0]


@pytest.mark.long
def test_an_answer_that_filled_the_context_says_so(qtbot: QtBot, page: ChatPage) -> None:
    """The note does not say that the length limit was reached: continuing helps only once there is room."""

    def machines_in_use(n_words: int) -> tuple[int, Message]:
        page.open_chat(page.history.begin().id)
        ask(qtbot, page, "Is it free? " + "free " * n_words)
        last = tree.path(page.chat)[-1]
        return int(last.details[FIGURES]["prompt_tokens"]), last

    (few, _), (many, _) = machines_in_use(100), machines_in_use(200)
    loaded = page.services.pool.now.loaded
    assert loaded is not None
    left = loaded.context - ROOM - many
    tokens, last = machines_in_use(200 + left * 100 // (many - few))
    assert tokens + int(last.details[FIGURES]["tokens"]) == loaded.context
    assert last.details[ENDED] == FULL
    shown = [wrapped.text() for wrapped in page.conversation.views[-1].findChildren(WrappedLabel)]
    assert any("context is full" in words for words in shown), shown
    page._act(MessageAction.CONTINUE, last.id, "")  # a token or two more would not help
    assert not page.session.running
    offered = [button.text() for button in page.notice.findChildren(QPushButton) if button.text()]
    assert offered == ["Edit message"]  # the Guide reads no more, and nothing is older


@pytest.mark.parametrize(
    ("expected", "how"),
    [
        ({"finish_reason": "length", "cut_by": "context"}, FULL),
        ({"finish_reason": "length", "cut_by": "max_tokens"}, "length"),
        ({"finish_reason": "stop", "cut_by": None}, "stop"),
    ],
)
def test_which_limit_cut_an_answer_is_the_nodes_word(expected: dict[str, str], how: str) -> None:
    """However many tokens there are: the model may be loaded with another context by now."""
    ended: list[Ending] = []
    answer = Answer(None, "c.m", {})  # type: ignore[arg-type]
    answer.ended.connect(ended.append)
    answer._done(finished_answer({"token_ids": [1] * 8, "prompt_tokens": 4088, "model": "guide", **expected}))
    assert [ending.how for ending in ended] == [how]


def test_what_an_answer_went_through_stands_below_it(qtbot: QtBot, page: ChatPage) -> None:
    ask(qtbot, page, "Is it free?")
    last = tree.path(page.chat)[-1]
    lost = {"machine": "attic", "detected_after_s": 0.1, "recovered_after_s": 48.0}
    figures = last.details[FIGURES] | {"recovered": [lost, lost | {"with": "study", "left": True}]}
    chat = tree.set_text(page.chat, last.id, last.text, {**last.details, FIGURES: figures})
    page.history.save(chat)
    page.open_chat(page.history.begin().id)
    page.open_chat(chat.id)
    shown = [wrapped.text() for wrapped in page.conversation.views[-1].findChildren(WrappedLabel)]
    both = [words for words in shown if "continued after" in words or "took over" in words]
    assert "Lost attic and continued after 48" in both[0]
    assert "attic left, and study took over after 48" in both[1]
