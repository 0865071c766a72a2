"""A base model continues a text in place: written, stopped, taken back, kept, and found again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot

from app.api.models import Models, ShelfModel
from app.core import chat as tree
from app.gui.chat.answer import question
from app.gui.chat.chat_page import ChatPage
from tests.gui.desk import Desk

WITHIN_MS = 20_000
# The token that ends an answer never comes.
ENDLESS: dict[str, Any] = {"max_tokens": 4000, "temperature": 1.0, "logit_bias": [[2, -100]]}
ODD = "one\u00a0two\r\nthree\u2028four\ufdd0five"  # a text field changes all these characters
BASE = ShelfModel(name="guide", has_template=False)  # the Guide continues text as well, which is all that counts here


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> Iterator[ChatPage]:
    """The Chat page of a node whose only model is taken for a base model."""
    made = ChatPage(at_lone.services)
    qtbot.addWidget(made)
    made._models.load = lambda: None  # type: ignore[method-assign]  # what the node lists would replace the list below
    made.resize(900, 700)
    made.show()
    if made._models._call is not None:
        made._models._call.cancel()
    made._models._loaded(Models(models=[BASE]))
    made.open_chat(made.history.begin().id)
    yield made
    made.close_history()


def shown(page: ChatPage) -> QPlainTextEdit:
    assert page._stack.currentWidget() is page.completion
    return page.completion.field


def written(qtbot: QtBot, page: ChatPage, text: str) -> str:
    """The text after the model continued it."""
    field = shown(page)
    field.setFocus()
    field.insertPlainText(text)
    page._set_up(replace(page.chat, sampling={"max_tokens": 24, "temperature": 0.0}))
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: not page.session.running and page.completion.text != text, timeout=WITHIN_MS)
    return page.completion.text


def test_an_empty_chat_with_a_base_model_is_a_text_to_continue(page: ChatPage) -> None:
    shown(page)
    assert not page.composer.isVisibleTo(page)
    assert "doesn't chat" in page.completion.about.text()
    assert not page.completion.go_on.isEnabled()
    page._models._loaded(Models(models=[replace_template(BASE)]))
    assert page._stack.currentWidget() is page.suggestions
    assert page.composer.isVisibleTo(page)


def replace_template(model: ShelfModel) -> ShelfModel:
    return ShelfModel(name=model.name, has_template=True)


def test_the_model_goes_on_at_the_end_and_undo_takes_it_back_at_once(qtbot: QtBot, page: ChatPage) -> None:
    begin = "Poolhouse is"
    first = written(qtbot, page, begin)
    assert first.startswith(begin)
    assert len(first) > len(begin)
    assert "tok/s" in page.completion.state.whole()
    assert page.completion.undo.isEnabled()
    page.completion.go_on.click()
    qtbot.waitUntil(lambda: not page.session.running, timeout=WITHIN_MS)
    assert page.completion.text.startswith(first)
    if page.completion.text != first:  # it had more to say
        page.completion.undo.click()
    assert page.completion.text == first
    page.completion.undo.click()
    assert page.completion.text == begin


def test_the_text_is_sent_as_it_is_without_a_template(qtbot: QtBot, page: ChatPage) -> None:
    written(qtbot, page, "Once upon")
    message = tree.completed_text(page.chat)
    assert message is not None
    body = question(replace(page.chat, system="Be kind."), [message], {})
    assert (body["prompt"], body["raw"]) == (message.text, True)
    assert "messages" not in body


def test_what_is_typed_and_what_was_written_is_kept(qtbot: QtBot, page: ChatPage) -> None:
    text = written(qtbot, page, "Poolhouse is")
    ident = page.chat.id
    page.completion.field.insertPlainText("!")
    edited = page.completion.text
    other = page.history.begin()
    page.open_chat(other.id)
    assert page.completion.text == ""
    page.open_chat(ident)
    assert page.completion.text == edited
    assert edited != text
    assert tree.title_of(page.chat).startswith("Poolhouse is")
    assert not page.notice.isVisibleTo(page), "it is no question that waits for an answer"


def test_stop_keeps_what_was_written(qtbot: QtBot, page: ChatPage) -> None:
    field, view = shown(page), page.completion
    field.insertPlainText("Poolhouse is")
    page._set_up(replace(page.chat, sampling=ENDLESS))
    view.go_on.click()
    qtbot.waitUntil(lambda: len(view.text) > 20, timeout=WITHIN_MS)
    assert page.session.running, "there was nothing left to stop"
    assert field.isReadOnly()
    view.stop.click()
    qtbot.waitUntil(lambda: not page.session.running, timeout=WITHIN_MS)
    message = tree.completed_text(page.chat)
    assert message is not None
    assert message.details[tree.ENDED] == "stopped"
    assert view.text == message.text
    assert len(view.text) > 20
    assert view.text.startswith("Poolhouse is")
    assert not field.isReadOnly()
    assert view.go_on.isVisibleTo(page)
    assert not view.stop.isVisibleTo(page)


def is_as_saved(page: ChatPage) -> bool:
    """Return whether the field shows the text of the history."""
    message, field = tree.completed_text(page.chat), QPlainTextEdit()
    assert message is not None
    field.setPlainText(message.text)
    return page.completion.text == message.text and page.completion.field.toPlainText() == field.toPlainText()


def test_continue_in_a_notice_goes_on_after_what_was_edited(qtbot: QtBot, page: ChatPage) -> None:
    field, client = shown(page), page.services.client
    text = written(qtbot, page, "Poolhouse is")
    endpoint, client.endpoint = client.endpoint, None
    page.completion.go_on.click()
    qtbot.waitUntil(lambda: not page.session.running and bool(page.notice.sentence), timeout=WITHIN_MS)
    client.endpoint = endpoint
    assert page.completion.text == text
    field.selectAll()
    field.insertPlainText("It is")
    page._set_up(replace(page.chat, sampling={**ENDLESS, "max_tokens": 8}))
    (button,) = [each for each in page.notice.findChildren(QPushButton) if each.text() == "Continue"]
    button.click()
    assert page.session.running
    qtbot.waitUntil(lambda: not page.session.running, timeout=WITHIN_MS)
    assert page.completion.text.startswith("It is")
    assert page.completion.text != "It is"
    assert is_as_saved(page)


@pytest.mark.parametrize("edited", ["It is", "Poolhouse is a program for all the computers of a household, and it is"])
def test_a_run_that_the_view_did_not_begin_is_shown_whole(qtbot: QtBot, page: ChatPage, edited: str) -> None:
    written(qtbot, page, "Poolhouse is")
    page._set_up(replace(page.chat, sampling={**ENDLESS, "max_tokens": 8}))
    message = tree.completed_text(page.chat)
    assert message is not None
    page.history.save(tree.set_text(page.chat, message.id, edited))  # as a window that was killed left it
    page.session.continue_answer(page.chat.id, message.id)
    qtbot.waitUntil(lambda: not page.session.running, timeout=WITHIN_MS)
    assert page.completion.text.startswith(edited)
    assert page.completion.text != edited
    assert is_as_saved(page)


def test_a_text_only_looked_at_stays_as_it_is(page: ChatPage) -> None:
    ident, changed = page.session.keep_text(page.history.begin(), ODD).id, list[str]()
    page.completion.changed.connect(changed.append)
    page.open_chat(ident)
    shown(page)
    page.completion.save()
    page.open_chat(page.history.begin().id)
    message = tree.completed_text(page.history.chat(ident) or page.chat)
    assert message is not None
    assert (message.text, changed) == (ODD, [])


def test_a_continued_text_keeps_its_characters_and_an_edited_one_its_spaces(qtbot: QtBot, page: ChatPage) -> None:
    page.open_chat(page.session.keep_text(page.history.begin(), ODD).id)
    page._set_up(replace(page.chat, sampling={**ENDLESS, "max_tokens": 8}))
    page.completion.go_on.click()
    qtbot.waitUntil(lambda: not page.session.running, timeout=WITHIN_MS)
    assert page.completion.text.startswith(ODD)
    assert page.completion.text != ODD
    assert is_as_saved(page)
    page.completion.undo.click()
    page.completion.field.insertPlainText("!")
    page.completion.save()
    message = tree.completed_text(page.chat)
    assert message is not None
    assert message.text == "one\u00a0two\nthree\nfour\nfive!"


def test_what_was_typed_stays_shown_when_the_model_turns_out_to_chat(page: ChatPage) -> None:
    shown(page).insertPlainText("Once upon")
    page._models._loaded(Models(models=[replace_template(BASE)]))
    assert shown(page).toPlainText() == "Once upon"
    assert not page.composer.isVisibleTo(page)
    page.completion.undo.click()
    assert page.completion.text == ""


def test_everything_has_a_name_and_the_keyboard_reaches_it(page: ChatPage) -> None:
    view = page.completion
    assert view.field.accessibleName() == "Text to continue"
    assert view.field.tabChangesFocus()
    for button in (view.go_on, view.stop, view.undo):
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert button.text()
