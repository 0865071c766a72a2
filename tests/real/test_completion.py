"""A real base model, Gemma 3 270M, continues a text on the Chat page, split over three nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.models import Models
from app.decoding import convert
from app.gui.chat.chat_page import ChatPage
from scripts.real_models import GEMMA3, SMOLLM2
from tests.gui.desk import desk, follow
from tests.node.pool import TestNode
from tests.real.asking import load

BEGIN = "The capital of France is Paris. The capital of Italy is"
WITHIN_MS = 120_000


@pytest.mark.asyncio
async def test_the_file_says_that_it_is_a_base_model(nodes: list[TestNode]) -> None:
    async with nodes[0].client() as host:
        models = convert(await host.get("/models"), Models).models
    base = {model.name: model.is_base for model in models}
    assert base == {"guide": False, SMOLLM2.file: False, GEMMA3.file: True}
    listed = nodes[0].run("models").stdout
    assert f"{GEMMA3.file} is a base model: it completes text and doesn't chat." in " ".join(listed.split())


@pytest.mark.asyncio
async def test_it_is_loaded_split(nodes: list[TestNode]) -> None:
    async with nodes[0].client() as host:
        loaded = await load(host, GEMMA3.file)
    assert len({stage["id"] for stage in loaded["stages"]}) == 3


def test_the_chat_page_continues_a_text_with_it(qtbot: QtBot, qapp: QApplication, nodes: list[TestNode]) -> None:
    at_host = desk(qapp, nodes[0].root)
    follow(qtbot, at_host.services)
    qtbot.waitUntil(lambda: at_host.services.pool.now.loaded is not None, timeout=WITHIN_MS)
    page = ChatPage(at_host.services)
    qtbot.addWidget(page)
    page.show()
    page.shown()
    qtbot.waitUntil(lambda: page._stack.currentWidget() is page.completion, timeout=WITHIN_MS)
    view = page.completion
    assert GEMMA3.file in view.about.text()
    page._set_up(replace(page.chat, sampling={"max_tokens": 24, "temperature": 0.0}))
    view.field.insertPlainText(BEGIN)
    view.go_on.click()
    qtbot.waitUntil(lambda: not page.session.running and view.text != BEGIN, timeout=WITHIN_MS)
    first = view.text
    print(f"{first!r}, {view.state.whole()}")
    assert first.startswith(f"{BEGIN} Rome")
    view.go_on.click()
    qtbot.waitUntil(lambda: not page.session.running and view.text != first, timeout=WITHIN_MS)
    assert view.text.startswith(first)
    view.undo.click()
    assert view.text == first
    view.undo.click()
    assert view.text == BEGIN
    page.close_history()
    at_host.services.pool.stop()
    at_host.services.lock.close()
