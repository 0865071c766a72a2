"""A talk with the Guide: whatever was asked before, it answers as if it were asked for the first time."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import FIGURES, MODEL
from app.gui.chat.chat_page import ChatPage
from tests.gui.chat.test_chat_page import WITHIN_MS, ask, page, rested, say

__all__ = ["page"]  # a fixture


@pytest.mark.long
def test_the_guide_is_told_the_last_question_alone(qtbot: QtBot, page: ChatPage) -> None:
    """The Guide was trained on single questions, and long conversations made it produce nonsense."""
    for text in ("Is it safe?", "What is a pool?", "Is it free?"):
        ask(qtbot, page, text)
    last = tree.path(page.chat)[-1]
    assert last.text.startswith("Poolhouse is free and open source.")
    assert last.details[FIGURES]["prompt_tokens"] < 24


def test_it_is_named_while_it_still_answers(qtbot: QtBot, page: ChatPage) -> None:
    say(qtbot, page, "Is it free?")
    qtbot.waitUntil(lambda: len(tree.path(page.chat)) == 2, timeout=WITHIN_MS)
    assert tree.path(page.chat)[1].details[MODEL] == "guide"
    rested(qtbot, page)
