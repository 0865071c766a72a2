"""Restart it: whichever version the node is, and wherever the button stands."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.gui.api.launch import Endpoint
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import Link, NodeState
from app.gui.app.app_context import AppContext
from app.gui.app.window import Window
from app.gui.diagnostics.doctor_dialog import DoctorDialog
from app.gui.settings.network import RestartRow
from tests.gui.desk import Attached, desk
from tests.node.pool import node

Make = Callable[[AppContext], QWidget]


class Older(Attached):
    """The node that runs is of another version."""

    def find(self) -> Endpoint | None:
        endpoint = super().find()
        return dataclasses.replace(endpoint, version="0.0.1") if endpoint else None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (DoctorDialog, "Restart"),
        (lambda services: RestartRow(services, "Ports changed."), "Restart now"),
        (lambda services: Window(services, lambda: False, lambda: None), "Restart"),
    ],
)
def test_a_node_of_another_version_ends(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, make: Make, text: str
) -> None:
    launcher, client = Older(tmp_path / "den"), NodeClient(qapp)
    with node(tmp_path / "den", "den") as running:
        pool = NodeState(launcher, client, qapp)
        parts = desk(qapp, tmp_path / "den").services
        services = dataclasses.replace(parts, pool=pool, client=client, launcher=launcher)
        pool.start()
        assert pool.link is Link.OTHER_VERSION
        shown = make(services)
        qtbot.addWidget(shown)
        buttons = [button for button in shown.findChildren(QPushButton) if button.text() == text]
        buttons[0].click()
        assert client.endpoint is None  # nothing else is asked of that node
        qtbot.waitUntil(lambda: running.process.poll() is not None, timeout=15_000)
        if isinstance(shown, QDialog):
            shown.close()
        pool.stop()
