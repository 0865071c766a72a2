"""The system's own pages for its firewall and its networks: opened for a person, never changed."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QProcess, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices

from app.core.diagnostics import Wall

GNOME_LIKE = ("gnome", "unity", "ubuntu")  # where GNOME's settings open at all
KDE_FIREWALL, KDE_NETWORKS = "kcm_firewall", "kcm_networkmanagement"


@dataclass(frozen=True, slots=True)
class SystemPage:
    """Behind an address of the system, or shown by a program of it."""

    address: str = ""
    program: tuple[str, ...] = ()

    def open(self) -> bool:
        """Whether the system took it; the page itself may ask for an administrator."""
        if self.address:
            return QDesktopServices.openUrl(QUrl(self.address))
        process = QProcess()
        process.setProgram(self.program[0])
        process.setArguments(list(self.program[1:]))
        started: Any = process.startDetached()  # what it gives is not what its types say
        return bool(started[0] if isinstance(started, tuple) else started)


# Those of Windows and macOS are unverified. [u]
FIREWALL = {
    "win32": SystemPage(program=("control.exe", "firewall.cpl")),
    "darwin": SystemPage("x-apple.systempreferences:com.apple.Network-Settings.extension?Firewall"),
}
NETWORK = {
    "win32": SystemPage("ms-settings:network"),
    "darwin": SystemPage("x-apple.systempreferences:com.apple.preference.security?Privacy_LocalNetwork"),
}


def firewall_page(wall: Wall | None, platform: str = sys.platform) -> SystemPage | None:
    """For the firewall of this computer; None where the system has no page for it."""
    if not platform.startswith("linux"):
        return FIREWALL.get(platform)
    own = {Wall.UFW: "gufw", Wall.FIREWALLD: "firewall-config"}.get(wall) if wall else None
    if own and (there := shutil.which(own)):
        return SystemPage(program=(there,))
    return _of_kde(KDE_FIREWALL)


def network_page(platform: str = sys.platform) -> SystemPage | None:
    """For the networks of this computer, or what the system lets a program do there."""
    if not platform.startswith("linux"):
        return NETWORK.get(platform)
    desktop = os.environ.get("XDG_CURRENT_DESKTOP", "").casefold()
    gnome = shutil.which("gnome-control-center")
    if gnome and any(one in desktop for one in GNOME_LIKE):
        return SystemPage(program=(gnome, "network"))
    if page := _of_kde(KDE_NETWORKS):
        return page
    editor = shutil.which("nm-connection-editor")
    return SystemPage(program=(editor,)) if editor else None


def _of_kde(module: str) -> SystemPage | None:
    """A page of KDE's settings, where that part of them is installed."""
    shows = shutil.which("systemsettings") or shutil.which("systemsettings5")
    place = QStandardPaths.StandardLocation.ApplicationsLocation
    if shows and QStandardPaths.locate(place, f"{module}.desktop"):
        return SystemPage(program=(shows, module))
    return None
