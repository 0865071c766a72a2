"""The doctor, a dialog that shows the most likely cause of a network problem, a button to fix it, and all checks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QProcess, QStandardPaths, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from app.api.computer import Checks
from app.core.diagnostics import Check, Firewall, firewall_command, likeliest_cause
from app.core.errors import AppError, Reason
from app.gui.api.node_client import Call
from app.gui.api.node_state import Link
from app.gui.app import navigation
from app.gui.app.app_context import AppContext, restart
from app.gui.app.navigation import page_actions
from app.gui.diagnostics.address_form import AddressForm
from app.gui.diagnostics.finding_words import Fix, advice, cause, fix_of, headline, name_of, result_of
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme
from app.gui.pool.household_dialogs import AddMachineDialog, LeaveHouseholdDialog
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.flow import Flow
from app.gui.widgets.fold import Fold
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, clear_layout, column, row, scrolled

GNOME_LIKE = ("gnome", "unity", "ubuntu")  # desktops that use GNOME's settings
KDE_FIREWALL, KDE_NETWORKS = "kcm_firewall", "kcm_networkmanagement"


@dataclass(frozen=True, slots=True)
class SystemPage:
    """A page of the system settings, opened by a URL or a program. Opening the page changes no settings."""

    address: str = ""
    program: tuple[str, ...] = ()

    def open(self) -> bool:
        """Open the page, which may ask for administrator rights. Return whether the system could open it."""
        if self.address:
            return QDesktopServices.openUrl(QUrl(self.address))
        process = QProcess()
        process.setProgram(self.program[0])
        process.setArguments(list(self.program[1:]))
        started: Any = process.startDetached()  # PySide6's type hint is wrong
        return bool(started[0] if isinstance(started, tuple) else started)


# The addresses for Windows and macOS are unverified. [u]
FIREWALL = {
    "win32": SystemPage(program=("control.exe", "firewall.cpl")),
    "darwin": SystemPage("x-apple.systempreferences:com.apple.Network-Settings.extension?Firewall"),
}
NETWORK = {
    "win32": SystemPage("ms-settings:network"),
    "darwin": SystemPage("x-apple.systempreferences:com.apple.preference.security?Privacy_LocalNetwork"),
}


def firewall_page(wall: Firewall | None, platform: str = sys.platform) -> SystemPage | None:
    """Return the system's page for firewall settings, or None if there is none."""
    if not platform.startswith("linux"):
        return FIREWALL.get(platform)
    own = {Firewall.UFW: "gufw", Firewall.FIREWALLD: "firewall-config"}.get(wall) if wall else None
    if own and (there := shutil.which(own)):
        return SystemPage(program=(there,))
    return _of_kde(KDE_FIREWALL)


def network_page(platform: str = sys.platform) -> SystemPage | None:
    """Return the system's page for network settings (on macOS, for the local network permission), or None."""
    if not platform.startswith("linux"):
        return NETWORK.get(platform)
    desktop = os.environ.get("XDG_CURRENT_DESKTOP", "").casefold()
    gnome = shutil.which("gnome-control-center")
    if gnome and any(name in desktop for name in GNOME_LIKE):
        return SystemPage(program=(gnome, "network"))
    if page := _of_kde(KDE_NETWORKS):
        return page
    editor = shutil.which("nm-connection-editor")
    return SystemPage(program=(editor,)) if editor else None


def _of_kde(module: str) -> SystemPage | None:
    """Return a page of KDE's settings, or None if its module is not installed."""
    shows = shutil.which("systemsettings") or shutil.which("systemsettings5")
    place = QStandardPaths.StandardLocation.ApplicationsLocation
    if shows and QStandardPaths.locate(place, f"{module}.desktop"):
        return SystemPage(program=(shows, module))
    return None


def port_of(address: str) -> int | None:
    """Return the port of an address such as `10.0.0.2:4242` or `[fe80::1]:4242`."""
    port = address.rpartition(":")[2]
    return int(port) if port.isdecimal() and ":" in address else None


def own_firewall() -> Firewall | None:
    """Return this computer's firewall program, or None if no known one is installed."""
    if sys.platform == "win32":
        return Firewall.WINDOWS
    for name, wall in (("ufw", Firewall.UFW), ("firewall-cmd", Firewall.FIREWALLD)):
        if shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin"):
            return wall
    return None


class CommandButton(QPushButton):
    """A button that copies the command to open a port in the firewall.

    If the firewall is unknown, a menu asks for it.
    """

    def __init__(self, check: Check, own_port: int | None, copied: Callable[[str], object]) -> None:
        self._copied = copied
        there = bool(check.machine)
        self._port = port_of(check.address) if there else own_port
        super().__init__()
        words = self.tr("Copy command for {machine}").format(machine=check.machine)
        self.setText(words if there else self.tr("Copy command"))
        wall = None if there else own_firewall()
        if wall is not None:
            self.clicked.connect(lambda: self._copy(wall))
            return
        menu = QMenu(self)
        menu.addAction(self.tr("For Windows"), lambda: self._copy(Firewall.WINDOWS))
        menu.addAction(self.tr("For Ubuntu and Debian (ufw)"), lambda: self._copy(Firewall.UFW))
        menu.addAction(self.tr("For Fedora (firewalld)"), lambda: self._copy(Firewall.FIREWALLD))
        self.setMenu(menu)

    @property
    def has_port(self) -> bool:
        """Return whether the port to open is known."""
        return self._port is not None

    def _copy(self, wall: Firewall) -> None:
        if self._port is not None:
            text = firewall_command(wall, self._port)
            QGuiApplication.clipboard().setText(text)
            self._copied(text)


def system_button(words: str, parent: QWidget | None = None) -> QPushButton | None:
    """Return a button that opens the system's network settings, or None if there is no such page."""
    page = network_page()
    return button(words, page.open, "primary", parent) if page is not None else None


def firewall_button(words: str, check: Check) -> QPushButton | None:
    """Return a button that opens the system's firewall settings, or None if there is no such page."""
    page = None if check.machine else firewall_page(own_firewall())
    return button(words, page.open) if page is not None else None


class CheckList(QWidget):
    """A table of all checks. Each row has an icon and a word for the result, and the reason."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(sizes.S)
        self._grid.setColumnStretch(3, 1)
        self._checks: Sequence[Check] = ()
        theme.changed.connect(self._repaint)

    def show_checks(self, checks: Sequence[Check]) -> None:
        self._checks = checks
        clear_layout(self._grid)
        # otherwise a name would touch the text that follows it
        self._grid.setHorizontalSpacing(self._theme.px(sizes.M))
        for number, check in enumerate(checks):
            self._add(number, check)

    def _repaint(self) -> None:
        self.show_checks(self._checks)

    def _add(self, number: int, check: Check) -> None:
        picture, token, said = result_of(check)
        mark = label()
        side = self._theme.px(sizes.SECTION)
        color = getattr(self._theme.colors, token)
        mark.setPixmap(icon(picture, color).pixmap(side, side))
        result, name = label(said, token), label(name_of(check))
        why = " ".join(part for part in (cause(check), advice(check)) if part)
        about = paragraph(why if check.ok is not True else cause(check), "muted")
        about.setAccessibleName(f"{name.text()}: {said}. {about.text()}")
        for place, widget in enumerate((mark, result, name, about)):
            self._grid.addWidget(widget, number, place, Qt.AlignmentFlag.AlignTop)


WIDTH, HEIGHT = 680, 500


class DoctorDialog(Dialog):
    """The doctor dialog. It runs the checks when it is created, and works even while the node is down.

    joins: whether the user is trying to join a household. If so, offering to add a machine would not help.
    """

    def __init__(self, services: AppContext, parent: QWidget | None = None, joins: bool = False) -> None:
        super().__init__(parent)
        self.services, self._joins = services, joins
        self.checks: list[Check] = []
        self.cause: Check | None = None
        self._call: Call | None = None
        self._form: AddressForm | None = None
        self.setWindowTitle(self.tr("Why can't Poolhouse find my other computer?"))
        self.begin_at(services.theme.px(WIDTH), services.theme.px(HEIGHT))
        self._mark, self.title, self.sentence = label(), label("", "section"), paragraph()
        self.cure = paragraph("", "muted")
        self._room = QVBoxLayout()  # holds the button with the fix, or the form that it opens
        self.note = paragraph("", "caption")
        words = column(self.title, self.sentence, self.cure, gap=sizes.S)
        words.addLayout(self._room)
        words.addWidget(self.note)
        top = row(self._mark, gap=sizes.L)
        top.setAlignment(self._mark, Qt.AlignmentFlag.AlignTop)
        top.addLayout(words, 1)
        self._card: QFrame = card(top)
        self.list = CheckList(services.theme)
        self.fold = Fold(services.theme, "", self.list)
        self._fill()
        services.theme.changed.connect(self._paint)
        self.test()

    def test(self) -> None:
        """Run all checks again."""
        self._drop()
        self._again.setEnabled(False)
        self.fold.hide()
        self._say("search", "accent", self.tr("Testing…"), self.tr("This takes a few seconds."))
        self._call = self.services.client.get("/doctor?whole=1", self._received, self._away, answer=Checks)

    def save(self) -> None:
        """Open the dialog that saves a support bundle, which includes these checks."""
        from app.gui.diagnostics.save_dialog import SaveDialog  # imported on use, to load quickly

        dialog = SaveDialog(self.services, self, self.checks)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def done(self, result: int) -> None:
        self._drop()
        super().done(result)

    def _fill(self) -> None:
        self._again = button(self.tr("Test again"), self.test)
        save = button(self.tr("Save diagnostics…"), self.save)
        close = button(self.tr("Close"), self.accept)
        inner = QWidget()
        body = column(self._card, self.fold, gap=sizes.L)
        body.addStretch(1)
        body.setContentsMargins(0, 0, sizes.S, 0)
        feet = Flow(save, self._again, close, right_from=1)
        box = column(scrolled(inner), feet, gap=sizes.L)
        inner.setLayout(body)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
        self.setLayout(box)

    def _received(self, answer: Checks) -> None:
        self._show(
            [
                Check(
                    name=check.name,
                    ok=check.ok,
                    cause=check.cause_facts,
                    cure=check.cure_facts,
                    code=check.code,
                    machine=check.machine,
                    address=check.address,
                    tested=check.tested,
                )
                for check in answer.checks
            ]
        )

    def _away(self, error: AppError) -> None:
        pool = self.services.pool
        cause = Reason("said_by_node", {"sentence": pool.problem}) if pool.problem else error.reason
        node = Check(self.tr("Background service"), False, cause, code="node_away")
        untested = Check(self.tr("Network"), None, Reason("check_rest_untested"), tested=False)
        self._show([node, untested])

    def _show(self, checks: list[Check]) -> None:
        self._call = None
        self.checks, self.cause = checks, likeliest_cause(checks)
        self._again.setEnabled(True)
        self.list.show_checks(checks)
        self.fold.rename(self.tr("All checks (%n)", "", len(checks)))
        self.fold.show()
        self._again.show()
        self._again.setFocus()
        if self._joins and (self.cause is None or fix_of(self.cause) is Fix.PAIR):
            self._help_to_join()
            return
        if self.cause is None:
            self._say(
                "check",
                "good",
                self.tr("No problems found"),
                self.tr(
                    "This computer can reach its household. If another computer can't find this one, run the test "
                    "there too."
                ),
            )
            return
        failed = self.cause.ok is False
        picture, token = ("error", "error") if failed else ("info", "accent")
        self._say(picture, token, headline(self.cause), cause(self.cause), advice(self.cause))
        self._offer(self.cause)

    def _help_to_join(self) -> None:
        """Explain how to get a code from another machine, because the checks have found no other problem."""
        self._say(
            "info",
            "accent",
            self.tr("No machine nearby is showing a code right now"),
            self.tr("On a machine in the household, click “Add a machine”. It shows a code and an address."),
            self.tr(
                "Enter both here under “Join a household”. The two machines must be on the same network. Guest Wi-Fi "
                "does not work because it isolates devices."
            ),
        )
        self._room.addSpacing(sizes.XS)
        back = button(self.tr("Back to “Join a household”"), self.accept, "primary")
        self._room.addLayout(Flow(back))
        back.setFocus()

    def _say(self, picture: str, token: str, title: str, sentence: str, cure: str = "") -> None:
        self._marked = picture, token
        self._paint()
        self.title.setText(title)
        self.sentence.setText(sentence)
        self.cure.setText(cure)
        self.cure.setVisible(bool(cure))
        self.note.hide()
        clear_layout(self._room)
        announce(self, f"{title}. {sentence} {cure}")

    def _paint(self) -> None:
        theme, (picture, token) = self.services.theme, self._marked
        side = theme.px(sizes.XXL)
        color = getattr(theme.colors, token)
        self._mark.setPixmap(icon(picture, color).pixmap(side, side))

    def _offer(self, check: Check) -> None:
        """Show a button for the fix."""
        made = self._button(check)
        if made is not None:
            self._room.addSpacing(sizes.XS)
            self._room.addLayout(Flow(made, *self._besides(check)))
            made.setFocus()

    def _besides(self, check: Check) -> list[QPushButton]:
        """Return a button that opens the firewall settings, for users who do not want to run a command."""
        if fix_of(check) is not Fix.COMMAND:
            return []
        made = firewall_button(self.tr("Open firewall settings"), check)
        return [made] if made is not None else []

    def _button(self, check: Check) -> QPushButton | None:
        match fix_of(check):
            case Fix.START:
                return button(self._start_words(), self._start, "primary")
            case Fix.COMMAND:
                own = port_of(self.services.pool.now.node.peer_address or "")
                made = CommandButton(check, own, self._copied)
                return made if made.has_port else None
            case Fix.ADDRESS if check.machine:
                return button(self.tr("Enter the address…"), lambda: self._ask(check), "primary")
            case Fix.PAIR | Fix.ADDRESS:
                return button(self.tr("Add a machine…"), self._pair, "primary")
            case Fix.LEAVE:
                return button(self.tr("Leave the household…"), self._leave, "primary")
            case Fix.LINK:
                return button(self.tr("Show the link"), self._show_link, "primary")
            case Fix.PLACE:
                (words, act), *_ = page_actions(check.code, self._leave_for)
                return button(words, act, "primary")
            case Fix.SYSTEM:
                return system_button(self.tr("Open network settings"))
            case _:
                self._again.hide()  # the fix is the same button
                return button(self.tr("Test again"), self.test, "primary")

    def _start_words(self) -> str:
        other = self.services.pool.link is Link.OTHER_VERSION
        return self.tr("Restart") if other else self.tr("Start")

    def _start(self) -> None:
        self.services.pool.link_changed.connect(self._started)
        restart(self.services)

    def _started(self) -> None:
        if self.services.pool.link is Link.THERE:
            self.services.pool.link_changed.disconnect(self._started)
            self.test()

    def _ask(self, check: Check) -> None:
        clear_layout(self._room)
        self._form = AddressForm(self.services, check.machine, check.address, self.test, self._leave_for)
        self._room.addWidget(self._form)
        self._form.field.setFocus()

    def _pair(self) -> None:
        AddMachineDialog(self.services, self).open()

    def _leave(self) -> None:
        LeaveHouseholdDialog(self.services, self).open()

    def _show_link(self) -> None:
        """Open the Pool page. Its details panel shows the interfaces of the link and can measure it again."""
        self._leave_for(navigation.POOL)

    def _leave_for(self, page: str) -> None:
        self.accept()
        self.services.go(page)

    def _copied(self, text: str) -> None:
        self.note.setText(self.tr("Copied: {command}").format(command=text))
        self.note.show()

    def _drop(self) -> None:
        call, self._call = self._call, None
        form, self._form = self._form, None
        if call is not None and call.running:
            call.cancel()
        if form is not None:
            form.cancel()
