"""The Chat page over a real node: asking, stopping, versions, continuing, drafts, files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import ENDED, FIGURES, MODEL, Role
from app.core.errors import Reason
from app.gui.api.node_state import Link
from app.gui.chat.chat_page import LAST_CHAT_KEY, ChatPage
from app.gui.chat.composer import MAX_FILE_BYTES, file_words
from app.gui.chat.message.branch_view import state_of
from app.gui.chat.message.message_view import WrappedLabel
from app.gui.look.theme import Scheme
from tests.findings import tells
from tests.gui.desk import Desk
from tests.gui.typed_api import answer_line

WITHIN_MS = 30_000


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> Iterator[ChatPage]:
    made = ChatPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.shown()
    made.open_chat(made.history.begin().id)
    yield made
    made.close_history()


def rested(qtbot: QtBot, page: ChatPage) -> None:
    """Wait until no answer is under way."""
    qtbot.waitUntil(lambda: not page.session.running, timeout=WITHIN_MS)


def say(qtbot: QtBot, page: ChatPage, text: str) -> None:
    page.composer.field.setPlainText(text)
    QTest.keyClick(page.composer.field, Qt.Key.Key_Return)


def ask(qtbot: QtBot, page: ChatPage, text: str) -> None:
    say(qtbot, page, text)
    rested(qtbot, page)


def press(page: ChatPage, place: int, name: str) -> None:
    """A button of a message, by its name."""
    view = page.conversation.views[place]
    view._show_tools()
    QApplication.processEvents()
    buttons = [button for button in view.findChildren(QAbstractButton) if button.isVisibleTo(view)]
    next(button for button in buttons if button.accessibleName() == name).click()


@pytest.mark.long
def test_a_suggestion_is_answered_by_the_guide(qtbot: QtBot, page: ChatPage) -> None:
    assert page.suggestions.isVisible()
    page.suggestions.buttons[0].click()
    rested(qtbot, page)
    question, answer = tree.path(page.chat)
    assert question.text == "What is Poolhouse?"
    assert "household" in answer.text
    assert answer.details[MODEL] == "guide"
    assert answer.details[ENDED] == "stop"
    assert answer.details[FIGURES]["tokens"] > 5
    assert page.conversation.isVisible()
    assert page.chat_head.used > 10
    assert page.chat_head.title.whole() == "What is Poolhouse?"
    assert page.conversation.views[1].body.text == answer.text


def test_regenerate_edit_and_versions(qtbot: QtBot, page: ChatPage) -> None:
    ask(qtbot, page, "Is it free?")
    press(page, 1, "Regenerate")
    rested(qtbot, page)
    answer = tree.path(page.chat)[1].id
    assert len(tree.siblings(page.chat, answer)) == 2
    press(page, 1, "Previous version")
    assert tree.path(page.chat)[1].id != answer
    view = page.conversation.views[0]
    view.edit()
    editor = view._editor
    assert editor is not None
    editor.field.setPlainText("What is a host?")
    editor.accept.click()
    rested(qtbot, page)
    question, _ = tree.path(page.chat)
    assert question.text == "What is a host?"
    assert len(tree.siblings(page.chat, question.id)) == 2
    assert page.focusWidget() is page.composer.field  # and not what stands first in the window
    press(page, 0, "Previous version")
    assert tree.path(page.chat)[0].text == "Is it free?"


def test_the_keyboard_stays_with_a_message_that_another_takes_the_place_of(qtbot: QtBot, page: ChatPage) -> None:
    ask(qtbot, page, "Is it free?")
    page.conversation.views[1].setFocus()
    press(page, 1, "Regenerate")
    rested(qtbot, page)
    assert page.focusWidget() is page.conversation.views[1]


def test_after_files_are_chosen_one_can_type(page: ChatPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "note.txt"
    note.write_text("forty bytes, or so")
    chosen = ([str(note)], "")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: chosen)
    page.list.view.setFocus()
    page.composer.attach_button.click()
    assert page.focusWidget() is page.composer.field
    assert file_words(page.composer.files[0]) == "note.txt, 18 B"


def test_a_smaller_model_goes_on_from_where_an_answer_waits(qtbot: QtBot, page: ChatPage) -> None:
    page._set_up(replace(page.chat, sampling={"temperature": 0.0}))
    say(qtbot, page, "What is Poolhouse?")
    qtbot.waitUntil(lambda: bool(page.session.running), timeout=WITHIN_MS)
    answer = page.session.running[page.chat.id].answer
    qtbot.waitUntil(lambda: bool(answer.text), timeout=WITHIN_MS)
    answer._receive(
        answer_line({"recovery": {"state": "short", "machine": "attic", **tells("attic is gone.", "text")}})
    )
    assert page.notice.sentence == "attic is gone."
    before = answer.text
    page._use_model_and_retry("guide")
    assert page.notice.isHidden()
    rested(qtbot, page)
    question, whole = tree.path(page.chat)
    assert page.chat.model == whole.details[MODEL] == "guide"
    assert question.text == "What is Poolhouse?"
    assert whole.text.startswith(before)
    assert len(whole.text) > len(before)


def test_stop_keeps_the_text_and_continue_goes_on(qtbot: QtBot, page: ChatPage) -> None:
    page._set_up(replace(page.chat, sampling={"max_tokens": 5, "temperature": 0.0}))
    ask(qtbot, page, "What is Poolhouse?")
    cut = tree.path(page.chat)[1]
    assert cut.details[ENDED] == "length"
    page._set_up(replace(page.chat, sampling={"temperature": 0.0}))
    press(page, 1, "Continue")
    rested(qtbot, page)
    whole = tree.path(page.chat)[1]
    assert whole.id == cut.id
    assert whole.text.startswith(cut.text)
    assert "none of them could run alone" in whole.text
    assert whole.details[FIGURES]["before_tokens"] == cut.details[FIGURES]["tokens"] == 5
    page._set_up(replace(page.chat, sampling={"max_tokens": 900}))
    say(qtbot, page, "How do I add a computer?")
    qtbot.waitUntil(lambda: bool(page.session.running), timeout=WITHIN_MS)
    running = page.session.running[page.chat.id]
    running.answer.grew.connect(lambda: page.session.stop(page.chat.id))
    rested(qtbot, page)
    last = tree.path(page.chat)[-1]
    assert last.text
    assert (last.details[ENDED], last.details[MODEL]) == ("stopped", "guide")


def test_a_failed_question_stays_and_can_be_retried(qtbot: QtBot, page: ChatPage) -> None:
    client = page.services.client
    endpoint, client.endpoint = client.endpoint, None
    ask(qtbot, page, "Does it need the internet?")
    assert [message.text for message in tree.path(page.chat)] == ["Does it need the internet?"]
    assert page.notice.sentence
    client.endpoint = endpoint
    page._retry()
    rested(qtbot, page)
    assert not page.notice.sentence
    assert len(tree.path(page.chat)) == 2


def test_another_question_follows_one_without_an_answer(qtbot: QtBot, page: ChatPage) -> None:
    """The first stays visible, with a note that the model does not get it: two questions in a row confuse it."""
    client = page.services.client
    endpoint, client.endpoint = client.endpoint, None
    ask(qtbot, page, "First?")
    client.endpoint = endpoint
    ask(qtbot, page, "What is a lender?")
    first, question, answer = tree.path(page.chat)
    assert (first.text, question.text) == ("First?", "What is a lender?")
    ask(qtbot, page, "What is a host?")
    views = page.conversation.views
    words = [[wrapped.text() for wrapped in view.findChildren(WrappedLabel)] for view in views]
    assert ["This message was not answered" in " ".join(word) for word in words] == [True, *[False] * 4]
    alone = answer.details[FIGURES]["prompt_tokens"]
    page.open_chat(page.history.begin().id)
    ask(qtbot, page, "What is a lender?")
    assert tree.path(page.chat)[1].details[FIGURES]["prompt_tokens"] == alone


def test_a_question_asked_while_the_node_starts_is_kept_and_sent(qtbot: QtBot, page: ChatPage) -> None:
    pool = page.services.pool
    pool._say(Link.STARTING, None)
    say(qtbot, page, "What does a lender do?")
    assert page._running is not None
    shown = page.conversation.views[-1]
    assert "background service" in state_of(page._running, pool)
    assert shown.message.text == ""
    pool._say(Link.THERE, None)
    rested(qtbot, page)
    assert [message.role for message in tree.path(page.chat)] == [tree.Role.USER, tree.Role.ASSISTANT]


def test_who_stops_an_answer_goes_on_typing(qtbot: QtBot, page: ChatPage) -> None:
    page.services.pool._say(Link.STARTING, None)  # so that no answer comes first
    say(qtbot, page, "Are you there?")
    page.composer.send.setFocus()
    assert page.focusWidget() is page.composer.send
    page.composer.send.click()
    assert not page.session.running
    assert page.focusWidget() is page.composer.field


def test_where_questions_go_is_said_in_the_chat(qtbot: QtBot, page: ChatPage) -> None:
    """The node says it once, so the window must not miss it."""
    page.services.pool._say(Link.STARTING, None)
    say(qtbot, page, "Are you there?")
    (running,) = page.session.running.values()
    notice = Reason("host_answers", {"host": "attic"})
    line = {"by": {"model": "qwen@attic", "text": "", "text_facts": notice.to_json()}}
    running.answer._receive(answer_line(line))
    assert page.notice.sentence.startswith("attic answers with its model. Your questions go to attic")
    page.notice.clear()
    running.answer._receive(
        answer_line({"progress": {"step": "loading", "machine": "den", "done": 1, "total": 2, "unit": "steps"}})
    )
    assert not page.notice.sentence, "said once"
    page.composer.stopped.emit()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_question_whose_node_does_not_come_stays(qtbot: QtBot, page: ChatPage, stopped: bool) -> None:
    pool = page.services.pool
    pool._say(Link.STARTING, None)
    say(qtbot, page, "Are you there?")
    if stopped:
        page.composer.stopped.emit()
    else:
        pool._say(Link.AWAY, "It does not start.")
    assert not page.session.running
    assert [message.text for message in tree.path(page.chat)] == ["Are you there?"]
    assert bool(page.notice.sentence) is not stopped
    pool._say(Link.THERE, None)
    page._retry()
    rested(qtbot, page)
    assert len(tree.path(page.chat)) == 2


def test_drafts_and_files_stay_with_their_chat(qtbot: QtBot, page: ChatPage, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("Poolhouse is free.")
    page.composer.field.setPlainText("half a thou")
    page.composer.attach([notes])
    first = page.chat.id
    page.open_chat(page.history.begin().id)
    assert page.composer.text == ""
    assert page.composer.files == []
    page.open_chat(first)
    assert page.composer.text == "half a thou"
    assert [file["name"] for file in page.composer.files] == ["notes.txt"]
    ask(qtbot, page, "Is it free?")
    question = tree.path(page.chat)[0]
    assert question.details["attachments"] == [{"name": "notes.txt", "text": "Poolhouse is free."}]
    page.composer.attach([notes])  # the Guide is loaded now, and counts
    qtbot.waitUntil(lambda: bool(page.composer.files[0].get("tokens")), timeout=WITHIN_MS)
    page.composer.show_draft("")
    assert page.composer.text == ""
    assert page.composer.files == []
    (tmp_path / "large.txt").write_text("x" * (MAX_FILE_BYTES + 1))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\xff")
    for name in ("large.txt", "picture.png", "none.txt"):
        page.composer.attach([tmp_path / name])
        assert name in page.notice.sentence
    assert page.composer.files == []


def test_copies_and_a_branch_of_its_own(qtbot: QtBot, page: ChatPage) -> None:
    ask(qtbot, page, "What is **Poolhouse**?")
    press(page, 0, "Edit")
    page.conversation.views[0]._end_edit()
    press(page, 0, "Copy")
    assert QGuiApplication.clipboard().text() == "What is **Poolhouse**?"
    press(page, 1, "Copy")
    assert QGuiApplication.clipboard().text() == tree.path(page.chat)[1].text
    before = page.chat.id
    page.conversation.views[0]._menu().actions()[-1].trigger()
    assert page.chat.id != before
    assert [message.text for message in tree.path(page.chat)] == ["What is **Poolhouse**?"]


def test_a_chat_comes_back_after_a_restart(qtbot: QtBot, page: ChatPage, at_lone: Desk, tmp_path: Path) -> None:
    ask(qtbot, page, "Is it free?")
    page.composer.field.setPlainText("and a draft")
    notes = tmp_path / "notes.txt"
    notes.write_text("Poolhouse is free.")
    page.composer.attach([notes])
    qtbot.waitUntil(lambda: bool(page.composer.files[0].get("tokens")), timeout=WITHIN_MS)
    files = page.composer.files
    texts = [message.text for message in tree.path(page.chat)]
    page.close_history()
    again = ChatPage(at_lone.services)
    qtbot.addWidget(again)
    assert [message.text for message in tree.path(again.chat)] == texts
    assert (again.composer.text, again.composer.files) == ("and a draft", files)
    again.close_history()


def test_a_context_is_loaded_for_its_chat(qtbot: QtBot, page: ChatPage) -> None:
    pool, done = page.services.pool, list[object]()
    page.services.client.post("/unload", None, done.append)
    qtbot.waitUntil(lambda: bool(done) and pool.now.loaded is None, timeout=WITHIN_MS)
    qtbot.waitUntil(page.hint.isVisible)
    assert page.hint.words.text() == "No model is loaded, so the Guide answers."
    page._set_up(replace(page.chat, context=512))
    ask(qtbot, page, "Is it free?")
    assert pool.now.loaded is not None
    assert pool.now.loaded.context == 512
    assert not page.hint.isVisible()
    page.services.client.post("/unload", None, done.append)
    qtbot.waitUntil(lambda: len(done) == 2, timeout=WITHIN_MS)


def test_a_chat_is_remembered_only_once_it_was_shown(page: ChatPage, monkeypatch: pytest.MonkeyPatch) -> None:
    before = page.services.preferences.text(LAST_CHAT_KEY)
    monkeypatch.setattr(page.conversation, "open", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        page.open_chat(page.history.begin().id)
    assert page.services.preferences.text(LAST_CHAT_KEY) == before


def test_keys(qtbot: QtBot, page: ChatPage) -> None:
    field = page.composer.field
    field.sends_with_enter = lambda: False
    page.shown()
    assert page.composer.send.toolTip() == "Send (Ctrl+Enter)"
    field.sends_with_enter = lambda: True
    page.shown()
    assert page.composer.send.toolTip() == "Send (Enter)"
    QTest.keyClicks(field, "one")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(field, "two")
    assert page.composer.text == "one\ntwo"
    assert not page.session.running
    field.clear()
    QTest.keyClick(field, Qt.Key.Key_Return)  # nothing to send
    assert tree.path(page.chat) == ()
    assert not page.composer.send.isEnabled()


def test_escape_ends_an_edit_and_a_search(qtbot: QtBot, page: ChatPage) -> None:
    """Though it stops an answer everywhere else on the page."""
    ask(qtbot, page, "Is it free?")
    view = page.conversation.views[0]
    view.edit()
    assert view._editor is not None
    QTest.keyClick(view._editor.field, Qt.Key.Key_Escape)
    assert not view.is_editing
    page.list.search.setText("free")
    QTest.keyClick(page.list.search, Qt.Key.Key_Escape)
    assert page.list.search.text() == ""


def test_everything_one_can_focus_has_a_name(qtbot: QtBot, page: ChatPage) -> None:
    ask(qtbot, page, "Is it free?")
    page.composer.attach([Path(__file__)])
    nameless = [
        widget
        for widget in page.findChildren(QWidget)
        if widget.isVisible()
        and widget.focusPolicy() != Qt.FocusPolicy.NoFocus
        and not widget.accessibleName()
        and not (isinstance(widget, QAbstractButton) and widget.text())
    ]
    assert nameless == []
    scheme = page.services.theme.scheme
    page.services.theme.choose(Scheme.DARK, 1.5)
    page.services.theme.choose(scheme, 1.0)


def test_what_is_sent_while_an_answer_comes_goes_when_it_has_ended(qtbot: QtBot, page: ChatPage) -> None:
    say(qtbot, page, "What is a pool?")
    say(qtbot, page, "And a lender?")
    assert page.composer.text == "And a lender?"
    assert page.hint.words.text() == "Your message will be sent when this answer is done."
    page.composer.field.setPlainText("And a host?")  # changed meanwhile: it waits no longer
    assert page.hint.words.text() != "Your message will be sent when this answer is done."
    QTest.keyClick(page.composer.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: page.composer.text == "", timeout=WITHIN_MS)
    rested(qtbot, page)
    texts = [message.text for message in tree.path(page.chat) if message.role is Role.USER]
    assert texts == ["What is a pool?", "And a host?"]


def test_what_waits_for_an_answer_that_fails_stays_to_be_decided(page: ChatPage) -> None:
    waits: list[bool] = []
    page.composer.queued.connect(lambda: waits.append(page.composer.is_queued))
    page.composer.show_busy(True)
    page.composer.field.setPlainText("And then?")
    page.composer.field.sent.emit()
    page.composer.show_busy(False)
    page.composer.send_queued(succeeded=False)
    assert waits == [True, False]
    assert page.composer.text == "And then?"
