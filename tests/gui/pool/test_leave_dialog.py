"""A person leaves the household in the window: the node starts anew as somebody else, with the same settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.api.computer import Check, Checks
from app.cli.window_node import NodeLauncher
from app.core.errors import AppError, Reason
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app.app_context import AppContext
from app.gui.diagnostics.doctor_dialog import DoctorDialog
from app.gui.pool.household_dialogs import LeaveHouseholdDialog
from app.gui.pool.pool_page import PoolPage
from app.machine.paths import Home
from tests.gui.desk import Desk, desk

OPTIONS = ["--port", "0", "--bind", "127.0.0.1", "--no-discovery", "--name", "den"]
REMOVED = Reason("removed_needs_reset")
WITHIN_MS = 30_000


@pytest.fixture
def services(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[AppContext]:
    """Return the window's services over a node that it starts itself."""
    home = tmp_path / "den"
    launcher, client = NodeLauncher(Home.at(home), OPTIONS), NodeClient(qapp)
    pool = NodeState(launcher, client, qapp)
    parts = desk(qapp, home).services
    made = dataclasses.replace(parts, pool=pool, client=client, launcher=launcher)
    pool.start()
    yield made
    ended: list[object] = []
    client.post("/shutdown", None, ended.append, ended.append)
    pool.stop()  # which would start another one
    qtbot.waitUntil(lambda: not launcher.started, timeout=WITHIN_MS)
    made.lock.close()


@pytest.mark.long
def test_it_is_somebody_else_afterwards(qtbot: QtBot, services: AppContext) -> None:
    pool, parent, said, surprised = services.pool, QWidget(), list[str](), list[bool]()
    pool.restarted.connect(lambda: surprised.append(True))
    qtbot.addWidget(parent)
    qtbot.waitUntil(lambda: pool.is_there, timeout=WITHIN_MS)
    before = pool.now.node.id
    sheet = LeaveHouseholdDialog(services, parent, said.append)
    sheet.open()
    QTest.mouseClick(sheet.act, Qt.MouseButton.LeftButton)
    assert said
    qtbot.waitUntil(lambda: pool.is_there and pool.now.node.id != before, timeout=WITHIN_MS)
    assert not surprised
    assert pool.now.node.name == "den"
    assert len(list(services.launcher.home.glob("identity.old-*"))) == 1


def test_a_wish_that_cannot_be_kept_is_said(qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise AppError("system_error", detail="No space left on device")

    monkeypatch.setattr(away.services.launcher, "leave", full)
    parent = QWidget()
    qtbot.addWidget(parent)
    sheet = LeaveHouseholdDialog(away.services, parent)
    sheet.open()
    sheet.leave()
    assert "No space left on device" in sheet.notice.sentence
    assert sheet.isVisible()
    sheet.reject()


def test_a_removed_machine_is_offered_to_leave(qtbot: QtBot, at_lone: Desk) -> None:
    page = PoolPage(at_lone.services)
    qtbot.addWidget(page)
    page.show()
    pool = at_lone.services.pool
    node = pool.snapshot["node"]
    pool.snapshot = pool.snapshot | {"node": node | {"reason_facts": {"code": REMOVED.code, "facts": {}}}}
    pool.changed.emit()
    assert "`" not in page.notice.sentence
    texts = [button.text() for button in page.notice.findChildren(QPushButton)]
    assert "Leave the household…" in texts
    pool.snapshot = pool.snapshot | {"node": node}
    pool.changed.emit()
    assert not page.notice.sentence  # it left, and is somebody new


def test_the_diagnosis_offers_it(qtbot: QtBot, away: Desk) -> None:
    dialog = DoctorDialog(away.services)
    qtbot.addWidget(dialog)
    dialog._received(Checks([Check("Household", ok=False, cause_facts=REMOVED, code="removed_needs_reset")]))
    texts = [button.text() for button in dialog.findChildren(QPushButton)]
    assert "Leave the household…" in texts
    dialog.close()
