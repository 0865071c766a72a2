"""Chats with a model that another machine has loaded: who is named, what is sent, and what is offered."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId
from app.gui.app.pool_status import current_status
from app.gui.chat.chat_head import ChatHead
from app.gui.chat.chat_page import ChatPage
from app.gui.look.sentences import model_name
from app.gui.look.theme import Scheme, Theme
from app.gui.models.models_page import ModelsPage
from app.gui.models.shared_models_card import SharedModelsCard
from app.gui.pool.pool_page import PoolPage
from testbed.snapshots import household
from tests.gui.desk import Desk
from tests.gui.typed_api import pool_of

Json = dict[str, Any]


def shared(model: str = "qwen", machine: str = "den pc", **more: Any) -> Json:
    return {
        "model": model, "machine": machine, "machine_id": "b" * 64, "reference": f"{model}@{machine}",
        "context": 8192, "ready": True, **more,
    }  # fmt: skip


def head_of(qapp: QApplication, chat: Chat, **snapshot: Any) -> ChatHead:
    head = ChatHead(Theme(qapp, Scheme.LIGHT, 1.0), pool_of(snapshot), lambda: None)
    head.show_chat(chat)
    return head


def test_the_name_of_a_reference_is_said_in_words() -> None:
    assert model_name("qwen@den pc") == "qwen on den pc"
    assert model_name("guide@den pc") == "Guide on den pc"
    assert model_name("qwen@den@home") == "qwen on den@home"
    assert model_name("@cf/llama") == "@cf/llama"  # a model of another server


@pytest.mark.parametrize("model", [None, "qwen@den pc"])
def test_the_head_says_who_answers_and_what_is_sent(qapp: QApplication, model: str | None) -> None:
    head = head_of(qapp, Chat(ChatId("a"), model=model), shared=[shared(default=True)])
    assert head.model.whole() == "qwen on den pc"
    assert head.machine_lines == ["den pc runs the model. Your messages are encrypted and sent there."]
    assert head.context == 8192


def test_a_model_that_its_host_unloaded_is_said_to_be_away(qapp: QApplication) -> None:
    head = head_of(qapp, Chat(ChatId("a"), model="qwen@den pc"), shared=[])
    assert head.model.whole() == "qwen on den pc is not available now"
    assert head.machine_lines == []


def test_a_model_that_is_loaded_here_answers_before_one_that_is_not(qapp: QApplication) -> None:
    loaded = {"model": "small", "state": "ready", "stages": []}
    head = head_of(qapp, Chat(ChatId("a")), loaded=loaded, shared=[shared()])
    assert head.model.whole() == "small on this machine"


@pytest.mark.parametrize(
    ("default", "sentence"), [(True, "Ready. qwen on den pc will answer."), (False, "Ready. No model is loaded yet.")]
)
def test_the_status_names_what_answers_if_nothing_is_loaded(qapp: QApplication, default: bool, sentence: str) -> None:
    assert current_status(pool_of({"shared": [shared(default=default)]})).sentence == sentence


def test_a_window_without_a_model_uses_the_one_of_the_household(qtbot: QtBot, away: Desk) -> None:
    away.services.pool.snapshot = household(1, with_model=False) | {"shared": [shared(default=True)]}
    page, chat = PoolPage(away.services), ChatPage(away.services)
    for item in (page, chat):
        qtbot.addWidget(item)
        item.finish()
    assert page.headline.title.whole() == "Ready. qwen on den pc will answer"
    assert chat.session.model_of(chat.chat) == "qwen@den pc"
    assert chat.session._load_first(chat.chat) is None  # nothing is loaded here for it
    assert "Guide" not in chat.suggestions.words.text()
    assert not chat.hint.isVisibleTo(chat)
    assert chat._models.names == ["qwen@den pc"]
    chat.close_history()


def test_the_card_lists_what_others_have_loaded_and_opens_a_chat(qtbot: QtBot) -> None:
    card, opened = SharedModelsCard(), list[str]()
    qtbot.addWidget(card)
    card.chat_requested.connect(opened.append)
    card.show_models([])
    assert card.isHidden()
    snapshot = pool_of({"shared": [shared(), shared("big", "attic", ready=False)]}).now
    card.show_models(snapshot.shared)
    assert not card.isHidden()
    buttons = {each.accessibleName(): each for each in card.findChildren(QPushButton)}
    assert list(buttons) == ["Chat with qwen on den pc", "Chat with big on attic"]
    assert not buttons["Chat with big on attic"].isEnabled()  # it is still loading
    buttons["Chat with qwen on den pc"].click()
    assert opened == ["qwen@den pc"]
    card.show_models(snapshot.shared)
    assert card.findChildren(QPushButton)[0] is buttons["Chat with qwen on den pc"]  # keeps its focus


def test_the_guide_of_another_computer_is_not_offered(qtbot: QtBot, away: Desk) -> None:
    away.services.pool.snapshot = household(1, with_model=False) | {"shared": [shared("guide"), shared()]}
    page = ModelsPage(away.services)
    qtbot.addWidget(page)
    page.finish()
    buttons = [each.accessibleName() for each in page.shared.findChildren(QPushButton)]
    assert buttons == ["Chat with qwen on den pc"]
