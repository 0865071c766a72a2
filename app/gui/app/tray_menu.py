"""The tray's menu. It is made once; its lines change in place, also while it is open."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QMenu

from app.core.errors import AppError
from app.gui.api.node_client import Json
from app.gui.app import page_names
from app.gui.app.app_context import Services
from app.gui.app.pool_status import standing
from app.gui.look import theme as sizes
from app.gui.this_computer.lending_words import is_by_hand, state_word, users

HOUR_S = 3600
PAUSES_H = (1, 4)


class TrayMenu(QMenu):
    """`show_window` and `quit_app` are carried out; `failed` hears why something was refused."""

    def __init__(
        self,
        services: Services,
        show_window: Callable[[], object],
        quit_app: Callable[[], object],
        failed: Callable[[AppError], None],
    ) -> None:
        super().__init__("Poolhouse")
        self._services, self._failed = services, failed
        self._machine_lines: list[QAction] = []
        self.status = self.addAction(QIcon(), "", self._show_more)
        self.addSeparator()
        self.open = self.addAction(self.tr("Open Poolhouse"), show_window)
        self.setDefaultAction(self.open)
        self.addSeparator()
        self.pauses = self._made_pauses()
        self.resume = self.addAction(self.tr("Resume lending"), lambda: self._order("resume", {}))
        self.stop = self.addAction(
            self.tr("Stop now"), lambda: self._order("pause", {"at_once": True})
        )
        self.users = self.addAction(QIcon(), "", lambda: services.go(page_names.COMPUTER))
        self.addSeparator()
        self.machines = self.addMenu(self.tr("Machines"))
        self.addAction(self.tr("Settings"), lambda: services.go(page_names.SETTINGS))
        self.addSeparator()
        self.quit = self.addAction("", quit_app)
        self.show_state()

    def show_state(self) -> None:
        """As the node says it is now."""
        pool = self._services.pool
        self._say(self.status, self._short(standing(pool).sentence))
        lending: Json = pool.node.get("lending") or {} if pool.is_there else {}
        lends = bool(lending) and lending.get("state") != "off"
        by_hand = is_by_hand(lending)
        self.pauses.menuAction().setVisible(lends and not by_hand)
        self.resume.setVisible(lends and by_hand)
        used = bool(lending.get("used_bytes")) or lending.get("state") == "draining"
        self.stop.setVisible(lends and (used or not by_hand))
        used_by = bool(lending.get("used_by"))
        self.users.setVisible(used_by)
        if used_by:
            self._say(self.users, self.tr("Used by {names}").format(names=users(lending)))
        self._show_machines(pool.machines if pool.is_there else [])
        goes_on = pool.is_there and not self._services.launcher.started
        quits = self.tr("Quit; the background service goes on") if goes_on else self.tr("Quit")
        self._say(self.quit, quits)

    def _made_pauses(self) -> QMenu:
        menu = self.addMenu(self.tr("Pause lending"))
        for hours in PAUSES_H:
            words = self.tr("For {hours} h").format(hours=hours)
            menu.addAction(words, self._pause(hours * HOUR_S))
        menu.addAction(self.tr("Until I resume"), self._pause(None))
        return menu

    def _pause(self, seconds: int | None) -> Callable[[], object]:
        return lambda: self._order("pause", {"seconds": seconds})

    def _order(self, what: str, body: Json) -> None:
        self._services.client.post(f"/lending/{what}", body, _done, self._failed)

    def _show_machines(self, found: list[Json]) -> None:
        self.machines.menuAction().setVisible(bool(found))
        while len(self._machine_lines) < len(found):
            line = self.machines.addAction("")
            line.triggered.connect(lambda _, line=line: self._show_machine(line))
            self._machine_lines.append(line)
        for at, line in enumerate(self._machine_lines):
            line.setVisible(at < len(found))
            if at < len(found):
                self._say(line, self._machine_words(found[at]))
                line.setData(found[at].get("id"))

    def _show_machine(self, line: QAction) -> None:
        self._services.go(f"{page_names.POOL}/{line.data()}")

    def _machine_words(self, machine: Json) -> str:
        name = str(machine.get("name"))
        if machine.get("this"):
            name = self.tr("{name} (this machine)").format(name=name)
        state = state_word(str(machine.get("state") or "offline"))
        return self._short(self.tr("{name}: {state}").format(name=name, state=state))

    def _show_more(self) -> None:
        """Where the state that the line tells of is shown, or the chat that waits for its end."""
        now = standing(self._services.pool)
        self._services.go(self._services.cut.place(now.model, now.page))

    def _short(self, text: str) -> str:
        wide = self._services.theme.px(sizes.CHAT_WIDTH // 2)
        return self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, wide)

    @staticmethod
    def _say(line: QAction, text: str) -> None:
        """`&` would underline the next letter."""
        escaped = text.replace("&", "&&")
        if line.text() != escaped:
            line.setText(escaped)


def _done(answer: Json) -> None:
    """The snapshot shows it."""
