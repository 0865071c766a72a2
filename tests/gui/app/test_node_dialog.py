"""A dialog that stays open while the node is lost says so, and goes on once it is back."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.core.errors import Refused
from app.gui.api.node_state import Link
from app.gui.app.node_dialog import Sheet
from app.gui.models.folder_dialog import FolderSheet
from app.gui.pool.household_dialogs import AddMachineDialog, LeaveHouseholdDialog
from app.gui.pool.join_dialog import JoinHouseholdDialog
from app.gui.settings.privacy import EraseDialog
from tests.gui.desk import Desk


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def test_a_lost_node_is_said_with_what_to_press(away: Desk, parent: QWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, tried = away.services.pool, list[bool]()
    monkeypatch.setattr(pool, "try_again", lambda: tried.append(True))
    sheet = Sheet(away.services, "Rename", "", parent)
    sheet.show()
    pool._say(Link.STARTING, None)
    assert sheet.notice.sentence.startswith("The background service isn't running right now.")
    assert not sheet.notice.findChildren(QPushButton)
    pool._say(Link.AWAY, "It keeps ending.")
    assert sheet.notice.sentence == "It keeps ending."
    sheet.notice.findChildren(QPushButton)[0].click()
    assert tried == [True]
    pool._say(Link.LOOKING, None)
    assert sheet.notice.sentence
    pool._say(Link.THERE, None)
    assert not sheet.notice.sentence
    sheet.reject()


def test_a_refusal_stays_when_only_the_line_broke(away: Desk, parent: QWidget) -> None:
    sheet = JoinHouseholdDialog(away.services, parent)
    sheet.notice.say("That code does not match.", "error")
    away.services.pool._say(Link.THERE, None)
    assert sheet.notice.sentence == "That code does not match."
    sheet.reject()


def test_versions_that_differ_lead_to_how_they_are_updated(away: Desk, parent: QWidget) -> None:
    sheet = JoinHouseholdDialog(away.services, parent)
    sheet.show()
    facts = {"older": "den", "older_build": "0.4", "newer": "attic", "newer_build": "0.6"}
    sheet._failed(Refused("version_differs", **facts))
    assert "so they cannot share a model. Update den." in sheet.notice.sentence
    (how,) = sheet.notice.findChildren(QPushButton)
    assert how.text() == "How to update"
    how.click()
    assert not sheet.isVisible()
    assert away.went == ["settings/Updates"]


@pytest.mark.parametrize("kind", [LeaveHouseholdDialog, EraseDialog])
def test_what_works_without_a_node_says_nothing_of_it(away: Desk, parent: QWidget, kind: type[Sheet]) -> None:
    sheet = kind(away.services, parent)  # type: ignore[arg-type, call-arg]
    away.services.pool._say(Link.AWAY, "It keeps ending.")
    assert not sheet.notice.sentence
    sheet.reject()


def test_a_node_that_is_back_opens_no_household_until_somebody_asks_for_a_code(
    qtbot: QtBot, at_lone: Desk, parent: QWidget
) -> None:
    pool = at_lone.services.pool
    adding = AddMachineDialog(at_lone.services, parent)
    qtbot.waitUntil(lambda: bool(adding.code), timeout=5000)
    at_lone.services.client.delete("/pairing", lambda _: None)  # as a node that ended leaves it
    qtbot.waitUntil(lambda: not adding.code, timeout=5000)
    requests: list[str] = []
    adding.open_window = lambda: requests.append("by itself")  # type: ignore[method-assign]
    pool._say(Link.STARTING, None)
    pool._say(Link.THERE, None)
    adding.role.activated.emit(1)  # nor does another role, while there is no code
    qtbot.wait(300)  # longer than a window takes to open
    assert (requests, adding.code) == ([], "")
    assert "no longer works" in adding.notice.sentence
    del adding.open_window
    adding.again.click()
    qtbot.waitUntil(lambda: bool(adding.code), timeout=5000)
    assert not adding.notice.sentence
    adding.reject()


def test_a_new_look_once_the_node_is_back(qtbot: QtBot, at_lone: Desk, parent: QWidget, tmp_path: Path) -> None:
    pool = at_lone.services.pool
    looking = FolderSheet(at_lone.services, str(tmp_path), parent)
    looking._end()  # the node was lost before it answered
    assert not looking.act.isEnabled()
    pool._say(Link.STARTING, None)
    pool._say(Link.THERE, None)
    qtbot.waitUntil(looking.act.isEnabled, timeout=5000)
    looking.reject()
