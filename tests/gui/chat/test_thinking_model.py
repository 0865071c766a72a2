"""A model that thinks, in the window over a real node: its thoughts through stop, continue, regenerate and edit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.core.chat import ENDED, THOUGHT, THOUGHT_S
from app.gui.chat.answer import question
from app.gui.chat.chat_page import ChatPage
from testbed import thinker
from tests.gui.chat.test_chat_page import ask, press, rested
from tests.gui.desk import Desk
from tests.node.pool import TestNode

NAME = "thinker"
HMM, YES = "Hmm, so be it.", "Yes, it is."


@pytest.fixture(scope="module")
def thinking(lone: TestNode, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = thinker.thinker(tmp_path_factory.mktemp("thinks") / "thinker.gguf", layers=1)
    done = lone.run("import", str(path), "--name", NAME)
    assert done.returncode == 0, done.stderr
    assert lone.run("load", NAME).returncode == 0
    return path


@pytest.fixture
def page(qtbot: QtBot, thinking: Path, at_lone: Desk) -> Iterator[ChatPage]:
    made = ChatPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.shown()
    made.open_chat(made.history.begin().id)
    limited(made)
    yield made
    made.close_history()


def limited(page: ChatPage, **more: float) -> None:
    page._set_up(replace(page.chat, model=NAME, sampling={"temperature": 0.0, **more}))


def last(page: ChatPage) -> tuple[str, str, str]:
    """Thought, text and end of the last answer."""
    message = tree.path(page.chat)[-1]
    return str(message.details.get(THOUGHT) or ""), message.text, str(message.details.get(ENDED))


@pytest.mark.long
def test_an_answer_that_was_cut_in_its_thought_goes_on_there(qtbot: QtBot, page: ChatPage) -> None:
    limited(page, max_tokens=2)
    ask(qtbot, page, "Is it so?")
    assert last(page) == ("Hmm, so", "", "length")
    cut = tree.path(page.chat)[-1]
    limited(page)
    press(page, 1, "Continue")
    rested(qtbot, page)
    assert last(page) == (HMM, YES, "stop")
    whole = tree.path(page.chat)[-1]
    assert whole.id == cut.id
    assert whole.details[THOUGHT_S] >= cut.details[THOUGHT_S]
    view = page.conversation.view(whole.id)
    assert view is not None
    assert view.thought.fold.text().startswith("Thought for")


def test_an_answer_that_was_cut_behind_its_thought_goes_on_behind_it(qtbot: QtBot, page: ChatPage) -> None:
    limited(page, max_tokens=7)
    ask(qtbot, page, "Is it so?")
    assert last(page) == (HMM, "Yes, it", "length")
    limited(page)
    press(page, 1, "Continue")
    rested(qtbot, page)
    assert last(page) == (HMM, YES, "stop")


def test_regenerate_and_edit_begin_with_a_thought_of_their_own(qtbot: QtBot, page: ChatPage) -> None:
    ask(qtbot, page, "Is it so?")
    first = tree.path(page.chat)[1].id
    press(page, 1, "Regenerate")
    rested(qtbot, page)
    second = tree.path(page.chat)[1].id
    assert second != first
    assert last(page) == (HMM, YES, "stop")
    ask(qtbot, page, "Sure?")
    messages = question(page.chat, tree.path(page.chat)[:3], {})["messages"]
    assert [item.get("thought") for item in messages] == [None, HMM, None]
    assert last(page) == (HMM, YES, "stop")
    page.session.edit(page.chat.id, tree.path(page.chat)[0].id, "Is it really so?")
    rested(qtbot, page)
    assert [message.text for message in tree.path(page.chat)] == ["Is it really so?", YES]
    assert last(page) == (HMM, YES, "stop")
    # one's own version of an answer: nothing was thought before that
    page.session.edit(page.chat.id, tree.path(page.chat)[1].id, "No.")
    assert last(page)[:2] == ("", "No.")
    assert THOUGHT in page.chat.messages[second].details
