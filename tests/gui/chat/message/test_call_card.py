"""The card of a tool call: nothing that the user allows is hidden, and its words are true."""

from __future__ import annotations

import json

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.tools.chat_calls import CallRecord
from app.gui.chat.message.body import PORTION, MessageServices
from app.gui.chat.message.call_card import CallCard
from app.gui.chat.message.formula_pictures import FormulaPictures
from app.gui.chat.message.highlight import TimeSlicer
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.look.theme import Scheme, Theme


@pytest.fixture
def services(qapp: QApplication) -> MessageServices:
    theme, formulas, pictures = Theme(qapp, Scheme.LIGHT, 1.0), FormulaPictures(qapp), PictureLoader(qapp)
    return MessageServices(theme, TimeSlicer(qapp), lambda _: None, formulas, pictures, lambda _: None)


def card_of(qtbot: QtBot, services: MessageServices, call: CallRecord, *, decides: bool = True) -> CallCard:
    made = CallCard(services, call, lambda _: None)
    qtbot.addWidget(made)
    made.show()
    made.show_call(call, decides=decides)
    return made


def record(**values: object) -> CallRecord:
    return CallRecord(id="1", name="run", arguments=json.dumps(values), server="shell", tool="run")


def test_a_value_behind_many_line_breaks_is_shown(qtbot: QtBot, services: MessageServices) -> None:
    card = card_of(qtbot, services, record(note="\n" * 4000, run="rm -rf ~"))
    assert card._arguments.text.splitlines()[1:] == ["run: rm -rf ~"]
    assert card.once.isEnabled()
    card = card_of(qtbot, services, record(to="mom\nsubject: hi\u202e"))
    assert card._arguments.text == 'to: "mom\\nsubject: hi\\u202e"'


def test_a_long_call_is_allowed_only_once_all_of_it_is_shown(qtbot: QtBot, services: MessageServices) -> None:
    card = card_of(qtbot, services, record(note="x" * 2 * PORTION, run="rm -rf ~"))
    assert (card.once.isEnabled(), card.in_chat.isEnabled(), card.deny.isEnabled()) == (False, False, True)
    assert "Show all" in card._source.text()
    while card._arguments.more.isVisible():
        assert not card.once.isEnabled()
        card._arguments.more.click()
    assert card.once.isEnabled()
    assert card.in_chat.isEnabled()
    assert "Show all" not in card._source.text()


def test_a_tool_name_cannot_hide_what_it_is(qtbot: QtBot, services: MessageServices) -> None:
    call = CallRecord(id="1", name="x", arguments="{}", server="shell", tool="read\n\u202eetirw")
    assert "read\\n\\u202eetirw from shell" in card_of(qtbot, services, call)._title.text()


def test_a_call_in_progress_when_the_window_was_killed_may_have_been_carried_out(
    qtbot: QtBot, services: MessageServices
) -> None:
    call = CallRecord(id="1", name="pay", arguments="{}", server="bank", tool="pay", state="running")
    assert card_of(qtbot, services, call)._state.text() == "Calling…"
    assert "may have done its work anyway" in card_of(qtbot, services, call, decides=False)._state.text()
