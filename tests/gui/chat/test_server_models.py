"""The models of other servers in the chat's lists: by their server's name, and for no guest."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId
from app.gui.chat.chat_head import ChatHead
from app.gui.chat.chat_settings import ModelNames, shown_name
from app.gui.chat.sent_pictures import sees
from app.gui.look.theme import Scheme, Theme
from tests.gui.typed_api import pool_of

SERVERS = [{"name": "lab", "models": ["smol", "big"]}]


def test_they_are_listed_with_their_server_and_called_another_server(qapp: QApplication) -> None:
    client: Any = None
    pool = pool_of({"servers": SERVERS})
    names = ModelNames(client, pool, lambda: None)
    assert names.names == ["smol@lab", "big@lab"]
    assert names.shown_name("smol@lab") == "smol on lab, another server"
    assert shown_name(pool.now, "smol@den") == "smol on den"  # a computer of the household
    assert sees(pool.now, "smol@lab") is False  # pictures are never sent there
    assert sees(pool.now, "smol@den") is None
    guest = ModelNames(client, pool_of({"servers": SERVERS, "hosts": ["den"]}), lambda: None)
    assert guest.names == []


def test_the_head_of_a_chat_says_where_it_is_answered(qtbot: QtBot, qapp: QApplication) -> None:
    pool = pool_of({"servers": SERVERS})
    head = ChatHead(Theme(qapp, Scheme.LIGHT, 1.0), pool, lambda: None, lambda _: None)
    qtbot.addWidget(head)
    head.show_chat(Chat(ChatId("1"), model="smol@lab"))
    assert head.model.whole() == "smol on lab, another server"
    assert head.machine_lines == ["lab, another server, runs the model. Your messages leave your household."]
