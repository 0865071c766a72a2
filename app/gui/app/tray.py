"""The icon in the tray: how the pool stands at a glance, and what is needed without the window."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.core.errors import AppError
from app.core.household.pairing import TOO_MANY
from app.gui.app import page_names
from app.gui.app.app_context import AppContext
from app.gui.app.mending_places import LOG, inner
from app.gui.app.pool_status import PoolStatus, standing
from app.gui.app.window import Window
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.sentences import here, said
from app.gui.this_computer.lending_words import is_by_hand, state_word, users

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class News:
    """One notification; a click on it shows `page`, or the chat whose answer was cut with `model`."""

    title: str
    sentence: str
    page: str
    model: str = ""


def news(before: Json, now: Json) -> list[News]:
    """From one snapshot to the next. Without a snapshot before there is nothing new."""
    if not before or not now:
        return []
    return [*_pairing(before, now), *_downloads(before, now), *_lost(before, now)]


def _pairing(before: Json, now: Json) -> list[News]:
    tr = QCoreApplication.translate
    title = tr("Tray", "Pairing attempt")
    came = _let_in(now)
    if came and came != _let_in(before):
        name = now["machines"][came].get("name")
        text = tr("Tray", "{name} belongs to your household now.").format(name=name)
        return [News(tr("Tray", "A machine was added"), text, f"{page_names.POOL}/{came}")]
    was, is_now = before.get("pairing"), now.get("pairing")
    if not was:
        return []
    left = (is_now or {}).get("tries_left", 0)
    if is_now and left < was.get("tries_left", 0):
        text = tr("Tray", "Someone entered a wrong code. Tries left: {left}.").format(left=left)
        return [News(title, text, page_names.POOL)]
    if not is_now and now.get("pairing_closed") == TOO_MANY.code:
        return [News(title, tr("Tray", "A wrong code was entered. Pairing is closed."), page_names.POOL)]
    return []


def _let_in(snapshot: Json) -> str:
    """By the code shown here: whom another machine lets in is no news here. It is told before its name is."""
    came = str(snapshot.get("paired") or "")
    return came if came in (snapshot.get("machines") or {}) else ""


def _downloads(before: Json, now: Json) -> list[News]:
    title = QCoreApplication.translate("Tray", "Download finished")
    text = QCoreApplication.translate("Tray", "{name} is ready to load.")
    earlier = before.get("downloads") or {}
    return [
        News(title, text.format(name=one.get("name")), page_names.MODELS)
        for key, one in (now.get("downloads") or {}).items()
        if one.get("state") == "done" and earlier.get(key, {}).get("state") not in (None, "done")
    ]


def _lost(before: Json, now: Json) -> list[News]:
    was, title = _models(before), QCoreApplication.translate("Tray", "The model was lost")
    return [
        News(title, here(str(one.get("reason") or name)), page_names.POOL, name)
        for name, one in _models(now).items()
        if one.get("state") == "lost" and was.get(name, {}).get("state") != "lost"
    ]


def _models(snapshot: Json) -> dict[str, Json]:
    """All that is loaded to write, by name."""
    every = [snapshot.get("loaded"), *(snapshot.get("beside") or ())]
    return {str(one.get("model")): one for one in every if one}


# The tray's menu. It is made once; its lines change in place, also while it is open.

HOUR_S = 3600
PAUSES_H = (1, 4)


class TrayMenu(QMenu):
    """`show_window` and `quit_app` are carried out; `failed` hears why something was refused."""

    def __init__(
        self,
        services: AppContext,
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
        self.stop = self.addAction(self.tr("Stop now"), lambda: self._order("pause", {"at_once": True}))
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


LATE_MS, LATE_TRIES = 2000, 30  # a desktop's tray may come up to a minute after us
GUARD_MS = 10_000  # between looks whether the tray of a hidden window is still there
FIRST_CLOSE, NO_TRAY = "tray/told_first_close", "tray/told_no_tray"


class Tray(QObject):
    """Shown while the desktop has a tray; until then the window cannot be closed into nothing."""

    def __init__(self, services: AppContext, window: Window, quit_app: Callable[[], None]) -> None:
        super().__init__(window)
        self._services, self._window, self._quit = services, window, quit_app
        self._asks = False  # what closing does where there is no tray
        self._icon = QSystemTrayIcon(self)
        self.menu = TrayMenu(services, window.come_up, quit_app, self._failed)
        self._icon.setContextMenu(self.menu)
        self._icon.activated.connect(self._clicked)
        self._icon.messageClicked.connect(self._message_clicked)
        services.pool.changed.connect(self._changed)
        services.pool.link_changed.connect(self._link_changed)
        services.theme.changed.connect(self._repaint)
        self._before: Json = {}
        self._shown: PoolStatus | None = None
        self._news: News | None = None  # the last notification
        self._waits_hidden = False
        self._guard = QTimer(self)
        self._guard.setInterval(GUARD_MS)
        self._guard.timeout.connect(self._look_after)
        self._tries = 0
        self._show()

    @property
    def is_there(self) -> bool:
        """Whether a person can reach the app by the tray now."""
        return self._has_host() and self._icon.isVisible()

    def start_hidden(self) -> None:
        """At sign-in: no window. Where the tray is late, one in the task bar until it comes."""
        if self.is_there:
            self._guard.start()
        else:
            self._waits_hidden = True
            self._window.showMinimized()

    def keeps(self, window: Window) -> bool:
        """The window is being closed: hide it, or minimise it where no tray could bring it back.

        The first time without a tray it says so instead, as long as it can be read.
        """
        if self.is_there:
            window.hide()
            self._guard.start()
            self._tell_first_close()
        elif self._asks or self._services.preferences.flag(NO_TRAY):
            self._minimise()
        else:
            self._tell_no_tray()
        return True

    def hide(self) -> None:
        self._guard.stop()
        self._icon.hide()

    def end(self) -> None:
        """Another one takes its place."""
        self.hide()
        self.menu.deleteLater()  # it has no parent; the rest goes with the window

    def tell(self, what: News) -> None:
        """A notification of the desktop."""
        self._news = what
        self._icon.showMessage(what.title, what.sentence, self._icon.icon())

    @staticmethod
    def _has_host() -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    def _show(self) -> None:
        if self._has_host():
            self._tell_state()
            self._icon.show()
            if self._waits_hidden and self._window.isMinimized():
                self._window.hide()
                self._guard.start()
            self._waits_hidden = False
        elif self._tries < LATE_TRIES:
            self._tries += 1
            QTimer.singleShot(LATE_MS, self, self._show)

    def _look_after(self) -> None:
        """The desktop's tray may end, or crash: nothing stays hidden then."""
        if self._window.isVisible():
            self._guard.stop()
        elif not self.is_there:
            self._guard.stop()
            self._window.showMinimized()

    def _clicked(self, how: QSystemTrayIcon.ActivationReason) -> None:
        opens = sys.platform != "darwin"  # there a click opens the menu
        if opens and how is not QSystemTrayIcon.ActivationReason.Context:
            self._window.come_up()

    def _message_clicked(self) -> None:
        told = self._news
        if told is None or not told.page:
            self._window.come_up()
        else:
            self._services.go(self._services.cut.place(told.model, told.page))

    def _changed(self) -> None:
        now = self._services.pool.snapshot
        before, self._before = self._before, now
        self._tell_state()
        if not self._window.isActiveWindow():  # else the window shows it
            for one in news(before, now):
                self.tell(one)

    def _link_changed(self) -> None:
        self._before = {}  # what happened while the node was away is no news
        self._tell_state()

    def _repaint(self) -> None:
        self._shown = None
        self._tell_state()

    def _tell_state(self) -> None:
        now, theme = standing(self._services.pool), self._services.theme
        self.menu.show_state()
        if now == self._shown:
            return
        self._shown = now
        picture = icon(now.icon, getattr(theme.colours, now.colour))
        picture.setIsMask(sys.platform == "darwin")  # the menu bar colours it itself
        self._icon.setIcon(picture)
        self._icon.setToolTip(now.sentence)

    def _failed(self, error: AppError) -> None:
        """What was chosen in the menu was refused: say so where it was chosen."""
        self.tell(News("Poolhouse", said(error), LOG if inner(error) else ""))

    def _tell_first_close(self) -> None:
        """Once, ever."""
        if not self._services.preferences.flag(FIRST_CLOSE):
            self._services.preferences.keep(FIRST_CLOSE, True)
            text = self.tr("It goes on here in the tray. To end it, choose Quit in this menu.")
            self.tell(News(self.tr("Poolhouse is still running"), text, ""))

    def _tell_no_tray(self) -> None:
        """Once, ever: it counts as told when a person has chosen, or closed the window again."""
        self._asks = True
        self._window.ask(
            self.tr("This desktop shows no tray icons, so Poolhouse stays in the task bar."),
            (self.tr("Minimise"), self._minimise),
            (self.tr("Quit"), self._leave),
        )

    def _minimise(self) -> None:
        self._told_no_tray()
        self._window.showMinimized()

    def _leave(self) -> None:
        self._told_no_tray()
        self._quit()

    def _told_no_tray(self) -> None:
        if self._asks:
            self._asks = False
            self._services.preferences.keep(NO_TRAY, True)
            self._window.seen()
