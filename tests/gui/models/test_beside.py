"""A second model is loaded beside the first in the window, over a real node: both are shown, each goes alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core.chat import MODEL, Chat, ChatId
from app.gui.chat.chat_head import ChatHead
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.message.branch_view import last_message
from app.gui.chat.session import Session
from app.gui.models.details.model_actions import ModelAction
from app.gui.models.models_page import ModelsPage
from testbed import tiny
from tests.gui.chat.talk import history
from tests.gui.desk import Desk
from tests.gui.models.test_models_page import lines, until


@pytest.mark.long
def test_the_guide_is_asked_beside_what_is_loaded(
    qtbot: QtBot, page: ModelsPage, at_lone: Desk, tmp_path: Path
) -> None:
    """Another model is loaded, maybe for hours: a question for the Guide does not end that."""
    pool, services = at_lone.services.pool, at_lone.services
    page.import_files([str(tiny.llama(tmp_path / "large.gguf"))])
    until(qtbot, lambda: page.list.chosen_key == "shelf:large")
    order = {"model": "large", "measure": False}
    services.client.call("POST", "/load", order, lambda _: None)
    until(qtbot, lambda: [model.model for model in pool.now.models] == ["large"], 30_000)
    until(qtbot, lambda: pool.now.models[0].state == "ready", 30_000)
    chats = ChatPage(services)
    qtbot.addWidget(chats)
    chats.open_chat(chats.history.begin().id)
    chats.open("guide")
    chats.suggestions.buttons[0].click()
    until(qtbot, lambda: not chats.session.running, 30_000)
    assert last_message(chats.chat).details[MODEL] == "guide"  # type: ignore[union-attr]
    assert [model.model for model in pool.now.models] == ["large", "guide"]
    chats.close_history()
    services.client.post("/unload", {}, lambda _: None)
    until(qtbot, lambda: not pool.now.models)
    until(qtbot, lambda: ModelAction.REMOVE in page.details.foot.bar.buttons)
    page.details.foot.bar.buttons[ModelAction.REMOVE].click()
    until(qtbot, lambda: page.library.item("shelf:large") is None)


@pytest.mark.long
def test_a_model_comes_beside_another(qtbot: QtBot, page: ModelsPage, at_lone: Desk, tmp_path: Path) -> None:
    pool, bar, services = at_lone.services.pool, page.details.foot.bar, at_lone.services
    bar.buttons[ModelAction.LOAD].click()
    until(qtbot, lambda: ModelAction.CHAT in bar.buttons, 30_000)
    page.import_files([str(tiny.llama(tmp_path / "second.gguf"))])
    until(qtbot, lambda: page.list.chosen_key == "shelf:second")
    until(
        qtbot, lambda: ModelAction.LOAD_ALONGSIDE in bar.buttons and bar.buttons[ModelAction.LOAD_ALONGSIDE].isEnabled()
    )
    assert bar.buttons[ModelAction.LOAD_ALONGSIDE].text() == "Load alongside"
    bar.buttons[ModelAction.LOAD_ALONGSIDE].click()
    until(qtbot, lambda: ModelAction.CHAT in bar.buttons, 30_000)
    assert [model.model for model in pool.now.models] == ["second", "guide"]
    until(qtbot, lambda: sum("Loaded" in line for line in lines(page)) == 2)
    head = ChatHead(services.theme, pool, lambda: None)
    qtbot.addWidget(head)
    kept = history(tmp_path)
    session = Session(kept, pool)
    for name, text in (("guide", "Guide"), ("second", "second"), (None, "second")):
        chat = Chat(ChatId("a"), model=name, context=1)
        head.show_chat(chat)
        assert head.model.whole() == f"{text} on this machine"
        assert session._load_first(chat) is None
    more = Chat(ChatId("a"), model="guide", context=1 << 20)
    assert session._load_first(more) == {"model": "guide", "context": 1 << 20, "beside": True, "first": False}
    kept.close()
    bar.buttons[ModelAction.UNLOAD].click()
    until(qtbot, lambda: [model.model for model in pool.now.models] == ["guide"])
    until(qtbot, lambda: ModelAction.REMOVE in bar.buttons)
    bar.buttons[ModelAction.REMOVE].click()
    until(qtbot, lambda: page.library.item("shelf:second") is None)
