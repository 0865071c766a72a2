"""A chat that chose its model, while another one is what a question without a name is for."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from pytestqt.qtbot import QtBot

from app.api.plans import LoadedModel
from app.api.snapshot import Snapshot
from app.core.errors import StageLost
from app.gui.chat.answer import Ending
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.message.answer_stats import AnswerStats
from tests.gui.chat.test_chat_page import ask, page

__all__ = ["page"]  # a fixture


@pytest.mark.long
def test_what_is_short_and_what_counts_is_the_model_of_the_chat_itself(
    qtbot: QtBot, page: ChatPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide, other = (LoadedModel(model=name, state="ready", context=4096) for name in ("guide", "new"))
    messages, posted = set[str](), list[object]()
    pool, client = page.services.pool, page.services.client
    monkeypatch.setattr(type(pool), "now", property(lambda _: Snapshot(loaded=other, beside=[guide])))
    monkeypatch.setattr(page._smaller_model, "update", lambda run, name: messages.add(name) if run else None)
    page._set_up(replace(page.chat, model="guide"))
    ask(qtbot, page, "What is Poolhouse?")
    assert messages == {"guide"}
    monkeypatch.setattr(client, "post", lambda path, body, _, **__: posted.append((path, body)))
    page.composer.show_draft("", [{"name": "notes", "text": "Home."}])
    page.composer.attached.emit()
    page._set_up(replace(page.chat, model="away"))
    page.composer.attached.emit()
    assert posted == [("/tokens", {"text": "Home.", "model": "guide"})]


@pytest.mark.long
def test_the_model_whose_chat_is_opened_is_the_one_that_is_asked(
    qtbot: QtBot, page: ChatPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Snapshot(loaded=LoadedModel(model="new"))
    monkeypatch.setattr(type(page.services.pool), "now", property(lambda _: now))
    first = page.chat.id
    page.open("new")  # it would be asked already
    assert (page.chat.id, page.chat.model) == (first, None)
    page.composer.field.setPlainText("half a thou")
    page.open("guide")
    assert (page.chat.id, page.chat.model, page.composer.text) == (first, "guide", "half a thou")
    page.composer.field.clear()
    ask(qtbot, page, "What is Poolhouse?")
    page.open("guide")
    assert page.chat.id == first
    page.open("other")  # what was said stays with whoever said it
    assert page.chat.id != first
    assert page.chat.model == "other"
    assert page.chat.leaf is None
    known = page.history.chat(first)
    assert known is not None
    assert known.model == "guide"


@pytest.mark.long
def test_an_answer_of_the_guide_is_not_continued_by_the_model_that_was_loaded_after_it(
    qtbot: QtBot, page: ChatPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(qtbot, page, "What is Poolhouse?")
    first = page.chat.id
    assert page.chat.model is None
    now = Snapshot(loaded=LoadedModel(model="new", state="ready"))
    monkeypatch.setattr(type(page.services.pool), "now", property(lambda _: now))
    page.open("guide")
    assert page.chat.id != first
    page.open_chat(first)
    page.open("new")  # as *Open chat* does; it would be asked already
    assert (page.chat.id != first, page.chat.leaf) == (True, None)


def test_what_is_said_once_is_shown_again_if_an_error_covered_it_at_once(
    page: ChatPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = SimpleNamespace(answer=SimpleNamespace(remark="Questions go to study."))
    monkeypatch.setattr(type(page), "_running", property(lambda _: running))
    monkeypatch.setattr(page, "_show_state", lambda: None)
    monkeypatch.setattr(page, "_pool_changed", lambda: None)
    page._answer_progressed("")
    assert page.notice.sentence == "Questions go to study."
    page._answer_ended(page.chat.id, Ending("failed", AnswerStats(), error=StageLost("worker_closed", worker="study")))
    assert page.notice.sentence != "Questions go to study."
    page._clear_notice()  # as the next question does
    assert page.notice.sentence == "Questions go to study."
    page._clear_notice()
    assert page.notice.isHidden()
