"""Tests of the list of machines that process a chat, with the layers and the data of each."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId
from app.gui.api.node_state import Link, NodeState
from app.gui.app import navigation
from app.gui.chat.chat_head import ChatHead, processing_lines
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.message.answer_stats import AnswerStats, machines
from app.gui.chat.model_menu import ModelLine, ModelMenu
from app.gui.look.sentences import model_name
from app.gui.look.theme import Scheme, Theme
from tests.gui.desk import Desk
from tests.gui.typed_api import pool_of

Json = dict[str, Any]
SPLIT = [
    {"machine": "den", "id": "a", "role": "first", "first": 0, "last": 4},
    {"machine": "attic", "id": "b", "role": "middle", "first": 4, "last": 8},
    {"machine": "den", "id": "a", "role": "last", "first": 8, "last": 10},
]
COPIES = [
    {"machine": "den", "id": "a", "role": "whole", "first": 0, "last": 10},
    {"machine": "attic", "id": "b", "role": "whole", "first": 0, "last": 10},
]


def pool_with(loaded: Json | None, hosts: list[str] | None = None) -> NodeState:
    return pool_of({"loaded": loaded, "hosts": hosts, "node": {"id": "a"}})


def model(stages: list[Json], **more: Any) -> Json:
    return {"model": "guide", "state": "ready", "stages": stages, **more}


@pytest.mark.parametrize(
    ("loaded", "hosts", "lines"),
    [
        (
            model(SPLIT), None,
            ["den (this machine): layers 1–4, 9–10", "attic: layers 5–8",
             "Your text stays on this machine. The other machines only process numbers from inside the model."],
        ),
        (
            model(COPIES), None,
            ["den (this machine): whole model", "attic: whole model",
             "Your question is encrypted and sent to a machine that runs the whole model."],
        ),
        (
            model(COPIES, holders=["a"]), None,
            ["den (this machine): whole model", "Nothing in this chat leaves this machine."],
        ),
        (model(SPLIT) | {"state": "loading"}, None, []),
        ({}, None, []),
        ({}, [], []),
        (
            {}, ["den"],
            ["den runs the model. Your messages are encrypted and sent there."],
        ),
    ],
)  # fmt: skip
def test_who_gets_what(loaded: Json, hosts: list[str] | None, lines: list[str]) -> None:
    pool = pool_with(loaded or None, hosts)
    assert processing_lines(pool.now.loaded, pool) == lines


def test_who_made_an_answer_is_told_by_machine() -> None:
    stats = AnswerStats.stored({"figures": {"placement": SPLIT}})
    assert machines(stats) == ["den: layers 1–4, 9–10", "attic: layers 5–8"]


def test_without_a_node_nobody_is_said_to_answer(qtbot: QtBot, away: Desk) -> None:
    page = ChatPage(away.services)
    qtbot.addWidget(page)
    page.open_chat(page.history.begin().id)
    away.services.pool.snapshot = {"loaded": model(SPLIT), "node": {"id": "a"}}
    away.services.pool._say(Link.THERE, None)
    assert page.chat_head.model.whole()
    assert page.chat_head.machine_lines
    away.services.pool._say(Link.AWAY, "It keeps ending.")
    assert page.chat_head.model.whole() == ""
    assert not page.chat_head.machine_lines
    assert not page.hint.words.text()
    page.close_history()


def test_the_head_of_a_chat_shows_them(qtbot: QtBot, qapp: QApplication) -> None:
    went: list[str] = []
    pool = pool_with(model(SPLIT, machines=[{"machine": "den"}, {"machine": "attic"}], context=100))
    head = ChatHead(Theme(qapp, Scheme.LIGHT, 1.0), pool, lambda: None, went.append)
    qtbot.addWidget(head)
    head.show()
    head.show_chat(Chat(ChatId("1"), model="other"))
    assert not head.machines.isVisible()  # of what is not loaded nobody holds anything
    head.show_chat(Chat(ChatId("1")))
    assert head.machines.isVisible()
    menu = head.menu()
    qtbot.addWidget(menu)
    first, second, *_, last = menu.actions()
    assert (first.text(), second.text()) == ("den (this machine): layers 1–4, 9–10", "attic: layers 5–8")
    last.trigger()
    assert went == [navigation.POOL]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down])
def test_a_key_that_opens_the_models_leaves_the_focus_there(qtbot: QtBot, qapp: QApplication, key: Qt.Key) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    line, below = ModelLine(Theme(qapp, Scheme.LIGHT, 1.0)), QPushButton("Below")
    column = QVBoxLayout(page)
    column.addWidget(line)
    column.addWidget(below)
    line.say("small on this machine")
    page.show()
    qtbot.waitExposed(page)
    page.activateWindow()
    line.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(line.hasFocus)
    clicks = list[object]()
    line.clicked.connect(lambda: clicks.append(key))
    QTest.keyClick(line, key)
    assert len(clicks) == 1
    assert line.hasFocus()


def test_a_click_or_a_key_on_the_model_lists_those_that_could_answer(qtbot: QtBot, qapp: QApplication) -> None:
    line, chosen, went = ModelLine(Theme(qapp, Scheme.LIGHT, 1.0)), list[str](), list[None]()
    qtbot.addWidget(line)
    line.say("small on this machine")
    line.resize(400, 20)
    line.show()
    names = ["small", "guide", "qwen@den pc"]
    menu_of = ModelMenu(line, lambda: names, model_name, lambda: "small", chosen.append, lambda: went.append(None))
    with qtbot.waitSignal(line.clicked):
        QTest.mouseClick(line, Qt.MouseButton.LeftButton)
    for key in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Down):
        close_menus(qapp)
        line.setFocus(Qt.FocusReason.TabFocusReason)
        with qtbot.waitSignal(line.clicked):
            QTest.keyClick(line, key)
        assert any(isinstance(popup, QMenu) and popup.isVisible() for popup in qapp.topLevelWidgets())
    assert line.focusPolicy() & Qt.FocusPolicy.TabFocus
    described = QAccessible.queryAccessibleInterface(line)
    assert described.role() == QAccessible.Role.Button
    assert described.text(QAccessible.Text.Name) == "small on this machine"
    menu = menu_of.menu()
    qtbot.addWidget(menu)
    entries = [action for action in menu.actions() if action.text()]
    assert [action.text() for action in entries] == ["small", "Guide", "qwen on den pc", "More models…"]
    assert [action.isChecked() for action in entries] == [True, False, False, False]
    entries[2].trigger()
    entries[3].trigger()
    assert (chosen, went) == (["qwen@den pc"], [None])
    close_menus(qapp)


def close_menus(qapp: QApplication) -> None:
    for popup in qapp.topLevelWidgets():
        if isinstance(popup, QMenu):
            popup.close()
