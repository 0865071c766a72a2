"""A chat with a model of another server, here this node's own API: refused, allowed by one click, answered, marked."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.core.chat import Role
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.message.answer_stats import AnswerStats
from app.gui.chat.message.branch_view import last_message
from tests.gateway.conftest import opened
from tests.gui.chat.test_chat_page import ask, page, rested
from tests.node.pool import TestNode

__all__ = ["page"]  # a fixture


def test_one_click_allows_a_server_to_answer_and_the_answer_says_so(
    qtbot: QtBot, page: ChatPage, lone: TestNode
) -> None:
    api = opened(lone)
    order = {"name": "barn", "url": f"{api.base}/v1", "models": {"far": "guide"}, "cap_tokens": 9_000, "key": api.key}
    lone.control("POST", "/api/upstreams", order)
    lone.control("POST", "/api/upstreams/barn", {"on": True})
    try:
        pool = page.services.pool
        qtbot.waitUntil(lambda: [server.name for server in pool.now.servers] == ["barn"], timeout=5000)
        page._choose_model("far@barn")
        ask(qtbot, page, "How do I add a computer?")
        assert page.notice.sentence.startswith("barn, another server, would answer with far")
        QApplication.processEvents()  # the buttons are laid out
        buttons = [button for button in page.notice.findChildren(QPushButton) if not button.isHidden()]
        next(button for button in buttons if button.text() == "Allow barn to answer").click()
        qtbot.waitUntil(lambda: bool(page.session.running), timeout=5000)
        rested(qtbot, page)
        message = last_message(page.chat)
        assert message is not None
        assert message.role is Role.ASSISTANT
        assert message.text
        stats = AnswerStats.stored(message.details)
        assert [note.code for note in stats.notes_facts] == ["answer_by_server"]
        assert stats.tokens
        assert pool.now.servers[0].chats
    finally:
        lone.control("DELETE", "/api/upstreams/barn")
        lone.control("POST", "/api", {"on": False})
