"""The start of the window: one QApplication whose parts are only wired together here."""

from __future__ import annotations

import faulthandler
import importlib
import linecache
import pkgutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSocketNotifier, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QApplication, QWidget

from app import __version__, gui
from app.gui.api.launch import Launcher
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app import navigation, sidebar
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.app.preferences import Preferences
from app.gui.app.single_instance import SingleInstance, claim_lock
from app.gui.app.tray import Tray
from app.gui.app.window import Told, Window
from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look.accessibility import FocusRing
from app.gui.look.drawing import icon
from app.gui.look.language import LANGUAGE, translate
from app.gui.look.motion import Motion
from app.gui.look.theme import LIGHT, Theme
from app.gui.models.importing import Importing
from app.gui.widgets.buttons import button

NAME, KEPT = "window.log", "window.log.1"  # in the folder of logs: diagnostics take them along


PARTS = ("pool", "models", "activity", "this_computer", "settings")  # all pages except Chat
FIRST = (  # slow imports of these pages, one at a time
    "statistics",
    "email.errors",
    "email.charset",
    "email.message",
    "importlib.metadata",
    "app.core.model",
    "app.core.planner.placement",
    "app.core.planner.memory_plan",
    "app.core.planner.verdict",
)
BEFORE_MS, BETWEEN_MS = 400, 25  # leaves time for the first clicks, and for clicks in between


class PagePreloader(QObject):
    """A timer that imports the code of pages while the window is idle.

    Importing takes up to half the time that a page needs when it is first shown. Creating the page in advance would
    cost memory even if it is never opened.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._names = page_modules()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._next)
        self._timer.start(BEFORE_MS)

    @property
    def is_done(self) -> bool:
        return not self._timer.isActive()

    def _next(self) -> None:
        self._timer.setInterval(BETWEEN_MS)
        name = next((module for module in self._names if module not in sys.modules), None)
        if name is None:
            self._timer.stop()
        else:
            importlib.import_module(name)
        linecache.clearcache()  # PySide reads the source of every module, which would stay in this cache


def page_modules() -> Iterator[str]:
    """Yield the modules of the pages, each page after its parts.

    A page would import all missing parts at once, and the window would not react in the meantime.
    """
    yield from FIRST
    for part in PARTS:
        modules = _modules([f"{folder}/{part}" for folder in gui.__path__], f"{gui.__name__}.{part}.")
        yield from sorted(modules, key=lambda name: (name.endswith("_page"), name))


def _modules(folders: list[str], prefix: str) -> Iterator[str]:
    """Yield the names of all modules in and below these folders without importing them."""
    for module in pkgutil.iter_modules(folders, prefix):
        name = module.name.removeprefix(prefix)
        if module.ispkg:
            yield from _modules([f"{folder}/{name}" for folder in folders], f"{module.name}.")
        else:
            yield module.name


MOST_AT_ONCE = 4096  # signals per read


@contextmanager
def python_signals() -> Iterator[None]:
    """Let Python handle signals while Qt waits: each signal writes a byte to a socket, which wakes up Python."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for end in (ours, theirs):
            end.setblocking(False)
        notifier = QSocketNotifier(ours.fileno(), QSocketNotifier.Type.Read)

        def take() -> None:
            with suppress(BlockingIOError):
                ours.recv(MOST_AT_ONCE)

        notifier.activated.connect(take)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            notifier.setEnabled(False)


class CrashWatch:
    """Finds the trace of the last window; while it is entered, a crash of this one leaves its own."""

    def __init__(self, logs: Path) -> None:
        self._logs, self.details = logs, put_aside(logs)
        self._file: TextIO | None = None

    def __enter__(self) -> CrashWatch:
        try:
            self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (self._logs / NAME).open("w", encoding="utf-8")
        except OSError:
            return self  # the disk is full or read-only: the window works, but a crash leaves no trace
        faulthandler.enable(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            faulthandler.disable()
            self._file.close()

    def tell(self, window: Window) -> None:
        """Say that the last window crashed, with details to copy."""
        if self.details:
            window.say(self._words)

    def _words(self, _: Window) -> Told:
        translate, details = QCoreApplication.translate, self.details
        sentence = translate("Diagnostics", "Poolhouse closed unexpectedly last time. Nothing was sent to anyone.")
        copy = (translate("Diagnostics", "Copy details"), lambda: QGuiApplication.clipboard().setText(details))
        return sentence, (copy,)


def put_aside(logs: Path) -> str:
    """Return the trace of the last crash, and put it aside; empty after an orderly end."""
    file = logs / NAME
    try:
        details = file.read_text("utf-8", "replace").strip()
        if details:
            file.replace(logs / KEPT)
    except OSError:
        return ""
    return details


class QuitSheet(Sheet):
    """The question before Quit stops unfinished work. `where`: the busy pages. `leave` quits."""

    needs_node = False

    def __init__(
        self, services: AppContext, where: Sequence[str], leave: Callable[[], object], parent: QWidget
    ) -> None:
        words = self.tr(
            "There is work in progress on: {pages}. Quitting stops it, and keeps the text of an answer so far. "
            "Downloads and imports continue the next time you start Poolhouse."
        )
        sentence = words.format(pages=", ".join(where))
        super().__init__(services, self.tr("Quit now?"), sentence, parent)
        self.leave = button(self.tr("Quit anyway"), leave)
        self.stay = self.offer(self.tr("Go on"), self.leave)
        self.stay.setFocus()


class PoolhouseApplication(QApplication):
    """A QApplication that emits `to_quit` when the system asks it to quit, as macOS does at logout and from the Dock.

    Qt would close the windows one by one. They would hide in the tray, and the logout would be canceled.
    """

    to_quit = Signal()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Quit:
            self.to_quit.emit()
            return True
        return super().event(event)


class Application:
    """The application, which creates the window with everything it needs."""

    def __init__(self, app: QApplication, launcher: Launcher, *, hidden: bool = False) -> None:
        self._app = app
        folder = launcher.home / "window"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        preferences = Preferences(folder, self._app)
        self._language = translate(app, preferences.text(LANGUAGE))
        self._app.setApplicationName("Poolhouse")
        self._app.setApplicationVersion(__version__)
        self._app.setDesktopFileName("poolhouse")
        self._app.setWindowIcon(app_icon())
        self._app.setQuitOnLastWindowClosed(False)
        theme = Theme(self._app, preferences.scheme, preferences.text_scale)
        FocusRing(self._app)
        client = NodeClient(self._app)
        pool = NodeState(launcher, client, self._app)
        self._window: Window | None = None
        lock = ChatLock(client, pool, preferences, folder, self._app)
        self.services = AppContext(
            pool, client, theme, preferences, launcher, folder, self._go, lock,
            Motion(app, preferences), Importing(pool, preferences, self._app), renew=self._renew,
        )  # fmt: skip
        self._make_window()
        self._crashes = CrashWatch(launcher.home / "logs")
        self._single = SingleInstance(launcher.home, self._app)
        self._single.show.connect(self._bring_to_front)
        pool.start()
        self._first_page(preferences)
        self._crashes.tell(self.window)
        self._warming = PagePreloader(self._app)
        if hidden:
            self.tray.start_hidden()
        else:
            self.window.bring_to_front()

    def run(self) -> int:
        """Run until the app quits, and return its exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.quit())
        with self._crashes, python_signals():
            code = self._app.exec()
        self.services.lock.close()  # even if no chat page was ever shown
        return code

    def ask_to_quit(self) -> None:
        """Quit, but ask first if that would stop unfinished work."""
        where = self.window.busy_pages
        if not where:
            self.quit()
        elif self.window.findChild(QuitSheet) is None:
            self.window.bring_to_front()
            QuitSheet(self.services, where, self.quit, self.window).open()

    def quit(self) -> None:
        """Close the window, and stop the node if this window started it. The node drains first."""
        launcher, client = self.services.launcher, self.services.client
        self.services.preferences.keep("window/geometry", self.window.saveGeometry())
        self.window.hide()
        self.tray.hide()
        done = self._app.exit  # quit() would ask every window first, and ours would hide instead
        client.endpoint = client.endpoint or launcher.find()
        if launcher.started and client.endpoint is not None:
            client.post("/shutdown", None, lambda _: done(), lambda _: done())
            QTimer.singleShot(2000, done)
        else:
            launcher.end()
            QTimer.singleShot(0, done)
        self.services.pool.stop()

    def _make_window(self) -> None:
        self.window = self._window = Window(self.services, self._closing, self.ask_to_quit)
        self.tray = Tray(self.services, self.window, self.ask_to_quit)

    def _renew(self) -> bool:
        """Replace the window once the calling code in it has returned. Return whether that is possible."""
        if self._language.chosen == self.services.preferences.text(LANGUAGE):
            return True
        if self.window.busy_pages:
            return False
        QTimer.singleShot(0, self._app, self._change_windows)
        return True

    def _change_windows(self) -> None:
        """Replace the window with one in the new language, at the same position, page and keyboard focus."""
        before, tray, preferences = self.window, self.tray, self.services.preferences
        preferences.keep("window/geometry", before.saveGeometry())
        self._language.speak(preferences.text(LANGUAGE))
        self._make_window()
        self.window.go(before.place)
        before.take_over_notice(self.window)
        self.window.bring_to_front()
        tray.end()
        before.end()
        self.window.page(navigation.SETTINGS).take_focus()  # where the language was chosen

    def _bring_to_front(self) -> None:
        self.window.bring_to_front()

    def _closing(self) -> bool:
        """Return whether the closed window stays in the tray or minimized."""
        return self.tray.keeps(self.window)

    def _go(self, name: str) -> None:
        if self._window is not None:
            self._window.go(name)
            self._window.bring_to_front()

    def _first_page(self, preferences: Preferences) -> None:
        kept = preferences.text("window/page", navigation.CHAT)
        known = {entry.name for entry in sidebar.ENTRIES}
        self.window.go(kept if kept in known else navigation.CHAT)
        if not preferences.flag("first_run/done"):  # last, because it takes the keyboard focus
            from app.gui.welcome.welcome import Welcome

            Welcome(self.services, self.window).begin()


def app_icon() -> QIcon:
    """Return the icon of the app."""
    return icon("app", LIGHT.accent)


def start(launcher: Launcher, *, hidden: bool = False) -> int:
    """Run the window of a home until it quits. A second start only shows the window of the first one."""
    app = PoolhouseApplication(sys.argv[:1])
    claimed = claim_lock(launcher.home)
    if claimed is None:
        return 0
    made = Application(app, launcher, hidden=hidden)
    app.to_quit.connect(made.quit)
    code = made.run()
    claimed.unlock()
    return code
