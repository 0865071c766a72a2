"""Dialogs about a machine: none changes what was not chosen, none is higher than its window."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.api.computer import Interface, Settings
from app.core.errors import AppError
from app.gui.api.node_state import Link
from app.gui.look.theme import Scheme
from app.gui.pool.household_dialogs import AddMachineDialog
from app.gui.pool.machine_dialogs import InterfaceDialog, RoleChoice, RolesDialog
from app.gui.pool.machine_facts import MachineFacts, machines_of
from app.gui.settings.upstreams import AddServerDialog
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column
from app.gui.widgets.scroll_area import ScrollArea
from testbed.snapshots import household, snapshot_of
from tests.gui.desk import Desk

Json = dict[str, Any]
HIGH = 760  # of a usual window

ETHERNET = Interface("eth0", "ethernet", ["10.0.0.2"], up=True)


def attic(**other: Any) -> MachineFacts:
    made = household(2)
    made["machines"][f"{1:064x}"] |= other
    return machines_of(snapshot_of(made))[1]


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(1200, HIGH)
    return made


def test_rights_that_no_choice_stands_for_are_not_taken_away_by_looking(away: Desk, window: QWidget) -> None:
    """The command line can give a guest the right to lend."""
    sheet = RolesDialog(away.services, attic(roles=["guest", "lender"]), print, window)
    assert not any(button.isChecked() for button in sheet.choice.buttons)
    assert not sheet.act.isEnabled()
    sheet.choice.choose("lend")
    assert sheet.act.isEnabled()
    sheet.close()
    assert RoleChoice(frozenset({"host", "lender"})).chosen == "use_and_lend"
    assert RoleChoice(frozenset({"admin"})).chosen == "admin"
    assert RoleChoice(frozenset({"host"})).chosen == ""


def test_the_keyboard_begins_at_the_role_it_has(away: Desk, window: QWidget) -> None:
    """The space bar would else choose the first."""
    sheet = RolesDialog(away.services, attic(roles=["host", "lender"]), print, window)
    sheet.open()
    assert sheet.focusWidget() in sheet.choice.buttons
    assert next(button for button in sheet.choice.buttons if button.isChecked()) is sheet.focusWidget()
    sheet.close()


def test_an_interface_that_was_preferred_and_is_gone_stays_chosen(
    away: Desk, window: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = household(2)
    snapshot["links"][f"{1:064x}"]["preferred"] = "usb0"
    sheet = InterfaceDialog(away.services, machines_of(snapshot_of(snapshot))[1], print, window)
    sheet._fill(Settings(interfaces=[ETHERNET]))
    last = sheet.choices[-1]
    assert (last.text(), last.isChecked(), last.isEnabled()) == (
        "usb0, not connected now", True, False,
    )  # fmt: skip
    requests: list[Json] = []
    monkeypatch.setattr(away.services.client, "post", lambda _, body, *__, **___: requests.append(body))
    sheet.save()
    assert requests == [{"interface": "usb0"}]
    sheet.close()


def test_a_dialog_that_found_nothing_does_not_say_that_it_looks(away: Desk, window: QWidget) -> None:
    sheet = InterfaceDialog(away.services, attic(), print, window)
    sheet.show()
    sheet._not_found(AppError("node_away"))
    assert not sheet.waiting.isVisible()
    assert sheet.notice.isVisible()
    sheet.close()


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_dialog_is_no_higher_than_its_window_and_scrolls(
    qtbot: QtBot, away: Desk, window: QWidget, scale: float
) -> None:
    away.services.theme.choose(Scheme.LIGHT, scale)
    heights = []
    for sheet in (AddMachineDialog(away.services, window), AddServerDialog(away.services, (), print, window)):
        sheet.show()
        qtbot.wait(20)
        heights.append(sheet.height())
        view = sheet.findChild(ScrollArea)
        assert view is not None
        assert bool(view.verticalScrollBar().maximum()) is (scale > 1)
        assert sheet.rect().contains(sheet.buttons.geometry())  # in reach without scrolling
        sheet.close()
    away.services.theme.choose(Scheme.LIGHT, 1.0)
    assert max(heights) <= HIGH


def test_a_dialog_grows_with_what_comes_later(qtbot: QtBot, away: Desk, window: QWidget) -> None:
    sheet = InterfaceDialog(away.services, attic(), print, window)
    sheet.show()
    qtbot.wait(20)
    before = sheet.height()
    sheet.add(column(paragraph("A line.\n" * 4)))
    qtbot.waitUntil(lambda: sheet.height() > before, timeout=5000)
    view = sheet.findChild(ScrollArea)
    assert view is not None
    assert not view.verticalScrollBar().maximum()
    sheet.close()


def test_connections_are_asked_for_again_once_a_lost_node_is_back(
    away: Desk, window: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []
    monkeypatch.setattr(away.services.client, "get", lambda path, *_, **__: requests.append(path))
    sheet = InterfaceDialog(away.services, attic(), print, window)
    pool = away.services.pool
    pool._say(Link.STARTING, None)
    pool._say(Link.THERE, None)
    assert requests == ["/settings", "/settings"]
    sheet._fill(Settings(interfaces=[ETHERNET]))
    pool._say(Link.STARTING, None)
    pool._say(Link.THERE, None)
    assert len(requests) == 2
    sheet.close()
