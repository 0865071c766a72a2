"""The main window, with the sidebar, the pages, and a notice while the node is unavailable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QEasingCurve, QEvent, QObject, QSize, Qt, QTimer, QVariantAnimation
from PySide6.QtGui import QCloseEvent, QKeySequence, QPainter, QPaintEvent, QResizeEvent, QShortcut
from PySide6.QtWidgets import QMainWindow, QStackedWidget, QWidget
from shiboken6 import isValid

from app.core.errors import AppError
from app.gui.api.node_state import Link
from app.gui.app import navigation, sidebar
from app.gui.app.app_context import AppContext, restart
from app.gui.app.command_palette import CommandPalette, commands_of
from app.gui.app.navigation import technical_details
from app.gui.app.page import Page
from app.gui.app.shortcuts import ShortcutsDialog, TextSizeKeys
from app.gui.app.sidebar import Sidebar
from app.gui.look import sizes
from app.gui.look.sentences import said
from app.gui.look.theme import PAGE_MS, Theme, set_role
from app.gui.widgets import dialog
from app.gui.widgets.layouts import column, row
from app.gui.widgets.notice import Action, Notice

AT_ONCE = 25  # widgets polished per step, which takes a few milliseconds


class PageBuilder(QObject):
    """A builder that creates a page in steps, so that the window can handle events between them.

    `placed(page)` adds the page to the window. `done()` is called when the page can be shown.
    """

    def __init__(
        self, make: Callable[[], Page], placed: Callable[[Page], object], done: Callable[[], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._make, self._placed, self._done = make, placed, done
        self.is_over = False  # whether the page is finished or has failed
        self._steps = self._all()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._next)

    def resume(self) -> None:
        """Run the remaining steps, one per iteration of the event loop."""
        self._timer.start()

    def pause(self) -> None:
        """Pause while another page has priority."""
        self._timer.stop()

    def finish(self) -> None:
        """Run all remaining steps immediately."""
        self._timer.stop()
        for _ in self._steps:
            pass
        self._end()

    def _next(self) -> None:
        self._timer.stop()  # if the step fails, do not retry forever
        if next(self._steps, self) is self:
            self._end()
        else:
            self._timer.start()

    def _end(self) -> None:
        self._done()
        self.deleteLater()

    def _all(self) -> Iterator[None]:
        try:
            page = self._make()
            yield
            while page.go_on():
                yield
            self._placed(page)
            yield
            yield from _polished(page)
        finally:
            self.is_over = True


def _polished(page: QWidget) -> Iterator[None]:
    """Polish the widgets of a page in batches. Otherwise, Qt would polish them all when the page is shown."""
    for number, widget in enumerate([*shown_with(page)], 1):
        if isValid(widget):  # it may have been deleted between two steps
            widget.ensurePolished()
        if number % AT_ONCE == 0:
            yield


def shown_with(widget: QWidget) -> Iterator[QWidget]:
    """Yield a widget and all descendants that become visible with it, parents first.

    This avoids `findChildren`, because PySide would keep the returned widgets alive even after they are deleted.
    """
    yield widget
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isWindow() and not _is_put_away(child):
            yield from shown_with(child)


def _is_put_away(widget: QWidget) -> bool:
    by_us = widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
    return by_us and widget.isHidden()


STEPS = 6  # about 30 frames per second; each one repaints the page below
FIRST = 0.8  # initial opacity of the overlay


class FadeIn(QWidget):
    """An overlay that fades out to reveal a page. Keys and clicks pass through it.

    It paints a plain color, because taking a picture of the page would make Qt lay out hidden parts.
    """

    def __init__(self, over: QWidget, theme: Theme) -> None:
        super().__init__(over)
        self._over, self._theme = over, theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        self._moves = QVariantAnimation(self)
        self._moves.setDuration(PAGE_MS)
        self._moves.setStartValue(STEPS)
        self._moves.setEndValue(0)
        self._moves.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._moves.valueChanged.connect(lambda _: self.update())
        self._moves.finished.connect(self.hide)
        over.installEventFilter(self)

    def begin(self) -> None:
        """Start the fade, or restart it."""
        self._moves.stop()
        self.setGeometry(self._over.rect())
        self.raise_()
        self.show()
        self._moves.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._over.rect())
        elif event.type() == QEvent.Type.Hide:  # a page that is shown again later must not fade in
            self._moves.stop()
            self.hide()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setOpacity(FIRST * int(self._moves.currentValue()) / STEPS)
        painter.fillRect(event.rect(), self._theme.color("window"))


ADVANCED = "Advanced"  # name of a settings group
GOES_ON = "window/told_service_goes_on"
NoticeContent = tuple[str, tuple[Action, ...]]  # a sentence and its actions
SMALLEST, USUAL = QSize(960, 600), QSize(1200, 760)


class Window(QMainWindow):
    """The main window. A page is created when it is first shown.

    `closing()` returns whether the window was hidden instead of being closed.
    """

    def __init__(self, services: AppContext, closing: Callable[[], bool], quit_app: Callable[[], None]) -> None:
        super().__init__()
        self._services, self._closing, self._quit = services, closing, quit_app
        self.setWindowTitle("Poolhouse")
        self._sidebar = Sidebar(services, self.go)
        self._stack = QStackedWidget()
        self._pages: dict[str, Page] = {}
        self._openings: dict[str, PageBuilder] = {}  # pages that are being created
        self._half: dict[str, Page] = {}
        self._name, self._part = "", ""  # the requested page and part
        self._blank = QWidget()  # shown while a page is being created
        set_role(self._blank, "page")
        self._stack.addWidget(self._blank)
        self._fade = FadeIn(self._stack, services.theme)
        self._bar, self._told = Notice(services.theme), Notice(services.theme, close=self.seen)
        self._tell: Callable[[Window], NoticeContent] | None = None
        bar = column(self._bar, self._told)
        bar.setContentsMargins(sizes.XL, sizes.M, sizes.XL, 0)
        self._bar_box = QWidget()
        self._bar_box.setLayout(bar)
        self._bar_box.hide()
        body = QWidget()
        set_role(body, "body")
        right = column(self._bar_box, gap=0)
        right.addWidget(self._stack, 1)
        body.setLayout(row(self._sidebar, gap=0))
        body.layout().addLayout(right)  # type: ignore[union-attr]
        self.setCentralWidget(body)
        QShortcut(QKeySequence.StandardKey.Quit, self, self._quit_by_key)
        QShortcut(QKeySequence.StandardKey.Close, self, self.close)
        QShortcut(QKeySequence(Qt.Key.Key_F1), self, self._help)
        QShortcut(QKeySequence("Ctrl+K"), self, self._open_palette)
        QShortcut(QKeySequence("Ctrl+/"), self, self._list_shortcuts)
        self._text_size = TextSizeKeys(services, self)
        services.pool.link_changed.connect(self._tell_link)
        services.pool.restarted.connect(self._restarted)
        services.starts.failed.connect(self._start_failed)
        self._tell_link()
        self._place()

    def go(self, name: str) -> None:
        """Show the page at this address, which is its name, optionally followed by a slash and a section name.

        A page that does not exist yet is created in steps.
        """
        name, _, self._part = name.partition("/")
        self._sidebar.show_chosen(name)
        self._services.preferences.keep("window/page", name)
        if self._name in self._openings:
            self._openings[self._name].pause()
        self._name = name
        if name in self._pages:
            self._show()
            return
        is_first = not self._pages  # nothing else is visible yet
        if name not in self._openings or self._openings[name].is_over:
            self._openings[name] = self._opening(name)
        self._stack.setCurrentWidget(self._blank)  # prevents clicks and keys from reaching the previous page
        if is_first:
            self._openings[name].finish()
        else:
            self._openings[name].resume()

    def _opening(self, name: str) -> PageBuilder:
        entry = next(entry for entry in sidebar.ENTRIES if entry.name == name)

        def placed(page: Page) -> None:
            self._half[name] = page
            self._stack.addWidget(page)

        def done() -> None:
            del self._openings[name]
            self._pages[name] = self._half.pop(name)
            if name == self._name:
                self._show()

        return PageBuilder(lambda: entry.make(self._services), placed, done, self)

    def _show(self) -> None:
        """Show the current page, which must be complete."""
        page, part = self._pages[self._name], self._part
        is_another = self._stack.currentWidget() is not page
        self._stack.setCurrentWidget(page)
        self._services.theme.dress(page)
        page.shown()
        if part:
            page.open(part)
        if is_another and self._stack.isVisible() and not self._services.motion.still:
            self._fade.begin()
        # a new page has no focus yet; otherwise Qt would focus the first widget of the window
        if self.focusWidget() is None:
            self._sidebar.focus(self._name)

    def say(self, tell: Callable[[Window], NoticeContent]) -> None:
        """Show a notice above all pages until the user dismisses it.

        `tell` returns the text and actions of the notice. It is called again if the window is replaced by one in
        another language.
        """
        sentence, actions = tell(self)
        self.ask(sentence, *actions)
        self._tell = tell

    def take_over_notice(self, after: Window) -> None:
        """Show this window's notice in the window that replaces it."""
        if self._tell is not None:
            after.say(self._tell)

    def ask(self, sentence: str, *actions: Action) -> None:
        """Ask a question above all pages until the user answers or dismisses it."""
        self._tell = None
        self._told.say(sentence, "info", *actions)
        self._bar_box.show()

    def _quit_by_key(self) -> None:
        """Quit. The first time, explain that the background service keeps running, as the tray menu also does."""
        services = self._services
        goes_on = services.pool.is_there and not services.launcher.started
        if not goes_on or services.preferences.flag(GOES_ON):
            self._quit()
            return
        services.preferences.keep(GOES_ON, True)
        self.ask(
            self.tr(
                "Quitting only closes this window. The background service was started separately and keeps running."
            ),
            (self.tr("Cancel"), self.seen),
            (self.tr("Quit"), self._quit),
        )

    def page(self, name: str) -> Page:
        """Return the page with this name. Create it if necessary."""
        if name not in self._pages:
            self.go(name)
        if name in self._openings:
            self._openings[name].finish()
        return self._pages[name]

    @property
    def place(self) -> str:
        """The address of the current page and section, as passed to `go`."""
        page = self._pages.get(self._name)
        return f"{self._name}/{page.part}" if page is not None else self._name

    @property
    def busy_pages(self) -> list[str]:
        """The titles of the pages with unfinished work that would be lost if the window closed."""
        return [page.title.text() for page in self._pages.values() if page.is_busy]

    def end(self) -> None:
        """Close this window, because another one replaces it."""
        for page in self._pages.values():
            page.end()
        self.hide()
        self.deleteLater()

    def shows(self, name: str) -> bool:
        """Return whether this page is complete and currently displayed."""
        return name == self._name and name in self._pages

    def bring_to_front(self) -> None:
        if self.isMinimized():
            self.showNormal()
        dialog.fit_to_screen(self, SMALLEST)  # the screen may have changed while it was hidden
        self.show()
        self.raise_()
        self.activateWindow()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._sidebar.fit(self.width())

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802  Qt's name
        self._services.preferences.keep("window/geometry", self.saveGeometry())
        if self._closing():
            event.ignore()
        else:
            super().closeEvent(event)

    def _help(self) -> None:
        from app.gui.diagnostics.dialogs import open_doctor

        open_doctor(self._services, self)

    def _open_palette(self) -> None:
        CommandPalette(self._services.theme, commands_of(self._services, self.go), self).open()

    def _list_shortcuts(self) -> None:
        ShortcutsDialog(self._services, self).open()

    def _place(self) -> None:
        kept = self._services.preferences.geometry
        if kept is None or not self.restoreGeometry(kept):
            self.resize(USUAL)
        dialog.fit_to_screen(self, SMALLEST)

    def seen(self) -> None:
        """Dismiss the notice above the pages."""
        self._tell = None
        self._told.clear()
        self._tell_link()

    def _restarted(self) -> None:
        self.say(_restart_notice)

    def _start_failed(self, model: str, error: AppError) -> None:
        self.say(lambda window: _start_notice(window, model, error))

    def _show_log(self) -> None:
        """Open the settings section from which the node's log can be opened."""
        self.seen()
        self.go(f"{navigation.SETTINGS}/{ADVANCED}")

    def _tell_link(self) -> None:
        """Show a notice above all pages while the node is unavailable or has a different version."""
        pool = self._services.pool
        if pool.link is Link.THERE or (pool.link is not Link.AWAY and pool.problem is None):
            self._bar.clear()
            self._bar_box.setVisible(bool(self._told.sentence))
            return
        self._bar_box.show()
        sentence = pool.problem or said(AppError("node_away"))
        again = (self.tr("Start again"), pool.try_again)
        anew = (self.tr("Restart"), lambda: restart(self._services))
        details = (self.tr("Details"), self._show_log)
        other = pool.link is Link.OTHER_VERSION
        actions = (anew,) if other else (details, again)
        self._bar.say(sentence, "error", *actions, closable=False)


def _start_notice(window: Window, model: str, error: AppError) -> NoticeContent:
    """Return a notice that a model could not be loaded after its page was closed."""
    words = window.tr("{model} was not loaded. {why}").format(model=model, why=said(error))
    return words, ((window.tr("Details"), window._show_log),) if technical_details(error) else ()


def _restart_notice(window: Window) -> NoticeContent:
    """Return a notice that the node has been restarted."""
    return said(AppError("node_restarted")), ((window.tr("Details"), window._show_log),)
