"""The one button of a diagnosis: a command to copy, a page of the system. Nothing is changed here."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.core.check import Check
from app.core.firewall import Wall, command
from app.gui.diagnostics.system_pages import firewall_page, network_page
from app.gui.widgets.buttons import button


def port_of(address: str) -> int | None:
    """Of `10.0.0.2:4242` or `[fe80::1]:4242`."""
    port = address.rpartition(":")[2]
    return int(port) if port.isdecimal() and ":" in address else None


def own_wall() -> Wall | None:
    """The firewall program of this computer, where there is one we know the command for."""
    if sys.platform == "win32":
        return Wall.WINDOWS
    for name, wall in (("ufw", Wall.UFW), ("firewall-cmd", Wall.FIREWALLD)):
        if shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin"):
            return wall
    return None


class CommandButton(QPushButton):
    """Copies the command for a firewall; asks which one where that is not known."""

    def __init__(self, check: Check, own_port: int | None, copied: Callable[[str], object]) -> None:
        self._copied = copied
        there = bool(check.machine)
        self._port = port_of(check.address) if there else own_port
        super().__init__()
        words = self.tr("Copy command for {machine}").format(machine=check.machine)
        self.setText(words if there else self.tr("Copy command"))
        wall = None if there else own_wall()
        if wall is not None:
            self.clicked.connect(lambda: self._copy(wall))
            return
        menu = QMenu(self)
        menu.addAction(self.tr("For Windows"), lambda: self._copy(Wall.WINDOWS))
        menu.addAction(self.tr("For Ubuntu and Debian (ufw)"), lambda: self._copy(Wall.UFW))
        menu.addAction(self.tr("For Fedora (firewalld)"), lambda: self._copy(Wall.FIREWALLD))
        self.setMenu(menu)

    @property
    def can(self) -> bool:
        """Whether the port is known that the command is about."""
        return self._port is not None

    def _copy(self, wall: Wall) -> None:
        if self._port is not None:
            text = command(wall, self._port)
            QGuiApplication.clipboard().setText(text)
            self._copied(text)


def system_button(words: str, parent: QWidget | None = None) -> QPushButton | None:
    """Opens the system's page for networks, where the system has one."""
    page = network_page()
    return button(words, page.open, "primary", parent) if page is not None else None


def firewall_button(words: str, check: Check) -> QPushButton | None:
    """Opens the system's page for its firewall, where it is this computer's and the system has one."""
    page = None if check.machine else firewall_page(own_wall())
    return button(words, page.open) if page is not None else None
