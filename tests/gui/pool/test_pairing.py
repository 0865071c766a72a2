"""Pairing by the dialogs of both sides, over real nodes: every end is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.api.responses import JoinResponse
from app.api.snapshot import MachineRef
from app.core.errors import Refused
from app.gui.api.node_client import Call
from app.gui.diagnostics.doctor_dialog import DoctorDialog
from app.gui.look.theme import Scheme
from app.gui.pool.code_panel import ROLE_ORDER
from app.gui.pool.household_dialogs import AddMachineDialog
from app.gui.pool.join_dialog import JoinHouseholdDialog
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import node


@pytest.fixture
def sides(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[tuple[Desk, Desk]]:
    """The parts of two windows, each over a node of its own."""
    with node(tmp_path / "den", "den"), node(tmp_path / "attic", "attic"):
        desks = desk(qapp, tmp_path / "den"), desk(qapp, tmp_path / "attic")
        for made in desks:
            follow(qtbot, made.services)
        yield desks
        for made in desks:
            made.services.pool.stop()


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def wrong(code: str) -> str:
    return f"{(int(code) + 1) % 1_000_000:06d}"


@pytest.mark.long
def test_a_wrong_code_then_the_right_one(qtbot: QtBot, sides: tuple[Desk, Desk], parent: QWidget) -> None:
    den, attic = (side.services for side in sides)
    adding = AddMachineDialog(den, parent)
    qtbot.waitUntil(lambda: len(adding.code) == 6, timeout=5000)
    qtbot.waitUntil(lambda: den.pool.snapshot.get("pairing") is not None, timeout=5000)
    address = den.pool.snapshot["pairing"]["address"]
    joining = JoinHouseholdDialog(attic, parent, address)
    assert not joining.act.isEnabled()
    joining.code.setText(wrong(adding.code))
    joining.act.click()
    qtbot.waitUntil(lambda: "code is wrong" in joining.notice.sentence, timeout=10_000)
    qtbot.waitUntil(lambda: adding.left.text().endswith(": 2"), timeout=5000)
    assert adding.notice.sentence == "Someone entered a wrong code. Tries left: 2."
    joining.code.setText(f"{adding.code[:3]} {adding.code[3:]}")
    joining.join()
    qtbot.waitUntil(lambda: "den" in joining.heading.text(), timeout=10_000)
    qtbot.waitUntil(lambda: "attic joined: +" in adding.heading.text(), timeout=10_000)
    qtbot.waitUntil(lambda: "household: +" in joining.heading.text(), timeout=10_000)
    gained, before = adding.heading.text(), den.pool.snapshot
    den.pool.snapshot = before | {"machines": {}}
    den.pool.changed.emit()
    den.pool.snapshot = before
    assert adding.heading.text() == gained, "a number that was told holds still"
    for side in (adding, joining):
        assert not side.notice.sentence, "that a code was wrong is over"
        assert side.sentence.isHidden(), "the warning came before, where it can still be heeded"
        done = side.focusWidget()
        assert isinstance(done, QPushButton)
        assert done.text() == "Done"
        side.show()
        QTest.keyClick(done, Qt.Key.Key_Return)
        assert not side.isVisible()
    qtbot.waitUntil(lambda: len(den.pool.now.sorted_machines) == 2, timeout=5000)
    paired = attic.pool.now.node.id
    qtbot.waitUntil(lambda: den.pool.snapshot["paired"] == paired, timeout=5000)
    assert attic.pool.snapshot["paired"] is None, "it let nobody in itself"


@pytest.mark.long
def test_who_sees_nobody_may_ask_why_and_is_helped_to_join(
    qtbot: QtBot, sides: tuple[Desk, Desk], parent: QWidget
) -> None:
    joining = JoinHouseholdDialog(sides[1].services, parent)
    joining.why.click()
    (doctor,) = joining.findChildren(DoctorDialog)
    qtbot.waitUntil(lambda: doctor.cause is not None, timeout=20_000)
    assert doctor.title.text() == "No machine nearby is showing a code right now"
    offered = [button.text() for button in doctor._card.findChildren(QPushButton)]
    assert offered == ["Back to “Join a household”"], "never the help of who adds a machine"
    doctor.reject()
    assert joining.why.isHidden() == joining.none_nearby.isHidden()
    joining.reject()


@pytest.mark.long
def test_three_wrong_codes_close_the_window_and_a_new_code_is_offered(
    qtbot: QtBot, sides: tuple[Desk, Desk], parent: QWidget
) -> None:
    den, attic = (side.services for side in sides)
    adding = AddMachineDialog(den, parent)
    qtbot.waitUntil(lambda: len(adding.code) == 6, timeout=5000)
    qtbot.waitUntil(lambda: den.pool.snapshot.get("pairing") is not None, timeout=5000)
    first = adding.code
    joining = JoinHouseholdDialog(attic, parent, den.pool.snapshot["pairing"]["address"])
    joining.code.setText(wrong(first))
    for _ in range(3):
        joining.notice.clear()
        joining.join()
        qtbot.waitUntil(lambda: bool(joining.notice.sentence), timeout=10_000)
    assert joining.notice.sentence.startswith("Pairing was closed because three wrong or expired codes")
    assert "on the other machine" in joining.notice.sentence
    assert not joining.code.text()
    qtbot.waitUntil(lambda: "three times" in adding.notice.sentence, timeout=10_000)
    qtbot.waitUntil(lambda: den.pool.snapshot["pairing_closed"] == "pairing_tries_used", timeout=5000)
    assert adding.again.isVisibleTo(adding)
    assert adding.code == ""
    adding.again.click()
    qtbot.waitUntil(lambda: len(adding.code) == 6 and adding.code != first, timeout=5000)
    adding.role.setCurrentIndex(1)
    adding.role.activated.emit(1)
    qtbot.waitUntil(lambda: adding.code == "", timeout=1000)
    qtbot.waitUntil(lambda: len(adding.code) == 6, timeout=5000)
    adding.reject()
    qtbot.waitUntil(lambda: den.pool.snapshot.get("pairing") is None, timeout=5000)
    joining.reject()


def test_who_joins_where_its_name_is_taken_reads_its_new_one(at_lone: Desk, parent: QWidget) -> None:
    joining = JoinHouseholdDialog(at_lone.services, parent)
    joining._joined(JoinResponse(MachineRef("d", "den"), called="DEN 2"))
    assert joining.heading.text() == "You joined den’s household"
    assert "so this one is now called DEN 2." in joining.sentence.text()
    again = JoinHouseholdDialog(at_lone.services, parent)
    again._joined(JoinResponse(MachineRef("d", "den")))
    assert "is now called" not in again.sentence.text()


def test_another_role_while_the_first_code_is_awaited(
    qtbot: QtBot, at_lone: Desk, parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code that comes stands for the role that is shown, and is not closed behind its back."""
    client, requests = at_lone.services.client, list[tuple[str, str, Any]]()
    call = client.call

    def noted(method: str, path: str, body: Any, *callbacks: Any, **types: Any) -> Call | None:
        requests.append((method, path, (body or {}).get("role")))
        return call(method, path, body, *callbacks, **types)

    monkeypatch.setattr(client, "call", noted)
    adding = AddMachineDialog(at_lone.services, parent)
    for role in (1, 2):
        adding.role.setCurrentIndex(role)
        adding.role.activated.emit(role)
    assert requests == [("POST", "/pairing", ROLE_ORDER[0])], "what is under way is answered first"
    qtbot.waitUntil(lambda: len(adding.code) == 6, timeout=10_000)
    assert [group for group in requests if group[1] == "/pairing"] == [
        ("POST", "/pairing", ROLE_ORDER[0]),
        ("DELETE", "/pairing", None),
        ("POST", "/pairing", ROLE_ORDER[2]),
    ]
    assert [group for group in requests if group[1] != "/pairing"] == [("GET", "/pairing/wait", None)]
    assert not adding.notice.sentence
    adding.reject()


def test_an_address_where_nobody_is_says_so(qtbot: QtBot, at_lone: Desk, parent: QWidget) -> None:
    joining = JoinHouseholdDialog(at_lone.services, parent, "127.0.0.1:9")
    joining.code.setText("123456")
    joining.act.click()
    qtbot.waitUntil(lambda: bool(joining.notice.sentence), timeout=15_000)
    assert "127.0.0.1:9" in joining.notice.sentence
    assert joining.act.isEnabled()
    joining.reject()


def test_who_may_not_add_machines_reads_who_may(
    qtbot: QtBot, at_lone: Desk, parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    adding = AddMachineDialog(at_lone.services, parent)
    qtbot.waitUntil(lambda: len(adding.code) == 6, timeout=5000)
    desk = {"id": "a" * 16, "name": "desk", "roles": ["admin", "host"]}
    attic = {"id": "b" * 16, "name": "attic", "roles": ["host"]}
    pool = at_lone.services.pool
    pool.snapshot = pool.snapshot | {"machines": {desk["id"]: desk, attic["id"]: attic}}
    adding._ended(Refused("not_admin"))
    assert adding.notice.sentence == "This machine can't change the household. Make the change on desk."
    assert not adding.again.isVisibleTo(adding)
    pool.snapshot = pool.snapshot | {"machines": {attic["id"]: attic}}
    adding._ended(Refused("not_admin"))
    assert adding.notice.sentence.endswith("Make the change on an admin machine.")
    assert adding.again.isVisibleTo(adding)  # somebody may have given it the right meanwhile
    adding.reject()


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_three_households_nearby_are_seen_without_a_bar(
    qtbot: QtBot, away: Desk, parent: QWidget, scale: float
) -> None:
    near = {"name": "kitchen-laptop", "system": "Linux", "device": "AMD Ryzen 7 5800X3D"}
    result = {str(at): near | {"pairing_address": f"192.168.178.{at}:4"} for at in range(10, 13)}
    away.services.pool.snapshot = {"strangers": result}
    away.services.theme.choose(Scheme.LIGHT, scale)
    joining = JoinHouseholdDialog(away.services, parent)
    joining.show()
    qtbot.wait(20)
    bars = joining.near.verticalScrollBar(), joining.near.horizontalScrollBar()
    seen = [bar.isVisible() or bar.maximum() for bar in bars]
    joining.reject()
    away.services.theme.choose(Scheme.LIGHT, 1.0)
    assert not any(seen)


def show_strangers(at_lone: Desk, strangers: dict[str, object]) -> None:
    pool = at_lone.services.pool
    pool.snapshot = pool.snapshot | {"strangers": strangers}
    pool.changed.emit()


def test_households_nearby_can_be_chosen(qtbot: QtBot, at_lone: Desk, parent: QWidget) -> None:
    near = {"name": "<b>hall</b>", "addresses": ["10.0.0.9"], "pairing_address": "10.0.0.9:4"}
    show_strangers(at_lone, {"b" * 16: near})
    joining = JoinHouseholdDialog(at_lone.services, parent)
    assert joining.near.count() == 1
    assert joining.near.item(0).text().startswith("<b>hall</b>")
    assert joining.address.text() == "10.0.0.9:4"
    assert joining.focusWidget() is joining.code, "only the code is left to type"
    nameless = {"pairing_address": "10.0.0.7:4", "system": "Windows"}
    show_strangers(at_lone, {"c" * 16: nameless})
    words = ["Unnamed machine", "10.0.0.7:4", "Windows"]
    assert joining.near.item(0).text().split("    ") == words, "never a part of its id"
    assert joining.address.text() == "10.0.0.7:4", "the other one's code opens nothing any more"
    joining.address.setText("10.0.0.5:4")
    show_strangers(at_lone, {})
    assert joining.address.text() == "10.0.0.5:4", "typed by a person"
    joining.reject()


def test_a_code_that_is_shown_while_one_waits_for_it_is_typed_at_once(
    qtbot: QtBot, at_lone: Desk, parent: QWidget
) -> None:
    near: dict[str, object] = {"b" * 16: {"name": "hall", "pairing_address": "10.0.0.9:4"}}
    show_strangers(at_lone, {})
    joining = JoinHouseholdDialog(at_lone.services, parent)
    joining.open()
    qtbot.waitUntil(joining.address.hasFocus)
    show_strangers(at_lone, near)
    assert joining.focusWidget() is joining.code, "the address is there by now"
    joining.reject()
    show_strangers(at_lone, {})
    typed = JoinHouseholdDialog(at_lone.services, parent)
    typed.open()
    qtbot.waitUntil(typed.address.hasFocus)
    typed.address.setText("10.0.0.5")
    show_strangers(at_lone, near)
    assert typed.focusWidget() is typed.address, "the person is typing it"
    typed.reject()


def test_a_household_that_is_unseen_for_a_moment_stays_chosen(qtbot: QtBot, at_lone: Desk, parent: QWidget) -> None:
    near: dict[str, object] = {"b" * 16: {"name": "hall", "pairing_address": "10.0.0.9:4"}}
    show_strangers(at_lone, near)
    joining = JoinHouseholdDialog(at_lone.services, parent)
    joining.code.setText("123456")
    show_strangers(at_lone, {})
    assert joining.address.text() == "10.0.0.9:4"
    assert joining.act.isEnabled(), "the person is just about to click"
    show_strangers(at_lone, near)
    show_strangers(at_lone, {})
    qtbot.waitUntil(lambda: not joining.address.text())
    assert joining.near.isHidden()
    joining.reject()


def test_a_code_is_digits_and_what_is_missing_is_said(qtbot: QtBot, at_lone: Desk, parent: QWidget) -> None:
    joining = JoinHouseholdDialog(at_lone.services, parent, "127.0.0.1:9")
    joining.show()
    assert "six-digit code" in joining.act.toolTip()
    QTest.keyClicks(joining.code, "12a3-b45 6")
    assert joining.digits == "123456"
    assert (joining.act.isEnabled(), joining.act.toolTip()) == (True, "")
    joining.reject()
