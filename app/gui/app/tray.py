"""The tray icon, with the pool's status, a menu that works without the window, and notifications."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.api.snapshot import Lending, Machine, Snapshot
from app.core.errors import AppError, StageLost
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import LOG_PAGE, technical_details
from app.gui.app.pool_status import PoolStatus, current_status, was_reclaimed
from app.gui.app.preferences import NOTIFY_ANSWERS, NOTIFY_LOSSES, NOTIFY_NEWS, notifies
from app.gui.app.window import Window
from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import model_name, said
from app.gui.this_computer.lending_store import is_manual_pause, state_word, user_names


@dataclass(frozen=True, slots=True)
class Notification:
    """A desktop notification.

    page: the address to open on a click. model: the name of a lost model. If an answer from it was interrupted,
    that chat is shown instead of `page`. kind: the preference that turns it off, or "" if it is always shown.
    """

    title: str
    sentence: str
    page: str
    model: str = ""
    kind: str = ""


def notifications(before: Snapshot | None, now: Snapshot) -> list[Notification]:
    """Return a notification for each change between two snapshots that the user should know about."""
    if before is None:
        return []
    news = [replace(item, kind=NOTIFY_NEWS) for item in (*_pairing(before, now), *_downloads(before, now))]
    lost = [replace(item, kind=NOTIFY_LOSSES) for item in (*_lost_machines(before, now), *_lost_models(before, now))]
    return [*news, *lost]


def _pairing(before: Snapshot, now: Snapshot) -> list[Notification]:
    tr = QCoreApplication.translate
    title = tr("Tray", "Pairing attempt")
    paired = _paired(now)
    if paired is not None and paired != _paired(before):
        text = tr("Tray", "{name} is now in your household.").format(name=now.machines[paired].name)
        return [Notification(tr("Tray", "A machine was added"), text, f"{navigation.POOL}/{paired}")]
    if before.pairing is None:
        return []
    if now.pairing is not None and now.pairing.tries_left < before.pairing.tries_left:
        text = tr("Tray", "Someone entered a wrong code. Tries left: {left}.").format(left=now.pairing.tries_left)
        return [Notification(title, text, navigation.POOL)]
    if now.pairing is None and now.pairing_closed == "pairing_tries_used":
        return [
            Notification(
                title, tr("Tray", "A wrong code was entered too many times, so pairing was closed."), navigation.POOL
            )
        ]
    return []


def _paired(snapshot: Snapshot) -> str | None:
    """Return the ID of the machine most recently paired with this one, or None if the snapshot does not list it yet."""
    return snapshot.paired if snapshot.paired in snapshot.machines else None


def _downloads(before: Snapshot, now: Snapshot) -> list[Notification]:
    title = QCoreApplication.translate("Tray", "Download finished")
    text = QCoreApplication.translate("Tray", "{name} is ready to load.")
    return [
        Notification(title, text.format(name=download.name), navigation.MODELS)
        for key, download in now.downloads.items()
        if download.state == "done" and key in before.downloads and before.downloads[key].state != "done"
    ]


def _lost_models(before: Snapshot, now: Snapshot) -> list[Notification]:
    """Return a notification for each model that failed.

    A model whose memory an owner reclaimed is left out, because it is loaded again automatically, either on other
    machines or with the next question.
    """
    title = QCoreApplication.translate("Tray", "The model stopped unexpectedly")
    states = {model.model: model.state for model in before.models}
    return [
        Notification(title, said(model.reason_facts) or model.model, navigation.POOL, model.model)
        for model in now.models
        if model.state == "lost" and states.get(model.model) != "lost" and not was_reclaimed(model)
    ]


def _lost_machines(before: Snapshot, now: Snapshot) -> list[Notification]:
    """Return a notification for each machine that went offline while holding part of a model that is still running."""
    title = QCoreApplication.translate("Tray", "A computer was lost")
    text = QCoreApplication.translate("Tray", "{name} went offline. It was running part of {model}.")
    lost = {model.model for model in now.models if model.state == "lost"}  # those are told by themselves
    result = []
    for key, machine in before.machines.items():
        after = now.machines.get(key)
        if not machine.online or after is None or after.online:
            continue
        held = [model.model for model in before.models if any(stage.id == key for stage in model.held)]
        if held and not lost.intersection(held):
            words = text.format(name=machine.name, model=model_name(held[0]))
            result.append(Notification(title, words, f"{navigation.POOL}/{key}", held[0]))
    return result


TITLE_CHARACTERS = 80


def answer_notification(chat: str, title: str, error: AppError | None) -> Notification | None:
    """Return a notification that an answer has ended, or None if another notification covers it."""
    if isinstance(error, StageLost):
        return None  # the lost model is told, and a click on that opens this chat
    words = title if len(title) <= TITLE_CHARACTERS else f"{title[:TITLE_CHARACTERS]}…"
    if error is None:
        head = QCoreApplication.translate("Tray", "Answer ready")
    else:
        head, words = QCoreApplication.translate("Tray", "The answer stopped"), said(error)
    return Notification(head, words, navigation.chat_address(chat), kind=NOTIFY_ANSWERS)


HOUR_S = 3600
PAUSES_H = (1, 4)


class TrayMenu(QMenu):
    """The tray menu. It is built once and updated in place, even while it is open.

    failed: called with the error if the node rejects an action.
    """

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
        self.pauses = self._build_pauses()
        self.resume = self.addAction(self.tr("Resume lending"), lambda: self._order("resume", {}))
        self.stop = self.addAction(self.tr("Stop now"), lambda: self._order("pause", {"at_once": True}))
        self.users = self.addAction(QIcon(), "", lambda: services.go(navigation.COMPUTER))
        self.addSeparator()
        self.machines = self.addMenu(self.tr("Machines"))
        self.addAction(self.tr("Settings"), lambda: services.go(navigation.SETTINGS))
        self.addSeparator()
        self.quit = self.addAction("", quit_app)
        self.show_state()

    def show_state(self) -> None:
        """Update the menu from the current snapshot."""
        pool = self._services.pool
        self._say(self.status, self._short(current_status(pool).sentence))
        lending = pool.now.node.lending if pool.is_there else Lending()
        lends = lending.state != "off"
        by_hand = is_manual_pause(lending)
        self.pauses.menuAction().setVisible(lends and not by_hand)
        self.resume.setVisible(lends and by_hand)
        used = bool(lending.used_bytes) or lending.state == "draining"
        self.stop.setVisible(lends and (used or not by_hand))
        used_by = bool(lending.used_by)
        self.users.setVisible(used_by)
        if used_by:
            self._say(self.users, self.tr("Used by {names}").format(names=user_names(lending)))
        self._show_machines(pool.now.sorted_machines if pool.is_there else [])
        goes_on = pool.is_there and not self._services.launcher.started
        quits = self.tr("Quit (background service keeps running)") if goes_on else self.tr("Quit")
        self._say(self.quit, quits)

    def _build_pauses(self) -> QMenu:
        menu = self.addMenu(self.tr("Pause lending"))
        for hours in PAUSES_H:
            words = self.tr("For {hours} h").format(hours=hours)
            menu.addAction(words, self._pause(hours * HOUR_S))
        menu.addAction(self.tr("Until I resume"), self._pause(None))
        return menu

    def _pause(self, seconds: int | None) -> Callable[[], object]:
        return lambda: self._order("pause", {"seconds": seconds})

    def _order(self, action: str, body: dict[str, object]) -> None:
        self._services.client.post(f"/lending/{action}", body, _done, self._failed)

    def _show_machines(self, machines: list[Machine]) -> None:
        self.machines.menuAction().setVisible(bool(machines))
        while len(self._machine_lines) < len(machines):
            line = self.machines.addAction("")
            line.triggered.connect(lambda _, line=line: self._show_machine(line))
            self._machine_lines.append(line)
        for place, line in enumerate(self._machine_lines):
            line.setVisible(place < len(machines))
            if place < len(machines):
                self._say(line, self._machine_text(machines[place]))
                line.setData(machines[place].id)

    def _show_machine(self, line: QAction) -> None:
        self._services.go(f"{navigation.POOL}/{line.data()}")

    def _machine_text(self, machine: Machine) -> str:
        name = machine.name
        if machine.this:
            name = self.tr("{name} (this machine)").format(name=name)
        state = state_word(machine.state or "offline")
        return self._short(self.tr("{name}: {state}").format(name=name, state=state))

    def _show_more(self) -> None:
        """Open the page about the current status, or the chat whose answer was interrupted."""
        now = current_status(self._services.pool)
        self._services.go(self._services.interrupted.page(now.model, now.page))

    def _short(self, text: str) -> str:
        wide = self._services.theme.px(sizes.CHAT_WIDTH // 2)
        return self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, wide)

    @staticmethod
    def _say(line: QAction, text: str) -> None:
        escaped = text.replace("&", "&&")  # a single & would underline the next letter
        if line.text() != escaped:
            line.setText(escaped)


def _done(_: object) -> None:
    """Do nothing, because the next snapshot shows the result."""


RETRY_MS, MAX_TRIES = 2000, 30  # the desktop's tray may start up to a minute after the window
GUARD_MS = 10_000  # interval at which to check that the tray of a hidden window still exists
FIRST_CLOSE, NO_TRAY = "tray/told_first_close", "tray/told_no_tray"


class Tray(QObject):
    """The tray icon. On a desktop without a tray, closing the window only minimizes it."""

    def __init__(self, services: AppContext, window: Window, quit_app: Callable[[], None]) -> None:
        super().__init__(window)
        self._services, self._window, self._quit = services, window, quit_app
        self._is_asking = False  # whether the window is asking what closing it should do without a tray
        self._icon = QSystemTrayIcon(self)
        self.menu = TrayMenu(services, window.bring_to_front, quit_app, self._failed)
        self._icon.setContextMenu(self.menu)
        self._icon.activated.connect(self._clicked)
        self._icon.messageClicked.connect(self._message_clicked)
        services.pool.changed.connect(self._changed)
        services.pool.link_changed.connect(self._link_changed)
        services.answers.ended.connect(self._answer_ended)
        services.starts.failed.connect(self._start_failed)
        services.theme.changed.connect(self._repaint)
        self._before: Snapshot | None = None
        self._status: PoolStatus | None = None  # the displayed status
        self._last_news: Notification | None = None
        self._hide_when_shown = False
        self._guard = QTimer(self)
        self._guard.setInterval(GUARD_MS)
        self._guard.timeout.connect(self._check_tray)
        self._tries = 0
        self._show()

    @property
    def is_there(self) -> bool:
        """Return whether the desktop has a tray and our icon is visible in it."""
        return self._has_host() and self._icon.isVisible()

    def start_hidden(self) -> None:
        """Start without a visible window, as at sign-in. Until a tray is available, the window is minimized."""
        if self.is_there:
            self._guard.start()
        else:
            self._hide_when_shown = True
            self._window.showMinimized()

    def hide_window(self, window: Window) -> bool:
        """Hide the window instead of closing it, or minimize it if there is no tray. Always returns True.

        The first time there is no tray, the window stays open and shows an explanation.
        """
        if self.is_there:
            window.hide()
            self._guard.start()
            self._explain_first_close()
        elif self._is_asking or self._services.preferences.flag(NO_TRAY):
            self._minimize()
        else:
            self._explain_no_tray()
        return True

    def hide(self) -> None:
        self._guard.stop()
        self._icon.hide()

    def end(self) -> None:
        """Remove the icon, because the window that replaces this one has its own."""
        self.hide()
        self.menu.deleteLater()  # the menu has no parent; everything else is deleted with the window

    def notify(self, item: Notification) -> None:
        self._last_news = item
        self._icon.showMessage(item.title, item.sentence, self._icon.icon())

    @staticmethod
    def _has_host() -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    def _show(self) -> None:
        if self._has_host():
            self._show_state()
            self._icon.show()
            if self._hide_when_shown and self._window.isMinimized():
                self._window.hide()
                self._guard.start()
            self._hide_when_shown = False
        elif self._tries < MAX_TRIES:
            self._tries += 1
            QTimer.singleShot(RETRY_MS, self, self._show)

    def _check_tray(self) -> None:
        """Minimize the window if it is hidden and the desktop's tray has disappeared."""
        if self._window.isVisible():
            self._guard.stop()
        elif not self.is_there:
            self._guard.stop()
            self._window.showMinimized()

    def _clicked(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        opens = sys.platform != "darwin"  # on macOS, a click opens the menu
        if opens and reason is not QSystemTrayIcon.ActivationReason.Context:
            self._window.bring_to_front()

    def _message_clicked(self) -> None:
        item = self._last_news
        if item is None or not item.page:
            self._window.bring_to_front()
        else:
            self._services.go(self._services.interrupted.page(item.model, item.page))

    def _changed(self) -> None:
        now = self._services.pool.now
        before, self._before = self._before, now
        self._show_state()
        for item in notifications(before, now):
            self._tell(item)

    def _answer_ended(self, chat: str, title: str, error: AppError | None) -> None:
        item = answer_notification(chat, title, error)
        if item is not None:
            self._tell(item)

    def _start_failed(self, model: str, error: AppError) -> None:
        """Notify the user that a model could not be loaded. The window shows a notice, too."""
        title = self.tr("{model} was not loaded").format(model=model)
        self._tell(Notification(title, said(error), navigation.MODELS, kind=NOTIFY_NEWS))

    def _tell(self, item: Notification) -> None:
        """Notify the user, unless the active window already shows the event or this kind is turned off."""
        if not self._window.isActiveWindow() and notifies(self._services.preferences, item.kind):
            self.notify(item)

    def _link_changed(self) -> None:
        self._before = None  # changes that happened while the node was unavailable are not news
        self._show_state()

    def _repaint(self) -> None:
        self._status = None
        self._show_state()

    def _show_state(self) -> None:
        now, theme = current_status(self._services.pool), self._services.theme
        self.menu.show_state()
        if now == self._status:
            return
        self._status = now
        picture = icon(now.icon, getattr(theme.colors, now.color))
        picture.setIsMask(sys.platform == "darwin")  # the macOS menu bar colors it
        self._icon.setIcon(picture)
        self._icon.setToolTip(now.sentence)

    def _failed(self, error: AppError) -> None:
        """Notify the user that the node rejected an action of the menu."""
        self.notify(Notification("Poolhouse", said(error), LOG_PAGE if technical_details(error) else ""))

    def _explain_first_close(self) -> None:
        """Explain, once, that the app keeps running after the window is closed."""
        if not self._services.preferences.flag(FIRST_CLOSE):
            self._services.preferences.keep(FIRST_CLOSE, True)
            text = self.tr("Poolhouse stays in the tray. To stop it, choose Quit from this menu.")
            self.notify(Notification(self.tr("Poolhouse is still running"), text, ""))

    def _explain_no_tray(self) -> None:
        """Explain that there is no tray, and ask what closing the window should do.

        The explanation is not shown again after the user has chosen an action or closed the window a second time.
        """
        self._is_asking = True
        self._window.ask(
            self.tr("This desktop doesn't show tray icons, so Poolhouse stays in the taskbar."),
            (self.tr("Minimize"), self._minimize),
            (self.tr("Quit"), self._leave),
        )

    def _minimize(self) -> None:
        self._no_tray_seen()
        self._window.showMinimized()

    def _leave(self) -> None:
        self._no_tray_seen()
        self._quit()

    def _no_tray_seen(self) -> None:
        if self._is_asking:
            self._is_asking = False
            self._services.preferences.keep(NO_TRAY, True)
            self._window.seen()
