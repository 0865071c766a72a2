"""The icon in the tray: how the pool stands at a glance, and what is needed without the window."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.gui.icons import icon
from app.gui.services import Services
from app.gui.standing import standing
from app.gui.window import Window

LATE_MS, LATE_TRIES = 2000, 30  # a desktop's tray may come up to a minute after us


class Tray(QObject):
    """Shown while the desktop has a tray; until then the window cannot be closed into nothing."""

    def __init__(self, services: Services, window: Window, quit_app: Callable[[], None]) -> None:
        super().__init__(window)
        self._services, self._window, self._quit = services, window, quit_app
        self._icon = QSystemTrayIcon(self)
        self._menu = QMenu()
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._clicked)
        services.pool.changed.connect(self._tell)
        services.pool.link_changed.connect(self._tell)
        services.theme.changed.connect(self._tell)
        self._tries = 0
        self._show()

    @property
    def is_there(self) -> bool:
        """Whether a person can reach the app by the tray now."""
        return QSystemTrayIcon.isSystemTrayAvailable() and self._icon.isVisible()

    def keeps(self, window: Window) -> bool:
        """The window is being closed: hide it, or minimise it where no tray could bring it back."""
        if self.is_there:
            window.hide()
        else:
            window.showMinimized()
        return True

    def hide(self) -> None:
        self._icon.hide()

    def _show(self) -> None:
        if QSystemTrayIcon.isSystemTrayAvailable():
            self._tell()
            self._icon.show()
        elif self._tries < LATE_TRIES:
            self._tries += 1
            QTimer.singleShot(LATE_MS, self._show)

    def _clicked(self, how: QSystemTrayIcon.ActivationReason) -> None:
        if how is not QSystemTrayIcon.ActivationReason.Context:
            self._window.come_up()

    def _tell(self) -> None:
        now, theme = standing(self._services.pool), self._services.theme
        self._icon.setIcon(icon(now.icon, getattr(theme.colours, now.colour)))
        self._icon.setToolTip(now.sentence)
        self._menu.clear()
        line = self._menu.addAction(now.sentence)
        line.setEnabled(False)
        self._menu.addSeparator()
        self._menu.addAction(self.tr("Open Poolhouse"), self._window.come_up)
        self._menu.addSeparator()
        self._menu.addAction(self.tr("Quit"), self._quit)
