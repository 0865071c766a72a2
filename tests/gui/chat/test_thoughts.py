"""Tests of a model's thoughts: folded, opened by mouse and keyboard, saved, sent back, exported by choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import ENDED, THOUGHT, THOUGHT_S, Chat, ChatId, Message, MessageId, Role, add
from app.gui.chat.answer import THINK, THINK_TOKENS, Answer, question
from app.gui.chat.export.chat_json import parse_chats
from app.gui.chat.export.documents import PdfBook, without_thoughts
from app.gui.chat.export.import_export import FORMATS, JSON, PDF, export, read_chats
from app.gui.chat.history.history import History
from app.gui.chat.message.body import Body, MessageServices
from app.gui.chat.message.formula_pictures import FormulaPictures
from app.gui.chat.message.highlight import TimeSlicer
from app.gui.chat.message.message_view import MessageView, ShownMessage
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.look.theme import Scheme, Theme
from tests.gui.chat.talk import history, talked
from tests.gui.typed_api import answer_line

HMM = "Hmm, let me see. **Two** and two."


@pytest.fixture
def services(qapp: QApplication) -> MessageServices:
    return MessageServices(
        Theme(qapp, Scheme.LIGHT, 1.0),
        TimeSlicer(qapp),
        lambda _: None,
        FormulaPictures(qapp),
        PictureLoader(qapp),
        lambda _: None,
    )


def answered(text: str, thought: str, seconds: float = 12.4) -> Message:
    details = {THOUGHT: thought, THOUGHT_S: seconds, ENDED: "stop"} if thought else {}
    return Message(MessageId("a"), None, Role.ASSISTANT, text, 1.0, details)


def shown(message: Message, **more: object) -> ShownMessage:
    return ShownMessage(message, (message.id,), is_last=True, **more)  # type: ignore[arg-type]


def view(qtbot: QtBot, services: MessageServices, item: ShownMessage) -> MessageView:
    made = MessageView(services, item)
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    return made


def is_open(made: MessageView) -> bool:
    return made.thought.is_open


def test_a_thought_is_folded_and_opened_by_mouse_and_keyboard(qtbot: QtBot, services: MessageServices) -> None:
    made = view(qtbot, services, shown(answered("Four.", HMM)))
    fold = made.thought.fold
    assert fold.text() == "Thought for 12 s"
    assert fold.accessibleName() == "Thought for 12 s, folded"
    assert fold.isVisible()
    assert not made.thought.findChildren(Body)  # nothing of it is laid out
    QTest.mouseClick(fold, Qt.MouseButton.LeftButton)
    assert is_open(made)
    assert made.thought.body is not None
    assert made.thought.body.text == HMM
    assert fold.accessibleName() == "Thought for 12 s, opened"
    fold.setFocus()
    QTest.keyClick(fold, Qt.Key.Key_Space)
    assert not is_open(made)
    assert made.body.text == "Four."
    made.restyle()


def test_nothing_thought_is_nothing_shown(qtbot: QtBot, services: MessageServices) -> None:
    made = view(qtbot, services, shown(answered("Four.", "")))
    assert made.thought.isHidden()


def test_while_it_thinks_the_count_is_told(qtbot: QtBot, services: MessageServices) -> None:
    thinks = shown(answered("", HMM, 0.0), state="", is_thinking=True, thought_tokens=132)
    made = view(qtbot, services, thinks)
    assert made.thought.fold.text().startswith("Thinking… 132 token")
    made.thought.toggle()
    made.show_message(shown(answered("Four.", HMM + " Four.", 3.0)))
    assert made.thought.fold.text() == "Thought for 3 s"
    assert made.thought.is_open  # who reads it goes on reading
    assert made.thought.body is not None
    assert made.thought.body.text == HMM + " Four."


def test_an_open_thought_is_dimmed_while_it_comes_and_after(qtbot: QtBot, services: MessageServices) -> None:
    made = view(qtbot, services, shown(answered("", HMM, 0.0), state="", is_thinking=True))
    made.thought.toggle()
    made.grow_thought(HMM + " And four.", 2.0, 9, growing=True)
    body = made.thought.body
    assert body is not None
    muted, text = services.theme.colors.muted, services.theme.colors.text
    assert {ink(block) for block in body.blocks} == {QColor(muted).name()}
    made.show_message(shown(answered("Four.", HMM + " And four.", 3.0)))
    assert {ink(block) for block in body.blocks} == {QColor(muted).name()}
    assert {ink(block) for block in made.body.blocks} == {QColor(text).name()}


def ink(block: QWidget) -> str:
    """The color that its text is painted in."""
    block.ensurePolished()
    return block.palette().color(QPalette.ColorRole.Text).name()


def test_an_answer_gathers_its_thought(qtbot: QtBot) -> None:
    answer = Answer(None, "c.m", {})  # type: ignore[arg-type]
    answer._receive(answer_line({"delta": {"text": "", "thought": "Hmm, ", "token_ids": [1, 2]}}))
    answer._receive(answer_line({"delta": {"text": "", "thought": "so.", "token_ids": [3]}}))
    assert (answer.thought, answer.text, answer.thought_tokens) == ("Hmm, so.", "", 3)
    answer._receive(answer_line({"delta": {"text": "Four.", "token_ids": [4]}}))
    assert (answer.thought, answer.text, answer.thought_tokens) == ("Hmm, so.", "Four.", 3)
    turned = Answer(None, "c.m", {})  # type: ignore[arg-type]
    turned._receive(answer_line({"delta": {"text": "Hmm.", "token_ids": [1]}}))
    turned._receive(answer_line({"delta": {"text": "", "was_thought": True, "token_ids": [2]}}))
    turned._receive(answer_line({"delta": {"text": "Four.", "token_ids": [3]}}))
    assert (turned.thought, turned.text) == ("Hmm.", "Four.")


def test_thoughts_and_what_is_asked_of_thinking_go_to_the_node() -> None:
    message = Message(MessageId("q"), None, Role.USER, "2 + 2?", 1.0)
    chat = add(Chat(ChatId("c")), message)
    chat = add(chat, replace(answered("Four.", HMM), parent=message.id))
    chat = replace(chat, sampling={THINK: 0, THINK_TOKENS: 500, "top_k": 3})
    body = question(chat, tuple(chat.messages.values()), {})
    assert body["messages"][1] == {"role": "assistant", "content": "Four.", "thought": HMM}
    assert (body["think"], body["think_tokens"]) == (False, 500)
    assert body["sampling"] == {"top_k": 3}
    plain = question(Chat(ChatId("n")), (), {})
    assert "think" not in plain
    assert "think_tokens" not in plain


@pytest.fixture
def kept(qtbot: QtBot, tmp_path: Path) -> Iterator[History]:
    made = history(tmp_path)
    chat = talked(made, "2 + 2?")
    made.save(add(chat, replace(answered("Four.", HMM), parent=chat.leaf)))
    yield made
    made.close()


@pytest.mark.parametrize("form", [item for item in FORMATS if item != PDF], ids=lambda item: item.name)
def test_thoughts_are_exported_by_choice(qtbot: QtBot, kept: History, tmp_path: Path, form: object) -> None:
    assert kept.file is not None
    for thoughts in (True, False):
        target = tmp_path / f"out{thoughts}"
        source = read_chats(kept.file, None, kept.codec)
        export(source, form, target, "Chats", lambda _: None, thoughts=thoughts)  # type: ignore[arg-type]
        text = target.read_text("utf-8")
        assert "Four." in text
        assert ("let me see" in text) is (thoughts or form == JSON)  # that can be imported again
    if form == JSON:
        (chat,) = parse_chats(target.read_bytes(), str(target))
        answer = next(message for message in chat.messages.values() if message.role is Role.ASSISTANT)
        assert answer.details[THOUGHT] == HMM
        assert answer.details[THOUGHT_S] == 12.4


def test_thoughts_are_printed_by_choice(qtbot: QtBot, kept: History, tmp_path: Path) -> None:
    assert kept.file is not None
    sizes = {}
    for thoughts in (True, False):
        target = tmp_path / f"{thoughts}.pdf"
        source = read_chats(kept.file, None, kept.codec)
        assert export(source, PDF, target, "Chats", lambda _: None, thoughts=thoughts) == 1
        sizes[thoughts] = len(target.read_bytes())
    assert sizes[True] > sizes[False]
    (chat,) = read_chats(kept.file, None, kept.codec)
    book = PdfBook(tmp_path / "out.pdf", "Chats")
    printed = book._laid_out(chat).toPlainText()
    assert "Thinking before the answer" in printed
    assert "let me see. Two and two." in printed
    bare = book._laid_out(without_thoughts(chat)).toPlainText()
    assert "let me see" not in bare
    assert "Thinking before" not in bare
    assert "Four." in bare
    assert book.close()
