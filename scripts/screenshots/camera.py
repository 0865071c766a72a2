"""A camera that takes screenshots of a real, off-screen window in both palettes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QListWidget, QTabBar, QWidget

from app.cli.window_node import NodeLauncher
from app.gui.api.launch import Launcher
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app.app_context import AppContext
from app.gui.app.preferences import Preferences
from app.gui.app.window import Window
from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look.language import translate
from app.gui.look.motion import ALWAYS, Motion
from app.gui.look.theme import Scheme, Theme
from app.gui.models.importing import ImportQueue
from app.gui.pool.pool_page import MAP, TABLE, PoolPage
from app.gui.settings.settings_page import SettingsPage
from app.gui.tools.tool_client import ToolClient
from app.machine.paths import Home

FONT = "DejaVu Sans"
WIDTH, HEIGHT = 1200, 760
SETTLE_MS = 1500  # for a page's requests to the node when it is first shown
PAINT_MS = 250


class Camera:
    """A camera for a window over the node of a home folder. `launcher` replaces the usual way to find the node."""

    def __init__(self, app: QApplication, home: Path, folder: Path, scale: float, launcher: Launcher | None) -> None:
        self.folder, self._scale = folder, scale
        launcher, own = launcher or NodeLauncher(Home.at(home)), home / "window"
        own.mkdir(exist_ok=True)
        client = NodeClient(app)
        pool, preferences = NodeState(launcher, client, app), Preferences(own, app)
        theme = Theme(app, Scheme.LIGHT, scale)
        lock = ChatLock(client, pool, preferences, own, app)
        motion = Motion(app, preferences)
        motion.choose(ALWAYS)  # the moment of a picture within a motion could not be reproduced
        self.services = AppContext(
            pool, client, theme, preferences, launcher, own, _nowhere, lock, motion,
            ImportQueue(pool, preferences, app), ToolClient(launcher.home, app),
        )  # fmt: skip
        self.window = Window(self.services, lambda: False, app.quit)
        self.window.resize(WIDTH, HEIGHT)
        self.window.show()
        pool.start()
        wait(SETTLE_MS)

    def page(self, name: str) -> QWidget:
        """Show the page with this name, wait until it has settled, and return it."""
        self.window.go(name)
        page = self.window.page(name)
        self.services.theme.choose(Scheme.LIGHT, self._scale)
        wait(SETTLE_MS)
        return page

    def shoot(self, name: str, of: QWidget | None = None) -> None:
        """Take a light and a dark screenshot of the window, or of a dialog over it."""
        for scheme in (Scheme.LIGHT, Scheme.DARK):
            self.services.theme.choose(scheme, self._scale)
            wait(PAINT_MS)
            file = self.folder / f"{name}-{scheme}.png"
            (of or self.window).grab().save(str(file))
            print(file)

    def shoot_parts(self, name: str, page: QWidget) -> None:
        """Take screenshots of each tab, view or section of a page."""
        for part in _parts(page):
            self.shoot(f"{name}{part}")

    def close(self) -> None:
        self.services.pool.stop()
        self.window.close()


def application(language: str) -> QApplication:
    """Return an off-screen Qt application with the font of the screenshots."""
    app = QApplication([])
    app.setFont(QFont(FONT))
    translate(app, language)
    return app


def wait(ms: int) -> None:
    """Run the event loop for `ms` milliseconds."""
    loop = QEventLoop()
    QTimer.singleShot(ms, loop.quit)
    loop.exec()


def _nowhere(_: str) -> None:
    """Do nothing, because nobody clicks a link here."""


def _parts(page: QWidget) -> Iterator[str]:
    """Show each tab of a page one after another, or just the page. Yield the names of the screenshots."""
    if isinstance(page, PoolPage):
        yield from _views(page)
        return
    bars = [bar for bar in page.findChildren(QTabBar) if bar.isVisible() and bar.count() > 1]
    lists = [view for view in page.findChildren(QListWidget) if view.isVisible() and view.count() > 1]
    for at in range(lists[0].count() if lists and isinstance(page, SettingsPage) else 0):
        lists[0].setCurrentRow(at)
        wait(PAINT_MS)
        yield f"-{at}"
    if not bars:
        if not isinstance(page, SettingsPage):
            yield ""
        return
    for at in range(bars[0].count()):
        bars[0].setCurrentIndex(at)
        wait(PAINT_MS)
        yield f"-{bars[0].tabText(at).lower().replace(' ', '-')}"


def _views(page: PoolPage) -> Iterator[str]:
    """Show the map, without and with the details of a machine, and the table. Yield the names of the screenshots."""
    yield ""
    page.choose(page.machines[-1].id)
    wait(PAINT_MS)
    yield "-details"
    page.choose("")
    page.view_choice.buttons[TABLE].click()
    wait(PAINT_MS)
    yield "-table"
    page.view_choice.buttons[MAP].click()
    wait(PAINT_MS)
