"""A chat after a load that failed, over a real node: nobody answers in the model's place, and the cause is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import MODEL
from app.core.errors import AppError, Reason
from app.gui.app.pool_status import current_status
from app.gui.chat.chat_page import ChatPage
from app.gui.models.models_page import ModelsPage
from tests.families.changed import rewritten
from tests.families.fixtures import families
from tests.gui.chat.test_chat_page import ask, page
from tests.node.pool import TestNode

__all__ = ["page"]  # a fixture


def test_after_a_failed_load_the_guide_does_not_answer_in_its_place(
    qtbot: QtBot, page: ChatPage, lone: TestNode, tmp_path: Path
) -> None:
    odd = rewritten(
        families()["granite"].path, tmp_path / "odd.gguf",
        without=["granite.attention.layer_norm_rms_epsilon"],
    )  # fmt: skip
    lone.work("/models", {"path": str(odd), "name": "odd"})
    try:
        with pytest.raises(AppError):
            lone.work("/load", {"model": "odd", "measure": False})
        pool = page.services.pool
        qtbot.waitUntil(
            lambda: pool.now.load_failed is not None and pool.now.load_failed.model == "odd", timeout=10_000
        )
        messages = (page.chat_head._model_text(page.chat), page.hint.words.text(), page.suggestions.words.text())
        assert not any("Guide answers" in name for name in messages)
        assert messages[0] == "No model is available: odd could not be loaded"
        assert [button.isVisibleTo(page) for button in page.suggestions.buttons] == [False] * 3
        assert [model_button.isVisibleTo(page) for model_button in page.suggestions.model_buttons] == [True] * 2
        assert current_status(pool).sentence == "odd could not be loaded, so no model is available."
        failed = pool.now.load_failed
        assert failed is not None
        why = failed.facts["why"]
        assert isinstance(why, Reason)
        assert why.code == "model_not_loaded"
        models = ModelsPage(page.services)
        qtbot.addWidget(models)
        models.show()
        qtbot.waitUntil(lambda: models.list.select("shelf:odd"), timeout=10_000)
        details = models.details.lost
        qtbot.waitUntil(details.isVisible, timeout=10_000)
        assert details.text().startswith("The last attempt to load this model failed. ")
        models.end()
        ask(qtbot, page, "Hello?")
        assert [message.text for message in tree.path(page.chat)] == ["Hello?"]  # it stays, and waits
        assert page.notice.sentence.startswith("odd could not be loaded")
        assert "key not found in model" in page.notice.sentence
        lone.control("POST", "/unload", {})  # whoever wants the Guide says so
        qtbot.waitUntil(lambda: "Guide answers" in page.hint.words.text(), timeout=10_000)
        assert all(button.isVisibleTo(page.suggestions) for button in page.suggestions.buttons)
        page._retry()
        qtbot.waitUntil(lambda: not page.session.running, timeout=30_000)
        assert tree.path(page.chat)[-1].details[MODEL] == "guide"
    finally:
        lone.control("DELETE", "/models/odd")
