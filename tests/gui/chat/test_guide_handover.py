"""Tests of the offer after a refusal of the Guide: a real model, which answers the same question."""

from __future__ import annotations

from typing import Any, cast

import pytest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.api.models import Models, ShelfModel
from app.core import chat as tree
from app.core.chat import MODEL, Chat, ChatId, Message, MessageId, Role, add
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.chat_settings import ModelNames
from app.gui.chat.guide_handover import REFUSAL, GuideHandover
from app.gui.look.theme import Scheme, Theme
from app.gui.widgets.notice import Notice
from guide.dataset import UNKNOWN, load_topics
from tests.gui.chat.test_chat_page import ask, page
from tests.gui.typed_api import pool_of

Json = dict[str, Any]

__all__ = ["page"]  # a fixture
REFUSED = "I don't know that: I am only the Guide."
REAL = {"model": "qwen", "state": "ready", "stages": []}
BASE = {**REAL, "model": "base"}
SHARED = {"model": "big", "machine": "den pc", "machine_id": "b" * 64, "reference": "big@den pc", "ready": True}


def answered(text: str, model: str = "guide") -> Chat:
    chat = add(Chat(ChatId("7")), Message(MessageId("1"), None, Role.USER, "Why?", 0.0))
    return add(chat, Message(MessageId("2"), MessageId("1"), Role.ASSISTANT, text, 0.0, {MODEL: model}))


def buttons(notice: QWidget) -> list[QPushButton]:
    return [each for each in notice.findChildren(QPushButton) if each.text()]


@pytest.mark.parametrize(
    ("snapshot", "offered"),
    [
        ({"loaded": REAL}, "qwen"),
        ({"loaded": {**REAL, "model": "guide"}, "beside": [REAL]}, "qwen"),
        ({"loaded": {**REAL, "state": "loading"}, "shared": [SHARED]}, "big@den pc"),
        ({"loaded": REAL, "shared": [SHARED]}, "qwen"),
        ({"shared": [{**SHARED, "ready": False}]}, None),
        ({"loaded": {**REAL, "model": "guide"}, "shared": [{**SHARED, "model": "guide"}]}, None),
        ({"loaded": BASE, "beside": [REAL]}, "qwen"),
        ({"loaded": BASE, "shared": [{**SHARED, "base": True}]}, None),
        ({"loaded": BASE, "shared": [SHARED]}, "big@den pc"),
    ],
)
def test_the_first_model_that_can_answer_is_offered(
    qtbot: QtBot, qapp: QApplication, snapshot: Json, offered: str | None
) -> None:
    requests, pages = list[tuple[str, str]](), list[str]()
    notice = Notice(Theme(qapp, Scheme.LIGHT, 1.0))
    qtbot.addWidget(notice)
    pool = pool_of(snapshot)
    names = ModelNames(cast("Any", None), cast("Any", pool), lambda: None)
    names._loaded(Models(models=[ShelfModel(name="qwen"), ShelfModel(name="base", has_template=False)]))
    handover = GuideHandover(
        notice, lambda *which: requests.append(which), lambda: pages.append("models"), names.is_base, notice
    )
    handover.offer(answered(REFUSED), pool.now)
    (action,) = buttons(notice)
    action.click()
    assert (requests, pages) == (([(offered, "2")], []) if offered else ([], ["models"]))


@pytest.mark.parametrize("chat", [Chat(ChatId("7")), answered("It is free."), answered(REFUSED, "qwen")])
def test_nothing_is_offered_after_other_answers(qtbot: QtBot, qapp: QApplication, chat: Chat) -> None:
    notice = Notice(Theme(qapp, Scheme.LIGHT, 1.0))
    qtbot.addWidget(notice)
    handover = GuideHandover(notice, lambda *_: None, lambda: None, lambda _: False, notice)
    handover.offer(chat, pool_of({"loaded": REAL}).now)
    assert notice.isHidden()


def test_only_the_answers_to_unknown_questions_are_taken_for_refusals() -> None:
    refusals = {topic.name for topic in load_topics() if topic.answer.startswith(REFUSAL)}
    assert refusals == set(UNKNOWN)


def test_a_refused_question_leads_to_the_models_page(
    qtbot: QtBot, page: ChatPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(qtbot, page, "What is the capital of France?")
    assert tree.path(page.chat)[1].text.startswith(REFUSAL)
    assert page.notice.sentence == "The Guide knows only Poolhouse. A larger model may know this."
    ask(qtbot, page, "Is it free?")
    assert page.notice.isHidden()


def test_the_offered_model_answers_the_same_question(qtbot: QtBot, page: ChatPage) -> None:
    ask(qtbot, page, "What is the capital of France?")
    refused = tree.path(page.chat)[1].id
    page._ask_instead("guide", refused)  # any model; this household has only this one
    qtbot.waitUntil(lambda: not page.session.running, timeout=30_000)
    assert len(tree.siblings(page.chat, tree.path(page.chat)[1].id)) == 2
    assert page.chat.model == "guide"
