"""Why can't it find my other computer? One cause, one button, and the rest below it."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.core.diagnostics import LIKELIEST
from app.gui.diagnostics.address_form import AddressForm
from app.gui.diagnostics.doctor_dialog import CommandButton, DoctorDialog, port_of
from app.gui.diagnostics.finding_words import Fix, advice, fix_of, headline, result_of
from app.gui.look.theme import Scheme
from tests.findings import finding
from tests.gui.desk import Desk

SILENT = finding(
    "attic-pc", False, "It can be found but does not answer.", "", "peer_silent",
    "attic-pc", "10.0.0.9:4242",
)  # fmt: skip


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def buttons(widget: QWidget) -> list[str]:
    return [button.text() for button in widget.findChildren(QPushButton) if not button.isHidden()]


def test_it_tests_at_once_and_names_what_is_missing(qtbot: QtBot, at_lone: Desk, parent: QWidget) -> None:
    dialog = DoctorDialog(at_lone.services, parent)
    qtbot.waitUntil(lambda: bool(dialog.checks), timeout=20_000)
    assert dialog.cause is not None
    assert dialog.cause.code == "only_this_machine"
    assert dialog.title.text() == "No other computer is paired yet"
    assert "Add a machine…" in buttons(dialog)
    names = [check.name for check in dialog.checks]
    assert {"Listening", "Engine", "Disk", "Key", "VPN"} <= set(names)
    assert not dialog.list.isVisibleTo(dialog)  # folded
    dialog.fold.open()
    assert dialog.list.isVisibleTo(dialog)
    dialog.close()


def test_a_node_that_is_away_is_the_cause(qtbot: QtBot, away: Desk, parent: QWidget) -> None:
    dialog = DoctorDialog(away.services, parent)
    qtbot.waitUntil(lambda: bool(dialog.checks), timeout=5000)
    assert dialog.cause is not None
    assert dialog.cause.code == "node_away"
    assert "Start" in buttons(dialog)
    assert result_of(dialog.checks[-1])[2] == "The test failed"
    dialog.close()


def test_the_command_for_a_firewall_is_copied_and_nothing_else_happens(qtbot: QtBot) -> None:
    copied: list[str] = []
    made = CommandButton(SILENT, 1, copied.append)
    qtbot.addWidget(made)
    assert made.text() == "Copy command for attic-pc"
    menu = made.menu()
    assert menu is not None
    ufw = next(action for action in menu.actions() if "ufw" in action.text())
    ufw.trigger()
    assert copied == ["sudo ufw allow 4242/tcp && sudo ufw allow 5353/udp"]
    assert QGuiApplication.clipboard().text() == copied[0]


@pytest.mark.parametrize(
    ("address", "port"), [("10.0.0.2:4242", 4242), ("[fe80::1]:4242", 4242), ("10.0.0.2", None), ("", None)]
)
def test_ports_of_addresses(address: str, port: int | None) -> None:
    assert port_of(address) == port


@pytest.mark.parametrize("code", LIKELIEST)
def test_every_cause_has_words_and_a_button(code: str) -> None:
    check = finding("Some check", False, "Why.", "What to do.", code, "attic-pc")
    assert headline(check)
    assert "{" not in headline(check) + advice(check)
    assert fix_of(check) in set(Fix)


def test_testing_again_is_offered_once(qtbot: QtBot, at_lone: Desk) -> None:
    dialog = DoctorDialog(at_lone.services)
    qtbot.addWidget(dialog)
    dialog.show()

    dialog._show([finding("Engine", False, "It is away.", "", "engine_missing")])
    offered = [button for button in dialog.findChildren(QPushButton) if button.text() == "Test again"]
    assert [button for button in offered if not button.isHidden()] != [dialog._again]
    assert dialog._again.isHidden()
    dialog._show([finding("Listening", True)])
    assert dialog._again.isVisible()


def test_its_pictures_follow_another_palette(qtbot: QtBot, away: Desk) -> None:
    dialog, theme = DoctorDialog(away.services), away.services.theme
    qtbot.addWidget(dialog)
    dialog._show([finding("Listening", True)])
    mark, check = pictures(dialog)
    theme.choose(Scheme.DARK, 1.0)
    dark_mark, dark_check = pictures(dialog)
    theme.choose(Scheme.LIGHT, 1.0)
    assert mark != dark_mark
    assert check != dark_check


def pictures(dialog: DoctorDialog) -> tuple[QImage, QImage]:
    """Its mark, and that of the first check."""
    item = dialog.list._grid.itemAtPosition(0, 0)
    first = item.widget() if item else None
    assert isinstance(first, QLabel)
    return dialog._mark.pixmap().toImage(), first.pixmap().toImage()


def test_a_slow_link_is_shown_on_the_page_pool(qtbot: QtBot, at_lone: Desk) -> None:
    dialog = DoctorDialog(at_lone.services)
    qtbot.addWidget(dialog)
    dialog.show()
    slow = finding("Link", None, "It carries 20 Mbit/s.", "Use a cable.", "link_slow", "attic-pc")
    dialog._show([finding("Listening", True), slow])
    assert dialog.title.text() == "The link to attic-pc is slow"
    show = next(button for button in dialog.findChildren(QPushButton) if button.text() == "Show the link")
    show.click()
    assert at_lone.went == ["pool"]
    assert not dialog.isVisible()


@pytest.mark.parametrize(
    ("code", "words", "page"),
    [
        ("version_differs", "How to update", "settings/Updates"),
        ("discovery_off", "Open Settings > Network", "settings/Network"),
        ("virtual_chosen", "Open Settings > Network", "settings/Network"),
        ("models_folder_away", "Open Settings > Models", "settings/Models"),
        ("lends_nothing", "Open This computer", "computer"),
    ],
)
def test_what_a_page_mends_leads_there(qtbot: QtBot, at_lone: Desk, code: str, words: str, page: str) -> None:
    dialog = DoctorDialog(at_lone.services)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog._show([finding("Listening", True), finding("Some check", False, "Why.", "", code)])
    there = next(button for button in dialog.findChildren(QPushButton) if button.text() == words)
    there.click()
    assert at_lone.went == [page]
    assert not dialog.isVisible()


@pytest.mark.parametrize("code", ["engine_missing", "disk_low", "home_unwritable"])
def test_the_window_names_no_command_for_this_computer(code: str) -> None:
    check = finding("Home", False, "Why.", "Run `make run` with --home.", code)
    assert advice(check)
    assert "`" not in advice(check)
    assert "--" not in advice(check)


def test_a_wrong_address_is_said_and_can_be_tried_again(qtbot: QtBot, at_lone: Desk) -> None:
    done: list[bool] = []
    form = AddressForm(at_lone.services, "nobody", "", lambda: done.append(True))
    qtbot.addWidget(form)
    form.connect_now()  # nothing typed
    assert form.button.isEnabled()
    form.field.setText("10.0.0.2:4242")
    form.connect_now()
    qtbot.waitUntil(form.button.isEnabled, timeout=5000)
    assert "There is no machine called nobody" in form.words.text()
    assert not done
