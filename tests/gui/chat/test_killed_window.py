"""What a killed window leaves of an answer that was coming."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import ENDED, UNFINISHED
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.wrapped import Wrapped
from tests.gui.chat.test_chat_page import WITHIN_MS, page, press, rested, say
from tests.gui.desk import Desk

__all__ = ["page"]  # a fixture
CUT = "Poolhouse ended before this answer did."


def test_an_answer_whose_window_was_killed_says_so_and_goes_on(
    qtbot: QtBot, page: ChatPage, at_lone: Desk
) -> None:
    say(qtbot, page, "What is Poolhouse?")
    qtbot.waitUntil(lambda: bool(page.session.running), timeout=WITHIN_MS)
    running = page.session.running[page.chat.id]
    qtbot.waitUntil(lambda: bool(running.text), timeout=WITHIN_MS)
    page.session._keep_text(running)
    known = page.history.chat(page.chat.id)  # what a kill leaves
    assert known is not None
    page.session.stop(page.chat.id)
    rested(qtbot, page)
    page.history.keep(known)
    page.close_history()
    again = ChatPage(at_lone.services)
    qtbot.addWidget(again)
    again.show()
    again.shown()
    cut = tree.path(again.chat)[1]
    assert (cut.details[ENDED], cut.text) == (UNFINISHED, known.messages[cut.id].text)
    labels = again.conversation.views[1].findChildren(Wrapped)
    assert CUT in [one.text() for one in labels]
    press(again, 1, "Continue")
    rested(qtbot, again)
    whole = tree.path(again.chat)[1]
    assert (whole.id, whole.details[ENDED]) == (cut.id, "stop")
    assert whole.text.startswith(cut.text)
    again.close_history()
