"""Tests of the system's motion setting: a real portal on its own bus, and each desktop's own setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtDBus import QDBusConnection
from pytestqt.qtbot import QtBot

from app.gui.look.motion import GNOME, KDE, PORTAL, STANDARD, SystemMotion, less_motion
from tests.private_bus import Answer, needs_a_bus, private_bus, service


@pytest.mark.parametrize(
    ("key", "value", "less"),
    [
        (STANDARD, 1, True),
        (STANDARD, 0, False),
        (STANDARD, 7, None),
        (GNOME, False, True),
        (GNOME, True, False),
        (GNOME, "no", None),
        (KDE, "0", True),
        (KDE, "0.5", False),
        (KDE, 0.0, True),
        (KDE, "fast", None),
        (("org.freedesktop.other", "x"), 1, None),
    ],
)
def test_each_desktop_s_own_words(key: tuple[str, str], value: Any, less: bool | None) -> None:
    assert less_motion(key, value) is less


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[tuple[str, QDBusConnection]]:
    with private_bus(tmp_path) as address:
        yield address, QDBusConnection.connectToBus(address, "motion")
        QDBusConnection.disconnectFromBus("motion")


@needs_a_bus
def test_a_portal_is_asked_and_asked_again(qtbot: QtBot, bus: tuple[str, QDBusConnection]) -> None:
    address, connection = bus
    kept: dict[tuple[Any, ...], tuple[str, Any]] = {STANDARD: ("u", 1)}
    requests: list[tuple[Any, ...]] = []

    def portal(member: str, body: tuple[Any, ...]) -> Answer | None:
        requests.append(body)
        return ("v", (("v", kept[body]),)) if body in kept else None  # `Read` wraps twice

    motion = SystemMotion(None, connection)
    with service(address, PORTAL, portal):
        with qtbot.waitSignal(motion.changed):
            motion.look()
        assert motion.reduced
        assert sorted(requests) == sorted([STANDARD, GNOME, KDE])
        for words, less in (
            ({GNOME: ("b", True)}, False),
            ({GNOME: ("b", False)}, True),  # an older GNOME
            ({KDE: ("s", "1.0")}, False),
            ({KDE: ("s", "0")}, True),  # Plasma
        ):
            kept.clear()
            kept.update(words)
            with qtbot.waitSignal(motion.changed):
                motion.look()
            assert motion.reduced is less


@needs_a_bus
def test_without_a_portal_nothing_is_reduced(qtbot: QtBot, bus: tuple[str, QDBusConnection]) -> None:
    motion = SystemMotion(None, bus[1])
    motion.look()
    qtbot.waitUntil(lambda: motion._asked == 0)
    assert not motion.reduced


def test_without_a_bus_nothing_waits() -> None:
    motion = SystemMotion(None, QDBusConnection("nowhere"))
    motion.look()
    assert (motion._asked, motion.reduced) == (0, False)
