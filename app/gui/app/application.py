"""The startup code of the window, which creates and connects the QApplication and all services."""

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
from app.core.errors import AppError
from app.core.system_errors import system_error
from app.gui.api.launch import Launcher
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app import navigation, sidebar
from app.gui.app.app_context import AppContext
from app.gui.app.failure_dialog import FailureDialog
from app.gui.app.node_dialog import Sheet
from app.gui.app.preferences import Preferences
from app.gui.app.single_instance import SingleInstance, claim_lock
from app.gui.app.tray import Tray
from app.gui.app.window import NoticeContent, Window
from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look.accessibility import FocusRing
from app.gui.look.drawing import icon
from app.gui.look.language import LANGUAGE, Language, translate
from app.gui.look.motion import Motion
from app.gui.look.theme import LIGHT, Theme
from app.gui.models.importing import ImportQueue
from app.gui.tools.tool_client import ToolClient
from app.gui.widgets.buttons import button

NAME, KEPT = "window.log", "window.log.1"  # in the log folder, from which diagnostics include them


PARTS = ("pool", "models", "activity", "this_computer", "settings")  # the pages to preload: all except Chat
FIRST = (  # slow dependencies of these pages, imported one at a time
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
BEFORE_MS, BETWEEN_MS = 400, 25  # time for the first clicks, and for clicks between two imports


class PagePreloader(QObject):
    """A timer that imports the modules of the pages while the window is idle.

    Importing takes up to half of the time needed to show a page for the first time. Creating the pages in advance
    as well would use memory for pages that are never opened.
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
        linecache.clearcache()  # PySide reads the source of each module, which would remain in this cache


def page_modules() -> Iterator[str]:
    """Yield the module names of all pages except Chat. The module of a page comes after the modules that it imports.

    The window is unresponsive during an import, so each import should load only one module.
    """
    yield from FIRST
    for part in PARTS:
        modules = _modules([f"{folder}/{part}" for folder in gui.__path__], f"{gui.__name__}.{part}.")
        yield from sorted(modules, key=lambda name: (name.endswith("_page"), name))


def _modules(folders: list[str], prefix: str) -> Iterator[str]:
    """Yield the names of all modules in these folders and their subpackages, without importing them."""
    for module in pkgutil.iter_modules(folders, prefix):
        name = module.name.removeprefix(prefix)
        if module.ispkg:
            yield from _modules([f"{folder}/{name}" for folder in folders], f"{module.name}.")
        else:
            yield module.name


MOST_AT_ONCE = 4096  # signals per read


@contextmanager
def python_signals() -> Iterator[None]:
    """Let Python handle signals while Qt's event loop waits.

    Each signal writes a byte to a socket that wakes the loop.
    """
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


class CrashRecorder:
    """A context manager that records a stack trace if the window crashes. The next start reads it."""

    def __init__(self, logs: Path) -> None:
        self._logs, self.details = logs, take_crash_trace(logs)
        self._file: TextIO | None = None

    def __enter__(self) -> CrashRecorder:
        try:
            self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (self._logs / NAME).open("w", encoding="utf-8")
        except OSError:
            return self  # the disk is full or read-only: the window works, but a crash leaves no stack trace
        faulthandler.enable(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            faulthandler.disable()
            self._file.close()

    def report(self, window: Window) -> None:
        """Tell the user if the previous window crashed, with a button that copies the details."""
        if self.details:
            window.say(self._words)

    def _words(self, _: Window) -> NoticeContent:
        translate, details = QCoreApplication.translate, self.details
        sentence = translate("Diagnostics", "Poolhouse closed unexpectedly last time. No report was sent.")
        copy = (translate("Diagnostics", "Copy details"), lambda: QGuiApplication.clipboard().setText(details))
        return sentence, (copy,)


def take_crash_trace(logs: Path) -> str:
    """Return the stack trace of the last crash and rename its file, or return "" after a normal exit."""
    file = logs / NAME
    try:
        details = file.read_text("utf-8", "replace").strip()
        if details:
            file.replace(logs / KEPT)
    except OSError:
        return ""
    return details


class QuitDialog(Sheet):
    """A confirmation dialog for quitting during unfinished work.

    where: the titles of the busy pages. leave: quits the app.
    """

    needs_node = False

    def __init__(
        self, services: AppContext, where: Sequence[str], leave: Callable[[], object], parent: QWidget
    ) -> None:
        words = self.tr(
            "These pages are still busy: {pages}. Quitting stops what they are doing but keeps "
            "the text of unfinished answers. Downloads and imports resume the next time you "
            "start Poolhouse."
        )
        sentence = words.format(pages=", ".join(where))
        super().__init__(services, self.tr("Quit now?"), sentence, parent)
        self.leave = button(self.tr("Quit anyway"), leave)
        self.stay = self.offer(self.tr("Cancel"), self.leave)
        self.stay.setFocus()


class PoolhouseApplication(QApplication):
    """A QApplication that emits `to_quit` when the system asks it to quit. macOS does so at logout and from the Dock.

    By default, Qt would close each window. Our window would only hide in the tray, and macOS would cancel the
    logout.
    """

    to_quit = Signal()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Quit:
            self.to_quit.emit()
            return True
        return super().event(event)


STARTED_MS = 3000


class Application:
    """The running app, which owns the services, the window and the tray icon."""

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
            Motion(app, preferences), ImportQueue(pool, preferences, self._app),
            ToolClient(launcher.home, self._app), renew=self._renew,
        )  # fmt: skip
        self._make_window()
        self._crashes = CrashRecorder(launcher.home / "logs")
        self._single = SingleInstance(launcher.home, self._app)
        self._single.show.connect(self._bring_to_front)
        pool.start()
        QTimer.singleShot(STARTED_MS, self._app, launcher.note_started)  # whatever its node does
        self._first_page(preferences)
        self._crashes.report(self.window)
        self._warming = PagePreloader(self._app)
        if hidden:
            self.tray.start_hidden()
        else:
            self.window.bring_to_front()

    def run(self) -> int:
        """Run the event loop until the app quits. Return the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.quit())
        with self._crashes, python_signals():
            code = self._app.exec()
        self.services.tools.close()
        self.services.lock.close()  # necessary even if no chat page was shown
        return code

    def ask_to_quit(self) -> None:
        """Quit, but ask for confirmation if a page has unfinished work."""
        where = self.window.busy_pages
        if not where:
            self.quit()
        elif self.window.findChild(QuitDialog) is None:
            self.window.bring_to_front()
            QuitDialog(self.services, where, self.quit, self.window).open()

    def quit(self) -> None:
        """Close the window, and stop the node if this window started it. The node drains before it exits."""
        launcher, client = self.services.launcher, self.services.client
        self.services.preferences.keep("window/geometry", self.window.saveGeometry())
        self.window.hide()
        self.tray.hide()
        done = self._app.exit  # quit() would ask every window first, and ours would hide instead of closing
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
        """Replace the window after the current event has been handled. Return False if a page has unfinished work."""
        if self._language.chosen == self.services.preferences.text(LANGUAGE):
            return True
        if self.window.busy_pages:
            return False
        QTimer.singleShot(0, self._app, self._change_windows)
        return True

    def _change_windows(self) -> None:
        """Replace the window with one in the new language.

        The geometry and the page are preserved, and the language setting gets the focus.
        """
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
        """Hide or minimize the window instead of closing it. Return whether that was done."""
        return self.tray.hide_window(self.window)

    def _go(self, name: str) -> None:
        if self._window is not None:
            self._window.go(name)
            self._window.bring_to_front()

    def _first_page(self, preferences: Preferences) -> None:
        kept = preferences.text("window/page", navigation.CHAT)
        known = {entry.name for entry in sidebar.ENTRIES}
        self.window.go(kept if kept in known else navigation.CHAT)
        if not preferences.flag("first_run/done"):  # comes last, because it takes the keyboard focus
            from app.gui.welcome.welcome import Welcome

            Welcome(self.services, self.window).begin()


def app_icon() -> QIcon:
    return icon("app", LIGHT.accent)


def start(launcher: Launcher, *, hidden: bool = False) -> int:
    """Run the window until the app quits. If a window of this home folder is already open, show that one instead."""
    app = PoolhouseApplication(sys.argv[:1])
    try:
        claimed = claim_lock(launcher.home)
        if claimed is None:
            return 0
        made = Application(app, launcher, hidden=hidden)
    except OSError as error:
        show_failure(app, system_error(error))
        raise
    app.to_quit.connect(made.quit)
    code = made.run()
    claimed.unlock()
    return code


def show_failure(app: QApplication, error: AppError) -> None:
    """Show the reason why the window could not be opened, and wait until the user closes the dialog."""
    Language(app).speak("")  # the chosen language may be unreadable
    app.setApplicationName("Poolhouse")
    app.setWindowIcon(app_icon())
    FailureDialog(app, error).exec()
