"""Common fixtures of tests of the window: one real node, and the window's parts over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QRect
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.look.language import translators
from app.gui.widgets import dialog
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import TestNode, node

FOLLOWS = 5  # a layout that changes another, which changes a third
PATIENCE_MS = 90_000  # of whatever comes in the end: on a loaded computer two nodes are measured for a minute


class Patient(QtBot):
    """Waits as long as that, whatever a test hopes for."""

    def wait(self, ms: int) -> None:
        """Wait, and then let the consequences happen: a slow computer may just have begun when the time is up."""
        super().wait(ms)
        for _ in range(FOLLOWS):
            QApplication.processEvents()

    def waitUntil(self, callback: Callable[[], Any], *, timeout: int = 0) -> None:  # noqa: N802
        super().waitUntil(callback, timeout=max(timeout, PATIENCE_MS))

    def waitSignal(self, signal: Any, *, timeout: int = 0, **more: Any) -> Any:  # noqa: N802
        return super().waitSignal(signal, timeout=max(timeout, PATIENCE_MS), **more)


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> QApplication:
    """Its translators are there before the first thread of Qt's, as in the app."""
    translators(qapp)
    return qapp


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    return Patient(request)


@pytest.fixture(autouse=True)
def own_locale() -> Iterator[None]:
    """A language that a test chooses is not the next one's: figures would look otherwise."""
    before = QLocale()
    yield
    QLocale.setDefault(before)


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Windows that a test has closed are gone when the next one begins, not at its first wait: until then each new
    look is put on them too."""
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture
def small_screen(monkeypatch: pytest.MonkeyPatch) -> QRect:
    """The smallest screen there is a window for, less than the tests' own."""
    screen = QRect(0, 0, 960, 600)
    monkeypatch.setattr(dialog, "available_area", lambda _: screen)
    return screen


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    """A node alone, with the Guide on its shelf."""
    with node(tmp_path_factory.mktemp("lone") / "den", "den") as made:
        yield made


@pytest.fixture
def at_lone(qtbot: QtBot, qapp: QApplication, lone: TestNode) -> Iterator[Desk]:
    """The window's parts, following the lone node."""
    made = desk(qapp, lone.root)
    follow(qtbot, made.services)
    yield made
    made.services.pool.stop()
    made.services.lock.close()


@pytest.fixture
def away(qapp: QApplication, tmp_path: Path) -> Iterator[Desk]:
    """The window's parts where no node runs."""
    made = desk(qapp, tmp_path)
    yield made
    made.services.pool.stop()
    made.services.lock.close()
