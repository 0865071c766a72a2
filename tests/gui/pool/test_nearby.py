"""The line of strangers nearby: two without a name can be told apart."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.gui.pool.machine_facts import Stranger
from app.gui.pool.pool_page import Nearby


def test_strangers_without_a_name_are_told_apart_without_their_ids(qtbot: QtBot) -> None:
    chosen: list[Stranger] = []
    nearby = Nearby(chosen.append)
    qtbot.addWidget(nearby)
    strangers = (
        Stranger("1234567890abcdef", None, "10.0.0.8", None),
        Stranger("fedcba0987654321", None, "10.0.0.8", None),
        Stranger("00000000aaaaaaaa", "attic", "10.0.0.9", "10.0.0.9:4000"),
        Stranger("99999999aaaaaaaa", None, "", None, "Windows"),
        Stranger("abcdef0000000000", "Tom & Ann", "", "10.0.0.9:4001"),
    )
    nearby.show_strangers(strangers)
    words = [button.text() for button in nearby.findChildren(QPushButton)]
    said = {label.text() for label in nearby.findChildren(QLabel)}
    assert words == [
        "A machine at 10.0.0.8", "A machine at 10.0.0.8 (number 2)", "attic is ready to pair",
        "Unnamed machine",
    ]  # fmt: skip
    assert said == {"Nearby machines that are not in this household", "Windows", "and 1 more"}
    claims = Stranger("1" * 16, "den", "10.0.0.7", "10.0.0.7:4000", "Linux, AMD EPYC")
    nearby.show_strangers((claims,))
    labels = [label for label in nearby.findChildren(QLabel) if label.text() == "Linux, AMD EPYC"]
    assert len(labels) == 1
    shown = next(button for button in nearby.findChildren(QPushButton) if button.text().startswith("den"))
    assert shown.accessibleDescription() == "Linux, AMD EPYC (reported by that machine)"
    nearby.show_strangers(strangers)
    nearby.findChildren(QPushButton)[-3].click()
    assert chosen == [strangers[1]]
