"""Dialogs and notices with text twice as large over a narrow window, in both languages: nothing is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QRect
from PySide6.QtWidgets import QApplication, QDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.api.computer import Settings
from app.core.chat import Chat, ChatId
from app.core.errors import AppError
from app.decoding import convert
from app.gui.app.app_context import AppContext
from app.gui.app.application import QuitDialog
from app.gui.app.node_dialog import Sheet
from app.gui.app.page import Page
from app.gui.chat.chat_settings import ChatSettings, ModelLimits
from app.gui.chat.empty_chat import LockedChats
from app.gui.chat.message.message_actions import TextWindow, ask_link
from app.gui.chat.presets import Presets
from app.gui.diagnostics.doctor_dialog import DoctorDialog
from app.gui.diagnostics.save_dialog import SaveDialog
from app.gui.look.theme import Scheme
from app.gui.models.folder_dialog import FolderSheet
from app.gui.models.models_page import Removal
from app.gui.pool.household_dialogs import AddMachineDialog, LeaveHouseholdDialog
from app.gui.pool.join_dialog import JoinHouseholdDialog
from app.gui.pool.machine_dialogs import InterfaceDialog, RemoveMachineDialog, RenameMachineDialog, RolesDialog
from app.gui.pool.machine_facts import MachineFacts, machines_of
from app.gui.settings.about import TextDialog
from app.gui.settings.privacy import EncryptionDialog, EraseDialog
from app.gui.settings.upstreams import AddServerDialog, RemoveServerDialog
from app.gui.widgets.buttons import wrapping
from app.gui.widgets.dialog import HEIGHT, NameDialog
from app.gui.widgets.flow import Flow
from app.gui.widgets.layouts import column, layout_widget
from app.gui.widgets.notice import Notice
from testbed.snapshots import household, snapshot_of
from tests.findings import finding
from tests.gui import walk
from tests.gui.desk import Desk
from tests.gui.speaking import speaking

NARROW, COLUMN = 760, 420  # of a window, and of the chat in one
MANY = 12
WHY = "the disk is full, and what was to be written there is much more than it has room for"
Make = Callable[[AppContext, MachineFacts, QWidget], Sheet]
INTERFACES = {
    "interfaces": [
        {"name": "enp0s31f6", "kind": "ethernet", "up": True, "addresses": ["10.0.0.2"], "bits_per_s": 10**9},
        {"name": "tailscale0", "kind": "vpn", "up": True, "addresses": ["10.8.0.2"], "bits_per_s": None},
    ]
}  # fmt: skip


def nothing(*_: object) -> None:
    """Ignore the notification."""


def ways(services: AppContext, machine: MachineFacts, parent: QWidget) -> Sheet:
    made = InterfaceDialog(services, machine, nothing, parent)
    made._fill(convert(INTERFACES, Settings))
    return made


SHEETS: dict[str, Make] = {
    "rename": lambda services, machine, parent: RenameMachineDialog(services, machine, nothing, parent),
    "roles": lambda services, machine, parent: RolesDialog(services, machine, nothing, parent),
    "remove": lambda services, machine, parent: RemoveMachineDialog(services, machine, nothing, parent),
    "interface": ways,
    "add": lambda services, _, parent: AddMachineDialog(services, parent),
    "join": lambda services, _, parent: JoinHouseholdDialog(services, parent, ""),
    "server": lambda services, _, parent: AddServerDialog(services, (), nothing, parent),
    "forget": lambda services, _, parent: RemoveServerDialog(services, "barn", nothing, parent),
    "leave": lambda services, _, parent: LeaveHouseholdDialog(services, parent),
    "erase": lambda services, _, parent: EraseDialog(services, parent),
    "folder": lambda services, _, parent: FolderSheet(services, "/media/disk/models", parent),
}


@pytest.fixture(params=["en", "de"])
def spoken(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[str]:
    with speaking(qapp, request.param):
        yield request.param


@pytest.fixture
def narrow(qtbot: QtBot, away: Desk) -> Iterator[QWidget]:
    """A window as narrow as it gets, under text twice as large."""
    away.services.theme.choose(Scheme.LIGHT, 2.0)
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(NARROW, 600)
    yield made
    away.services.theme.choose(Scheme.LIGHT, 1.0)


@pytest.mark.parametrize("name", SHEETS)
def test_a_dialog_is_no_wider_than_its_window_and_cuts_no_word(
    qtbot: QtBot, away: Desk, narrow: QWidget, spoken: str, name: str
) -> None:
    machine = machines_of(snapshot_of(household(3)))[1]
    sheet = SHEETS[name](away.services, machine, narrow)
    sheet.show()
    sheet.fail(AppError("history_unwritten", path="/home/me/a/long/path", why="the disk is full"))
    qtbot.wait(20)
    assert sheet.width() <= NARROW
    names = walk.untidy(sheet)
    sheet.close()
    assert not names, f"{name} in {spoken}: " + "\n".join(names)


def test_the_settings_of_a_chat_have_room_and_leave_their_buttons_in_sight(
    qtbot: QtBot, away: Desk, narrow: QWidget, spoken: str
) -> None:
    services = away.services
    presets, chat = Presets(services.preferences), Chat(ChatId("a"))
    dialog = ChatSettings(services.theme, presets, chat, chat, ["guide"], lambda _: ModelLimits(), nothing, narrow)
    dialog.show()
    qtbot.wait(20)
    assert dialog.width() <= NARROW
    assert dialog.height() <= HEIGHT
    names = walk.untidy(dialog)
    dialog.close()
    assert not names, f"in {spoken}: " + "\n".join(names)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_code_and_the_address_below_it_are_whole(qtbot: QtBot, at_lone: Desk, spoken: str, scale: float) -> None:
    at_lone.services.theme.choose(Scheme.LIGHT, scale)
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(NARROW, 600)
    sheet = AddMachineDialog(at_lone.services, window)
    sheet.show()
    qtbot.waitUntil(lambda: bool(sheet.code), timeout=5000)
    qtbot.wait(20)
    names = walk.untidy(sheet)
    if scale == 1.0:  # there is room for all of it
        qtbot.waitUntil(lambda: not sheet._view.verticalScrollBar().maximum(), timeout=5000)
    sheet.close()
    at_lone.services.theme.choose(Scheme.LIGHT, 1.0)
    assert not names, f"in {spoken}: " + "\n".join(names)


def test_a_notice_with_two_buttons_has_room(qtbot: QtBot, away: Desk, narrow: QWidget, spoken: str) -> None:
    notice = Notice(away.services.theme)
    narrow.setLayout(column(notice, None))
    words = "Traffic to attic-pc goes through a VPN (wg0). Poolhouse can use eth0 instead. " * 2
    leave_out = QCoreApplication.translate("ChatPage", "Leave out the oldest messages")
    narrow.show()
    for width in (NARROW, COLUMN):
        narrow.resize(width, 600)
        notice.say(words, "warning", (leave_out, nothing), ("Wait", nothing))
        qtbot.wait(20)
        assert narrow.width() == width
        names = walk.untidy(narrow)
        assert not names, f"{width} wide in {spoken}: " + "\n".join(names)


def test_a_button_too_long_for_its_line_goes_on_in_the_next_one(qtbot: QtBot, narrow: QWidget) -> None:
    words = "Die ältesten Nachrichten auslassen"
    button = wrapping(words, nothing)
    narrow.setLayout(column(layout_widget(Flow(button)), None))
    narrow.show()
    qtbot.wait(20)
    line = button.sizeHint()
    narrow.resize(line.width() + 2 * line.height(), 600)
    qtbot.wait(20)
    assert button.size() == line
    narrow.resize(4 * line.width() // 5, 600)
    qtbot.wait(20)
    assert QPushButton.text(button) == "Die ältesten Nachrichten\nauslassen"
    assert button.height() > line.height()
    assert (button.text(), button.accessibleName(), button.sizeHint()) == (words, words, line)
    assert not walk.untidy(narrow)


Opens = Callable[[AppContext, QWidget], QDialog]
ANSWER = "https://example.org/" + "along-path" * 40


def doctor(services: AppContext, parent: QWidget) -> QDialog:
    made = DoctorDialog(services, parent)
    checks = [finding(f"Check {number}", None, "It was not tested.") for number in range(MANY)]
    made._show([finding("Network", False, "A firewall is in the way. " * 5), *checks])
    made.fold.open()
    return made


def diagnostics(services: AppContext, parent: QWidget) -> QDialog:
    made = SaveDialog(services, parent)
    made._failed(OSError(28, "No space left on device, and much more is to be told of it"))
    return made


def settings(services: AppContext, parent: QWidget) -> QDialog:
    chat = Chat(ChatId("a"))
    presets = Presets(services.preferences)
    return ChatSettings(services.theme, presets, chat, chat, ["guide"], lambda _: ModelLimits(), nothing, parent)


def removal(services: AppContext, parent: QWidget) -> QDialog:
    request = Removal(Page(services, "Models"), services.client, services.importing)
    request._page.setParent(parent)
    request.ask_anyway("A model with a long name of 70 billion parameters", nothing)
    assert request.question is not None
    return request.question


OTHERS: dict[str, Opens] = {
    "doctor": doctor,
    "diagnostics": diagnostics,
    "settings": settings,
    "removal": removal,
    "name": lambda services, parent: NameDialog(services.theme, "Save as preset", "Name", nothing, parent),
    "license": lambda services, parent: TextDialog(services, "License", "All rights. " * 999, parent),
    "text": lambda services, parent: TextWindow(services.theme, "A long text. " * 999, parent),
    "turning": lambda services, parent: EncryptionDialog(services.lock, parent, on=True),
    "locked": lambda services, parent: LockedChats(services.lock, services.theme, QWidget(), parent).ask_new_history(),
    "link": lambda services, parent: ask_link(services.theme, parent, ANSWER, nothing),
    "quit": lambda services, parent: QuitDialog(services, ["Chat", "Models"], nothing, parent),
}


def opened(services: AppContext, parent: QWidget, name: str) -> QDialog:
    if name not in SHEETS:
        return OTHERS[name](services, parent)
    sheet = SHEETS[name](services, machines_of(snapshot_of(household(3)))[1], parent)
    sheet.open()
    sheet.fail(AppError("history_unwritten", path="/home/me" + "/a/long/path" * 9, why=WHY))
    return sheet


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", [*SHEETS, *OTHERS])
def test_every_button_of_a_dialog_is_on_a_small_screen(
    qtbot: QtBot, away: Desk, small_screen: QRect, spoken: str, name: str, scale: float
) -> None:
    """This holds even if the dialog shows a long error."""
    away.services.theme.choose(Scheme.LIGHT, scale)
    window = QWidget()
    qtbot.addWidget(window)
    window.setGeometry(small_screen)
    window.show()
    dialog = opened(away.services, window, name)
    dialog.open()
    qtbot.wait(20)
    beyond = walk.beyond(dialog, small_screen)
    seen = small_screen.contains(dialog.geometry())
    cut = walk.cut(dialog)
    dialog.done(0)
    away.services.theme.choose(Scheme.LIGHT, 1.0)
    assert not beyond, "\n".join(beyond)
    assert seen
    assert not cut, "\n".join(cut)
