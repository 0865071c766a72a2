"""The page that pairs: a code is shown or entered on the page itself, and what was gained is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from app.api.responses import JoinResponse
from app.api.snapshot import MachineRef
from app.core.errors import Refused
from app.gui.app.app_context import AppContext
from app.gui.welcome.together_page import Mode, TogetherPage
from app.gui.welcome.welcome import Welcome
from testbed.snapshots import household
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import node

NEAR: dict[str, Any] = {"a" * 16: {"name": "study", "addresses": ["10.0.0.9"], "pairing_address": "10.0.0.9:4"}}


def page_of(qtbot: QtBot, services: AppContext) -> tuple[Welcome, TogetherPage]:
    window = QMainWindow()
    window.setCentralWidget(QWidget())
    window.resize(1200, 760)
    qtbot.addWidget(window)
    window.show()
    welcome = Welcome(services, window)
    welcome.begin()
    welcome.show_next()
    page = welcome.step
    assert isinstance(page, TogetherPage)
    return welcome, page


@pytest.fixture
def sides(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[tuple[Desk, Desk]]:
    with node(tmp_path / "study", "study"), node(tmp_path / "kitchen", "kitchen"):
        desks = desk(qapp, tmp_path / "study"), desk(qapp, tmp_path / "kitchen")
        for made in desks:
            follow(qtbot, made.services)
        yield desks
        for made in desks:
            made.services.pool.stop()


@pytest.mark.long
def test_two_computers_pair_without_a_dialog_and_say_what_was_gained(qtbot: QtBot, sides: tuple[Desk, Desk]) -> None:
    (first, adding), (second, joining) = (page_of(qtbot, side.services) for side in sides)
    first._main.click()
    qtbot.waitUntil(lambda: len(adding.panel.code) == 6)
    assert (first._main.isVisible(), first._quiet.text()) == (False, "Cancel")
    qtbot.waitUntil(lambda: sides[0].services.pool.snapshot.get("pairing") is not None)
    joining._enter_code()
    joining.form.address.setText(sides[0].services.pool.snapshot["pairing"]["address"])
    joining.form.code.setText(adding.panel.code)
    assert second._main.isEnabled()
    second._main.click()
    qtbot.waitUntil(lambda: adding.mode is joining.mode is Mode.PAIRED)
    qtbot.waitUntil(lambda: adding.good.text().startswith("kitchen joined: +"))
    qtbot.waitUntil(lambda: joining.good.text().startswith("You joined study’s household: +"))
    for page in (adding, joining):
        assert "trust" not in page.about.text(), "the warning came before, where it can still be heeded"
    assert "Together: " in adding.picture.accessibleName()
    for welcome in (first, second):
        assert welcome._main.text() == "Continue"
        assert welcome._main.hasFocus() or not welcome.isActiveWindow()
        welcome.end()


def test_enter_keeps_the_code_that_is_shown(qtbot: QtBot, at_lone: Desk) -> None:
    welcome, page = page_of(qtbot, at_lone.services)
    welcome._main.click()
    QTest.keyClick(welcome, Qt.Key.Key_Return)
    page.press_main()
    qtbot.waitUntil(lambda: len(page.panel.code) == 6)
    code = page.panel.code
    QTest.keyClick(page.panel.role, Qt.Key.Key_Return)
    QTest.keyClick(welcome, Qt.Key.Key_Return)
    page.press_main()
    assert page.panel.code == code
    assert page.panel._waiting is not None
    assert not welcome.notice.sentence
    welcome._quiet.click()
    qtbot.waitUntil(lambda: at_lone.services.pool.snapshot.get("pairing") is None)
    welcome.end()


def shown_near(away: Desk, near: dict[str, Any]) -> None:
    pool = away.services.pool
    pool.snapshot = {"node": {"id": "b" * 64, "name": "kitchen"}, "strangers": near, "discovery": {"on": True}}
    pool.changed.emit()


def mode_of(page: TogetherPage) -> Mode:
    return page.mode


def test_a_code_that_is_shown_nearby_is_asked_for_at_once(qtbot: QtBot, away: Desk) -> None:
    welcome, page = page_of(qtbot, away.services)
    shown_near(away, NEAR)
    assert mode_of(page) is Mode.JOINING
    assert page._who.text() == "study is showing a code. Enter it here."
    assert page.form.code.isVisible()
    assert not page.form.address.isVisible(), "the only one nearby is meant"
    page.form.code.setText("123")
    assert not welcome._main.isEnabled()
    page.form.code.setText("123 456")
    assert (welcome._main.text(), welcome._main.isEnabled()) == ("Join", True)
    welcome._quiet.click()
    assert mode_of(page) is Mode.START
    shown_near(away, NEAR)
    assert mode_of(page) is Mode.START, "who does not want to join is not asked again"
    shown_near(away, {})
    shown_near(away, NEAR)
    assert mode_of(page) is Mode.JOINING, "until a code is shown anew"
    welcome.end()


def test_of_two_nearby_the_right_one_is_chosen(qtbot: QtBot, away: Desk) -> None:
    welcome, page = page_of(qtbot, away.services)
    shown_near(away, NEAR | {"c" * 16: {"name": "attic", "pairing_address": "10.0.0.7:4"}})
    assert page.form.near.isVisible()
    assert page._who.text() == "Enter the code shown on the other computer."
    welcome.end()


def test_where_nobody_is_seen_an_address_can_be_entered(qtbot: QtBot, away: Desk) -> None:
    welcome, page = page_of(qtbot, away.services)
    page._enter_code()
    assert page.form.address.isVisible()
    assert page.form.why.isVisible()
    welcome.end()


def test_a_code_that_expired_leads_to_a_new_one(qtbot: QtBot, away: Desk) -> None:
    welcome, page = page_of(qtbot, away.services)
    page._go(Mode.ADDING)
    page._code_ended(Refused("pairing_expired"))
    assert welcome.notice.sentence
    assert (welcome._main.text(), welcome._main.isVisible()) == ("New code", True)
    welcome._quiet.click()
    assert not welcome.notice.sentence
    welcome.end()


def test_a_taken_name_is_told(qtbot: QtBot, away: Desk) -> None:
    welcome, page = page_of(qtbot, away.services)
    page._joined(JoinResponse(MachineRef("d", "den"), called="DEN 2"))
    assert page.good.text() == "You joined den’s household"
    assert page.about.text().endswith("so this one is now called DEN 2.")
    welcome.end()


def test_who_may_not_change_its_household_is_offered_no_code(qtbot: QtBot, away: Desk) -> None:
    """The first run may come again, when the machine belongs to a household."""
    made = household(2)
    away.services.pool.snapshot = made
    welcome, page = page_of(qtbot, away.services)
    assert mode_of(page) is Mode.PAIRED
    assert page.good.text() == "Paired with attic-pc."
    assert not welcome._quiet.isVisible()
    made["machines"][f"{0:064x}"]["roles"] = ["admin"]
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    assert welcome._quiet.text() == "Add another computer"
    welcome.end()


def test_that_nothing_can_be_pressed_has_its_reason(qtbot: QtBot, away: Desk) -> None:
    welcome, page = page_of(qtbot, away.services)
    assert page.away.isVisible()
    assert not welcome._main.isEnabled()
    welcome.end()
