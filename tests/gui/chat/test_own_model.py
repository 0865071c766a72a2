"""A chat that chose its model, while another one is what a question without a name is for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from app.api.plans import LoadedModel
from app.api.snapshot import Snapshot
from app.gui.chat.chat_page import ChatPage
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
