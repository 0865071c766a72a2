"""A simulated user who uses the window in rounds: pages, dialogs, answers, text sizes, palettes, hiding and showing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication, QListWidget, QTabBar

from app.cli.window_node import NodeLauncher
from app.core.chat import Role
from app.gui.app import navigation, sidebar
from app.gui.app.application import Application
from app.gui.app.preferences import Preferences
from app.gui.app.tray import NO_TRAY
from app.gui.chat.chat_page import ChatPage
from app.gui.look.theme import Scheme
from app.gui.pool.pool_page import MAP, TABLE, PoolPage
from app.machine.paths import Home
from scripts.endurance.busy_thread import FIRST, PALETTE, USUAL, Watch
from scripts.endurance.leak_figures import Ledger
from scripts.endurance.process_figures import Said, reading
from scripts.endurance.verdict import verdict

STEP_MS = 200
HIDDEN_STEPS = 5
ANSWER_S = 120.0  # for an answer, even while a machine leaves and the model is reloaded
SIZES = ((960, 600), (1600, 1000), (1200, 760))
QUESTION = "What happens when a machine leaves? Tell me all that you know of it."

Step = tuple[str, Callable[[], object]]


class Tour:
    """The steps of one round. Each runs when the previous one is complete."""

    def __init__(self, application: Application) -> None:
        self._it = application
        self.answers = 0

    def round(self) -> Iterator[Step]:
        window = self._it.window
        for entry in sidebar.ENTRIES:
            step = f"page {entry.name}"
            yield step, partial(window.go, entry.name)
            yield from self._waited(partial(window.shows, entry.name), step)
            yield from self._parts(entry.name)
        yield from self._chat()
        for size in SIZES:
            yield "resize", partial(window.resize, *size)
        yield "close", window.close
        for _ in range(HIDDEN_STEPS):
            yield "hidden", nothing
        yield "come up", window.bring_to_front

    def _parts(self, name: str) -> Iterator[Step]:
        page = self._it.window.page(name)
        if isinstance(page, PoolPage):
            yield from self._household(page)
        for bar in page.findChildren(QTabBar):
            for at in [*range(1, bar.count()), 0]:
                yield f"{name}, tab {at}", partial(bar.setCurrentIndex, at)
        if name == navigation.SETTINGS:
            rows = page.findChildren(QListWidget)[0]
            for at in [*range(1, rows.count()), 0]:
                yield f"settings {at}", partial(rows.setCurrentRow, at)

    def _household(self, page: PoolPage) -> Iterator[Step]:
        yield "details", lambda: page.choose(page.machines[-1].id)
        yield "no details", partial(page.choose, "")
        yield "table", page.view_choice.buttons[TABLE].click
        yield "map", page.view_choice.buttons[MAP].click
        yield "sheet", page.add_machine
        yield "close the sheet", close_the_sheet

    def _chat(self) -> Iterator[Step]:
        """Stop an answer midway, regenerate it completely, and delete the chat."""
        page = self._it.window.page(navigation.CHAT)
        assert isinstance(page, ChatPage)
        yield "to the chat", partial(self._it.window.go, navigation.CHAT)
        yield "new chat", page.list.new_chat
        yield "write", partial(page.composer.field.setPlainText, QUESTION)
        yield "send", page.composer.send.click
        yield from self._waited(lambda: spoken(page) or not is_busy(page))
        if is_busy(page):
            yield "stop", page.composer.send.click
        yield from self._waited(lambda: not is_busy(page))
        yield "again", partial(again, page)
        yield from self._waited(lambda: not is_busy(page))
        self.answers += spoken(page)
        yield from self._palettes()
        old = page.chat.id
        yield "leave the chat", page.list.new_chat
        yield "delete the chat", partial(page.history.delete, [old])

    def _palettes(self) -> Iterator[Step]:
        """Switch palettes. Hidden widgets adopt the new palette when they are shown."""
        for scheme in (Scheme.DARK, Scheme.LIGHT):
            yield PALETTE, partial(self._it.services.theme.choose, scheme, 1.0)
            yield "away", partial(self._it.window.go, navigation.POOL)
            yield PALETTE, partial(self._it.services.theme.choose, scheme, 1.0)
            yield "back", partial(self._it.window.go, navigation.CHAT)

    def _waited(self, is_over: Callable[[], bool], step: str = "answer") -> Iterator[Step]:
        began = time.monotonic()
        while not is_over():
            if time.monotonic() - began > ANSWER_S:
                raise AssertionError(f"{step}: it does not end")
            yield step, nothing


class Driver(QObject):
    """A runner that executes steps until the time is up, then asks the window to quit."""

    def __init__(self, app: QApplication, application: Application, said: Said, seconds: float) -> None:
        super().__init__(app)
        self._app, self._it, self._said = app, application, said
        self._began = time.monotonic()
        self._seconds = seconds
        self.ledger, self.tour, self.watch = Ledger(), Tour(application), Watch(self)
        self.is_whole = True  # no step failed
        self._steps = self.tour.round()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._next)
        self._timer.start(STEP_MS)

    def _next(self) -> None:
        is_done = False
        try:
            self._do(next(self._steps, None))
            is_done = True
        finally:
            if not is_done:  # Qt prints the error, and would continue
                self.is_whole = False
                self._end()

    def _do(self, step: Step | None) -> None:
        if step is not None:
            name, do = step
            kind = PALETTE if name == PALETTE else USUAL
            self.watch.step, self.watch.kind = name, kind if self.ledger.readings else FIRST
            do()
            return
        lasted = time.monotonic() - self._began
        with self.watch.apart():
            self.ledger.readings.append(reading(lasted, self._said, self._app))
        if lasted > self._seconds:
            self._end()
        else:
            self._steps = self.tour.round()

    def _end(self) -> None:
        self._timer.stop()
        self.watch.end()
        self._it.quit()


def is_busy(page: ChatPage) -> bool:
    """Return whether an answer is in progress in the open chat."""
    return page.chat.id in page.session.running


def spoken(page: ChatPage) -> bool:
    """Return whether the last answer in the open chat contains text."""
    if is_busy(page):
        return bool(page.session.running[page.chat.id].text)
    last = page.chat.messages.get(page.chat.leaf) if page.chat.leaf is not None else None
    return last is not None and last.role is Role.ASSISTANT and bool(last.text)


def again(page: ChatPage) -> None:
    """Regenerate the answer, or request it for the first time if there is none."""
    leaf = page.chat.leaf
    assert leaf is not None, "the question is not in its chat"
    if page.chat.messages[leaf].role is Role.ASSISTANT:
        page.session.regenerate(page.chat.id, leaf)
    else:
        page.session.answer(page.chat.id, leaf)


def close_the_sheet() -> None:
    """Close the dialog over the window."""
    sheet = QApplication.activeModalWidget()
    if sheet is not None:
        sheet.close()


def nothing() -> None:
    """Do nothing, for a step that only lets time pass."""


def drive(home: Home, seconds: float, table: Path) -> int:
    """Use the real window with the node of a home folder. Return 1 if a figure is out of bounds."""
    said = Said()
    app = QApplication(["poolhouse"])
    folder = home.root / "window"
    folder.mkdir(exist_ok=True)
    kept = Preferences(folder)
    for key in ("first_run/done", NO_TRAY):
        kept.keep(key, True)
    application = Application(app, NodeLauncher(home))
    driver = Driver(app, application, said, seconds)
    application.run()
    if not driver.is_whole:
        return 1
    lines, is_well = verdict(driver.ledger, driver.watch.kinds, said.warnings, driver.tour.answers)
    print("\n".join(lines))
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if is_well else 1
