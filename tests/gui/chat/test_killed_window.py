"""Tests of what a killed window leaves of an answer in progress."""

from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import BEFORE, ENDED, FIGURES, UNFINISHED
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.message.message_view import WrappedLabel
from tests.gui.chat.test_chat_page import WITHIN_MS, page, press, rested, say
from tests.gui.desk import Desk

__all__ = ["page"]  # a fixture
CUT = "Poolhouse closed before this answer was finished."


def reopened(qtbot: QtBot, at_lone: Desk) -> ChatPage:
    """The page of the next window."""
    made = ChatPage(at_lone.services)
    qtbot.addWidget(made)
    made.show()
    made.shown()
    return made


def test_an_answer_whose_window_was_killed_says_so_and_goes_on(qtbot: QtBot, page: ChatPage, at_lone: Desk) -> None:
    say(qtbot, page, "What is Poolhouse?")
    qtbot.waitUntil(lambda: bool(page.session.running), timeout=WITHIN_MS)
    running = page.session.running[page.chat.id]
    qtbot.waitUntil(lambda: bool(running.text), timeout=WITHIN_MS)
    page.session._save_text(running)
    known = page.history.chat(page.chat.id)  # what a kill leaves
    assert known is not None
    page.session.stop(page.chat.id)
    rested(qtbot, page)
    page.history.save(known)
    page.close_history()
    again = reopened(qtbot, at_lone)
    cut = tree.path(again.chat)[1]
    assert (cut.details[ENDED], cut.text) == (UNFINISHED, known.messages[cut.id].text)
    labels = again.conversation.views[1].findChildren(WrappedLabel)
    assert CUT in [label.text() for label in labels]
    press(again, 1, "Continue")
    rested(qtbot, again)
    whole = tree.path(again.chat)[1]
    assert (whole.id, whole.details[ENDED]) == (cut.id, "stop")
    assert whole.text.startswith(cut.text)
    again.close_history()


def test_the_answer_of_a_killed_window_is_taken_up_where_it_is_by_then(
    qtbot: QtBot, page: ChatPage, at_lone: Desk
) -> None:
    """A kill breaks the connection and writes nothing more: the node goes on, the next window follows it."""
    page.history.save(replace(page.chat, sampling={"temperature": 0, "max_tokens": 60}))
    say(qtbot, page, "What is Poolhouse?")
    rested(qtbot, page)
    whole = tree.path(page.chat)[1].text
    page.session.regenerate(page.chat.id, tree.path(page.chat)[1].id)
    running = page.session.running[page.chat.id]
    qtbot.waitUntil(lambda: bool(running.text), timeout=WITHIN_MS)
    page.session._save_text(running)
    page.history.flush()
    assert running.answer._call is not None
    running.answer._call.cancel()
    del page.session.running[page.chat.id]
    page.close_history()
    again = reopened(qtbot, at_lone)
    cut = tree.path(again.chat)[1]
    assert cut.details[ENDED] == UNFINISHED
    qtbot.waitUntil(lambda: tree.path(again.chat)[1].details[ENDED] == "stop", timeout=WITHIN_MS)
    message = tree.path(again.chat)[1]
    assert (message.id, message.text) == (running.message, whole)
    assert BEFORE not in message.details
    assert message.details[FIGURES]["tokens"] > 5
    again.close_history()


def test_what_was_stopped_is_not_taken_up(qtbot: QtBot, page: ChatPage, at_lone: Desk) -> None:
    """Though the window went before the node heard of it."""
    say(qtbot, page, "What is Poolhouse?")
    qtbot.waitUntil(lambda: bool(page.session.running), timeout=WITHIN_MS)
    call = page.session.running[page.chat.id].answer._call
    assert call is not None
    page.session.stop(page.chat.id)
    rested(qtbot, page)
    text, client = tree.path(page.chat)[-1].text, at_lone.services.client
    key = f"{page.chat.id}.{tree.path(page.chat)[-1].id}"
    body = {"model": "guide", "prompt": "What is Poolhouse?", "max_tokens": 2000, "ignore_end": True}
    client.call("POST", f"/answers/{key}", body, lambda _: None)
    under_way: list[object] = []

    def asked() -> bool:
        client.get("/answers", lambda never: under_way.append(never["answers"]))
        return [key] in under_way

    qtbot.waitUntil(asked, timeout=WITHIN_MS)
    page.session.resume()
    under_way.clear()

    def gone() -> bool:
        client.get("/answers", lambda never: under_way.append(never["answers"]))
        return [] in under_way

    qtbot.waitUntil(gone, timeout=WITHIN_MS)
    assert (page.session.running, tree.path(page.chat)[-1].text) == ({}, text)
