"""The system's own pages for firewall and networks: the real program is started, and only where there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.core.diagnostics import Check, Firewall
from app.gui.diagnostics import doctor_dialog
from app.gui.diagnostics.doctor_dialog import DoctorDialog, SystemPage, firewall_page, network_page
from tests.findings import finding
from tests.gui.desk import Desk

OPEN = "Open firewall settings"
CLOSED = finding("Incoming connections", False, "Nobody gets in.", "", "port_closed")

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="programs of Linux")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only programs there are; each leaves a file with what it was asked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "")
    return folder


def install(folder: Path, name: str) -> Path:
    path = folder.parent / f"{name}.told"
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "$*" > {path}.new\n/bin/mv {path}.new {path}\n')
    program.chmod(0o755)
    return path


def install_kde(folder: Path, module: str) -> Path:
    applications = folder.parent / "share" / "applications"
    applications.mkdir(parents=True, exist_ok=True)
    (applications / f"{module}.desktop").touch()
    return install(folder, "systemsettings")


@linux
def test_the_page_of_the_firewall_that_runs_here(programs: Path) -> None:
    assert firewall_page(Firewall.UFW) is None
    install(programs, "gufw")
    assert firewall_page(Firewall.UFW) == SystemPage(program=(str(programs / "gufw"),))
    assert firewall_page(Firewall.FIREWALLD) is None  # that one is not asked
    assert firewall_page(None) is None
    install_kde(programs, "kcm_firewall")
    shown = SystemPage(program=(str(programs / "systemsettings"), "kcm_firewall"))
    assert firewall_page(Firewall.FIREWALLD) == firewall_page(None) == shown


@linux
def test_the_page_of_networks_is_that_of_the_desktop(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert network_page() is None
    install(programs, "gnome-control-center")
    assert network_page() is None  # it does not open elsewhere
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "ubuntu:GNOME")
    assert network_page() == SystemPage(program=(str(programs / "gnome-control-center"), "network"))
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "XFCE")
    install(programs, "nm-connection-editor")
    assert network_page() == SystemPage(program=(str(programs / "nm-connection-editor"),))


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_the_other_systems_have_one(platform: str) -> None:
    for page in (firewall_page(Firewall.WINDOWS, platform), network_page(platform)):
        assert page is not None
        assert page.address or page.program


@linux
def test_the_doctor_offers_it_beside_the_command(
    qtbot: QtBot, at_lone: Desk, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_dialog, "own_firewall", lambda: Firewall.UFW)
    path = install(programs, "gufw")
    dialog = DoctorDialog(at_lone.services)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog._show([CLOSED])
    offered = {button.text(): button for button in dialog.findChildren(QPushButton)}
    assert "Copy command" in offered
    offered[OPEN].click()
    qtbot.waitUntil(path.exists, timeout=30_000)
    assert path.read_text() == "\n"


@linux
def test_it_is_not_offered_where_it_would_not_help(
    qtbot: QtBot, at_lone: Desk, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offered(check: Check) -> list[str]:
        dialog = DoctorDialog(at_lone.services)
        qtbot.addWidget(dialog)
        dialog.show()
        dialog._show([check])
        return [button.text() for button in dialog.findChildren(QPushButton)]

    monkeypatch.setattr(doctor_dialog, "own_firewall", lambda: Firewall.UFW)
    assert OPEN not in offered(CLOSED)  # no program shows it
    install(programs, "gufw")
    assert OPEN in offered(CLOSED)
    there = finding("attic-pc", False, "No answer.", "", "peer_silent", "attic-pc", "10.0.0.9:4242")
    assert OPEN not in offered(there)  # it is the other computer's firewall
