"""A talk with the Guide: whatever was asked before, it answers as if it were asked for the first time."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import FIGURES
from app.gui.chat.chat_page import ChatPage
from tests.gui.chat.test_chat_page import ask, page

__all__ = ["page"]  # a fixture


def test_the_guide_is_told_the_last_question_alone(qtbot: QtBot, page: ChatPage) -> None:
    """It learned single questions: after some, a whole talk made it say words without sense."""
    for text in ("Is it safe?", "What is a pool?", "Is it free?"):
        ask(qtbot, page, text)
    last = tree.path(page.chat)[-1]
    assert last.text.startswith("Poolhouse is free and open source.")
    assert last.details[FIGURES]["prompt_tokens"] < 24
