"""The details of a machine give their room to the words that need it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.app.app_context import AppContext
from app.gui.look.theme import Scheme, Theme
from app.gui.pool import machine_words
from app.gui.pool.inspector import Inspector, divided_width
from app.gui.pool.machine_facts import machines_of
from app.gui.pool.pool_actions import MachineActions
from app.gui.widgets.labels import ElidedLabel
from testbed.snapshots import household, snapshot_of


def test_no_words_are_cut_beside_free_room(qtbot: QtBot, qapp: QApplication) -> None:
    services = cast("AppContext", SimpleNamespace(theme=Theme(qapp, Scheme.LIGHT, 1.0)))
    panel = Inspector(services, cast("MachineActions", Mock()), lambda: None)
    qtbot.addWidget(panel)
    long = "use models here, and lend its memory to all others"
    panel.facts.show_facts([("Permissions", long), ("Holds", "no layers"), ("Used by", "nobody")])
    panel.resize(900, 200)
    panel.show()
    qapp.processEvents()
    values = [elided.text() for elided in panel.findChildren(ElidedLabel) if elided is not panel.why]
    assert sorted(values) == sorted([long, "no layers", "nobody"])


@pytest.mark.parametrize(
    ("expected", "room", "values"),
    [
        ([100, 50, 200], 400, [100, 50, 200]),
        ([100, 50, 200], 300, [100, 50, 150]),  # the longest alone is shortened
        ([100, 50, 200], 150, [50, 50, 50]),
        ([100, 0, 0], 60, [60, 0, 0]),
        ([100, 50, 200], -5, [0, 0, 0]),
    ],
)
def test_short_facts_are_whole_before_long_ones(expected: list[int], room: int, values: list[int]) -> None:
    assert divided_width(expected, room) == values


def test_it_says_what_a_machine_computes_and_how_old_a_measurement_is(
    qtbot: QtBot, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_790_000_000.0 + 2 * 3600]
    monkeypatch.setattr("app.gui.pool.machine_words.time.time", lambda: now[0])
    services = cast("AppContext", SimpleNamespace(theme=Theme(qapp, Scheme.LIGHT, 1.0)))
    shown = Inspector(services, cast("MachineActions", Mock(testing=False)), lambda: None)
    qtbot.addWidget(shown)
    shown.show_machine(machines_of(snapshot_of(household(3)))[1])
    assert ("Computing", "10% of the answer time") in shown.facts.shown
    assert dict(shown.facts.shown)["Transfer time"].endswith(" per 64 prompt tokens")
    assert "Share of answer time" in dict(shown.facts.shown)
    assert dict(shown.facts.shown)["Measured"].endswith(", 2 h ago")
    assert shown._ages.isActive()
    now[0] += 3 * 24 * 3600
    shown._ages.timeout.emit()
    assert dict(shown.facts.shown)["Measured"].endswith(", 3 d ago")
    shown.show_machine(None)
    assert not shown._ages.isActive()


@pytest.mark.parametrize(
    ("seconds", "expected"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (90000, "1 d")]
)
def test_how_old_a_measurement_is(seconds: int, expected: str) -> None:
    assert machine_words.short_age(1000.0, 1000.0 + seconds) == expected
