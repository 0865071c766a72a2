"""Tests of the window's requests to the node."""

from __future__ import annotations

from app.api import requests
from app.core import chat as tree
from app.core.chat import Chat, ChatId, Message, MessageId, Role
from app.gui.chat.answer import question
from app.node.control.answer_conversion import generation_request


def test_a_chat_says_when_it_began_though_its_first_turn_is_left_out() -> None:
    """A template that names the date then begins as before, so the cached prompt is not read again."""
    chat = Chat(ChatId("c"))
    roles = (Role.USER, Role.ASSISTANT, Role.USER)
    for number, role in enumerate(roles):
        made = Message(MessageId(str(number)), chat.leaf, role, "words", 1_000.0 + number)
        chat = tree.add(chat, made)
    body = question(chat, tree.path(chat)[2:], {})
    assert body["begun_at"] == 1_000.0
    request = generation_request(requests.Ask(messages=[requests.Message("user", "words")], begun_at=1_000.0))
    assert request.begun_at is not None
    assert request.begun_at.epoch_seconds == 1_000.0
    assert question(Chat(ChatId("new")), (), {})["begun_at"] is None
