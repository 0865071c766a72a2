"""A long chat: its end first, earlier messages when one scrolls up, its end followed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QPushButton, QTextEdit, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import ENDED, Message, MessageId, Role
from app.gui.chat.message.body import Block, CodeBlock, MessageServices
from app.gui.chat.message.conversation import PAGE, Conversation
from app.gui.chat.message.formula_pictures import FormulaPictures
from app.gui.chat.message.highlight import TimeSlicer
from app.gui.chat.message.message_view import MessageAction, MessageView, ShownMessage
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.look.theme import Scheme, Theme
from tests.gui import walk

MANY = 120


@pytest.fixture
def conversation(qtbot: QtBot, qapp: QApplication) -> Conversation:
    services = MessageServices(
        Theme(qapp, Scheme.LIGHT, 1.0),
        TimeSlicer(qapp),
        lambda _: None,
        FormulaPictures(qapp),
        PictureLoader(qapp),
        lambda _: None,
    )
    made = Conversation(services)
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    return made


def shown(count: int, last: str = "") -> list[ShownMessage]:
    result = []
    for n in range(count):
        role = Role.ASSISTANT if n % 2 else Role.USER
        text = last if last and n == count - 1 else f"Message {n}.\n\nWith a second paragraph."
        ident = MessageId(str(n))
        message = Message(ident, MessageId(str(n - 1)) if n else None, role, text, float(n))
        is_last = n == count - 1
        result.append(ShownMessage(message, (ident,), is_last, state="" if is_last and last else None))
    return result


def at_end(conversation: Conversation) -> bool:
    bar = conversation.verticalScrollBar()
    return bar.maximum() > 0 and bar.value() == bar.maximum()


def settled(qtbot: QtBot, conversation: Conversation) -> None:
    """Wait until the layout is what it will be."""
    heights: list[int] = []

    def is_still() -> bool:
        heights.append(conversation.verticalScrollBar().maximum())
        return len(heights) > 3 and len(set(heights[-3:])) == 1

    qtbot.waitUntil(is_still)


def test_the_last_ones_first_then_upward(qtbot: QtBot, conversation: Conversation) -> None:
    conversation.open(shown(MANY))
    qtbot.waitUntil(lambda: len(conversation.views) == PAGE and at_end(conversation))
    assert conversation.views[-1].message.id == str(MANY - 1)
    settled(qtbot, conversation)
    conversation.verticalScrollBar().setValue(0)
    seen = conversation.views[0]
    qtbot.waitUntil(lambda: len(conversation.views) == 2 * PAGE)
    settled(qtbot, conversation)
    assert conversation.views[0].message.id == str(MANY - 2 * PAGE)
    top = seen.mapTo(conversation.viewport(), seen.rect().topLeft()).y()
    assert 0 <= top < 40  # what was seen did not move
    conversation.show_message(MessageId("3"))
    assert conversation.views[0].message.id == "3"


@pytest.mark.parametrize("place", [3, 60])
def test_what_a_search_found_is_seen_and_marked(qtbot: QtBot, conversation: Conversation, place: int) -> None:
    """This holds in the middle of a long message too, in a chat just opened, while its layout still changes."""
    showns = shown(MANY if place > PAGE else 12)
    words = "Something to read. " * 200
    for n, item in enumerate(showns):
        text = f"{words} An Albatross, *albatross*!\n\n{words}" if n == place else words
        showns[n] = replace(item, message=replace(item.message, text=text))
    conversation.open(showns)
    conversation.show_message(MessageId(str(place)), "albatross")
    settled(qtbot, conversation)
    view = conversation.view(str(place))
    assert view is not None
    marked = [mark.cursor.selectedText() for block in view.body.blocks for mark in marks_of(block)]
    assert marked == ["Albatross", "albatross"]
    at = view.body.match_position
    assert at is not None
    place_of = view.body.mapTo(conversation.viewport(), at).y()
    assert 0 < place_of < conversation.viewport().height()
    assert view.hasFocus()
    conversation.mark("")
    assert not [mark for block in view.body.blocks for mark in marks_of(block)]


def marks_of(block: Block) -> list[QTextEdit.ExtraSelection]:
    return (block.listing if isinstance(block, CodeBlock) else block).extraSelections()


def test_it_follows_its_end_only_from_there(qtbot: QtBot, conversation: Conversation) -> None:
    conversation.open(shown(30, "It begins."))
    qtbot.waitUntil(lambda: len(conversation.views) == 30 and at_end(conversation))
    last = conversation.views[-1]
    text = "It begins."
    for n in range(60):
        text += f"\n\nParagraph {n} of a long answer."
        last.grow(text)
    settled(qtbot, conversation)
    assert at_end(conversation)
    bar = conversation.verticalScrollBar()
    bar.setValue(bar.maximum() - 400)
    where = bar.value()
    last.grow(text + "\n\nMore." * 20)
    settled(qtbot, conversation)
    assert bar.maximum() > where + 500
    assert bar.value() == where
    conversation.to_end()
    assert at_end(conversation)


def test_what_is_equal_stays_as_it_is(qtbot: QtBot, conversation: Conversation) -> None:
    conversation.open(shown(6))
    before = conversation.views
    conversation.update_to(shown(8))
    assert conversation.views[:6] == before
    assert len(conversation.views) == 8
    conversation.update_to(shown(4))
    assert conversation.views == before[:4]
    conversation.update_to([])
    qtbot.waitUntil(lambda: not conversation.views)


def test_tools_come_with_the_keyboard(qtbot: QtBot, conversation: Conversation) -> None:
    conversation.open(shown(3))
    first, second, last = conversation.views
    assert last._tools_row is not None
    assert first._tools_row is None
    conversation.activateWindow()
    first.setFocus()
    qtbot.waitUntil(lambda: first._tools_row is not None)
    assert first._tools.isVisible()
    second.setFocus()
    qtbot.waitUntil(lambda: not first._tools.isVisible())
    assert first.accessibleName().startswith("You: Message 0.")


def test_it_is_painted_also_after_a_message_that_cannot_be_shown(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_add_before", {}.__getitem__)
    with pytest.raises((KeyError, TypeError)):
        conversation.open(shown(2))
    assert conversation.updatesEnabled()


def test_an_edit_waits_for_the_answer_under_way(conversation: Conversation) -> None:
    free = shown(1)
    conversation.open(free)
    view, requests = conversation.views[0], list[str]()
    conversation.action_requested.connect(lambda action, message, text: requests.append(text))
    view.edit()
    assert view._editor is not None
    view._editor.field.setPlainText("Another")
    view.show_message(replace(free[0], is_busy=True))
    assert not view._editor.accept.isEnabled()
    view._editor._accept()  # Ctrl+Enter
    assert view._editor is not None
    assert requests == []
    view.show_message(free[0])
    view._editor.accept.click()
    assert requests == ["Another"]


@pytest.mark.parametrize("n_messages", [1, 2])
def test_a_question_without_an_answer_can_be_sent_again_as_it_is(conversation: Conversation, n_messages: int) -> None:
    conversation.open(shown(n_messages))
    view, requests = conversation.views[0], list[str]()
    conversation.action_requested.connect(lambda action, message, text: requests.append(text))
    view.edit()
    assert view._editor is not None
    view._editor.accept.click()
    assert requests == ([view.message.text] if n_messages == 1 else [])
    assert view._editor is None


def test_who_edits_is_told_the_keys(qtbot: QtBot, conversation: Conversation) -> None:
    """Enter begins a new line there."""
    conversation.open(shown(1))
    view = conversation.views[0]
    view.edit()
    assert view._editor is not None
    assert view._editor.keys.text() == "Ctrl+Enter: Resend. Esc: Cancel."
    qtbot.waitUntil(view._editor.keys.isVisible)


def test_an_answer_that_was_cut_goes_on_by_a_button_with_words(conversation: Conversation) -> None:
    showns = shown(2)
    details = {ENDED: "length"}
    showns[1] = replace(showns[1], message=replace(showns[1].message, details=details))
    conversation.open(showns)
    view, actions = conversation.views[1], list[MessageAction]()
    conversation.action_requested.connect(lambda action, message, text: actions.append(action))
    buttons = [button for button in view.findChildren(QPushButton) if button.text() == "Continue"]
    assert [button.isHidden() for button in buttons] == [False]
    view.show_message(replace(showns[1], is_busy=True))
    buttons[0].click()
    view.show_message(showns[1])
    buttons[0].click()
    assert actions == [MessageAction.CONTINUE]


def test_the_field_of_an_edit_grows_with_its_text(qtbot: QtBot, conversation: Conversation) -> None:
    conversation.open(shown(1))
    view = conversation.views[0]
    view.edit()
    assert view._editor is not None
    settled(qtbot, conversation)
    view._editor.field.setPlainText("A line.")
    before = view._editor.field.height()
    view._editor.field.setPlainText("A line.\n" * 6)
    assert view._editor.field.height() > before
    view._editor.field.setPlainText("A line.")
    assert view._editor.field.height() == before


def test_keyboard_and_screen_reader_go_through_it_in_reading_order(qtbot: QtBot, conversation: Conversation) -> None:
    conversation.open(shown(4))
    conversation.update_to(shown(6))
    qtbot.waitUntil(lambda: len(conversation.views) == 6)
    settled(qtbot, conversation)
    middle = conversation.views[0].parentWidget()
    assert middle is not None
    children = QAccessible.queryAccessibleInterface(middle)
    named = [children.child(n).text(QAccessible.Text.Name) for n in range(children.childCount())]
    assert [words.split()[2] for words in named] == ["0.", "1.", "2.", "3.", "4.", "5."]

    def reached() -> list[QWidget]:
        return [widget for widget in walk.tab_chain(conversation, conversation) if isinstance(widget, MessageView)]

    qtbot.waitUntil(lambda: reached() == conversation.views)
    assert not walk.out_of_order(conversation, conversation)
