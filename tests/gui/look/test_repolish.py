"""Another palette: each widget is polished once, what is seen before what is not, and nothing is forgotten."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QTextBrowser, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.gui.app import navigation
from app.gui.look.theme import DARK, LIGHT, Scheme, Theme
from app.gui.widgets.buttons import IconButton
from app.gui.widgets.labels import label
from tests.gui.desk import Desk, window_over

DEEP = 8
SWEPT = """
import gc
from PySide6.QtWidgets import QApplication, QComboBox, QWidget
from app.gui.look.theme import Scheme, Theme

app = QApplication([])
theme = Theme(app, Scheme.LIGHT, 1.0)
for turn in range(20):
    gc.disable()
    kept = QWidget()
    for _ in range(50):  # closed windows that only a sweep takes, beside widgets that Python has not seen
        QComboBox(kept).view()
        gone = QWidget()
        gone.itself = gone
    gc.set_threshold(1, 1, 1)
    gc.enable()
    theme.choose((Scheme.DARK, Scheme.LIGHT)[turn % 2], 1.0)
    while theme._repolish._timer.isActive():
        app.processEvents()
"""


class Leaf(QLabel):
    """Counts how often it is told that its style is another."""

    told = 0

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802  Qt's name
        self.told += event.type() == QEvent.Type.StyleChange
        super().changeEvent(event)


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    made = Theme(qapp, Scheme.LIGHT, 1.0)
    yield made
    made.choose(Scheme.LIGHT, 1.0)


def color(widget: QWidget) -> str:
    return widget.palette().windowText().color().name()


def nested(qtbot: QtBot, leaf: QWidget) -> QWidget:
    """A leaf under many frames, shown."""
    inner = leaf
    for _ in range(DEEP):
        outer = QFrame()
        box = QVBoxLayout(outer)
        box.addWidget(inner)
        inner = outer
    qtbot.addWidget(inner)
    inner.show()
    return inner


def test_qt_does_not_polish_a_widget_for_each_that_is_above_it(qtbot: QtBot, theme: Theme) -> None:
    leaf = Leaf("Here")
    top = nested(qtbot, leaf)
    qtbot.waitUntil(lambda: not theme._repolish._timer.isActive())
    leaf.told = 0
    theme.choose(Scheme.DARK, 1.0)
    assert leaf.told == 0
    assert color(leaf) == DARK.text
    theme.choose(Scheme.DARK, 2.0)
    assert leaf.told == 1
    top.close()


def test_what_is_not_seen_follows_little_by_little(qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.gui.look.theme.AT_ONCE", 1)
    seen, hidden, gone = (label(word, "muted") for word in ("Seen", "Hidden", "Gone"))
    top = QWidget()
    qtbot.addWidget(top)
    box = QVBoxLayout(top)
    for item in (seen, hidden, gone):
        box.addWidget(item)
    top.show()
    hidden.hide()
    gone.hide()
    theme.choose(Scheme.DARK, 1.0)
    assert (color(seen), color(hidden)) == (DARK.muted, LIGHT.muted)
    gone.setParent(None)
    gone.deleteLater()
    qtbot.waitUntil(lambda: color(hidden) == DARK.muted, timeout=5000)
    theme.choose(Scheme.LIGHT, 1.0)
    theme.choose(Scheme.DARK, 1.0)  # before the first was done
    hidden.show()
    theme.dress(top)
    assert (color(seen), color(hidden)) == (DARK.muted, DARK.muted)


def test_another_size_of_text_reaches_at_once_what_is_shown(
    qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest follows, and widgets that measure text are notified again once all of it has that size."""
    monkeypatch.setattr("app.gui.look.theme.AT_ONCE", 1)
    seen, hidden = label("Seen", "title"), label("Hidden", "title")
    top = QWidget()
    qtbot.addWidget(top)
    box = QVBoxLayout(top)
    for item in (seen, hidden):
        box.addWidget(item)
    top.show()
    hidden.hide()
    qtbot.waitUntil(lambda: not theme._repolish._timer.isActive())
    small, measured = hidden.sizeHint().height(), list[int]()

    def measure() -> None:
        measured.append(hidden.sizeHint().height())

    theme.changed.connect(measure)
    theme.choose(Scheme.LIGHT, 2.0)
    assert seen.sizeHint().height() > small
    qtbot.waitUntil(lambda: len(measured) == 2)
    assert measured[-1] == seen.sizeHint().height()
    theme.changed.disconnect(measure)


def test_a_page_that_comes_to_the_front_has_the_look_of_now(qtbot: QtBot, away: Desk) -> None:
    theme = away.services.theme
    window = window_over(qtbot, away.services, navigation.ACTIVITY)
    window.go(navigation.COMPUTER)
    title = window.page(navigation.ACTIVITY).title
    theme.choose(Scheme.DARK, 1.0)
    assert color(title) == LIGHT.text
    window.go(navigation.ACTIVITY)
    assert color(title) == DARK.text
    theme.choose(Scheme.LIGHT, 1.0)


def test_a_picture_that_nobody_sees_is_painted_once_it_is_shown(qtbot: QtBot, theme: Theme) -> None:
    button = IconButton(theme, "close", "Close")
    qtbot.addWidget(button)
    before = button.icon().cacheKey()
    theme.choose(Scheme.DARK, 1.0)
    assert button.icon().cacheKey() == before
    button.show()
    dark = button.icon().cacheKey()
    assert dark != before
    theme.choose(Scheme.LIGHT, 1.0)
    assert button.icon().cacheKey() == before


@pytest.mark.long
def test_a_page_keeps_nothing_of_what_is_gone(qtbot: QtBot, theme: Theme) -> None:
    """Messages come and go on it; the parts that Qt itself made for them must go too."""
    page = QWidget()
    qtbot.addWidget(page)
    page.show()
    before = n_gone()
    message = QTextBrowser(page)
    message.show()
    theme.choose(Scheme.DARK, 1.0)
    page.hide()
    theme.choose(Scheme.LIGHT, 1.0)  # now it waits
    page.show()
    theme.dress(page)
    message.deleteLater()
    del message
    qtbot.waitUntil(lambda: not page.children())
    qtbot.waitUntil(lambda: n_gone() <= before)  # what others left may go meanwhile, and late


def n_gone() -> int:
    """Objects of Python's for those of Qt's that are no more."""
    gc.collect()
    return sum(isinstance(child, QObject) and not isValid(child) for child in gc.get_objects())


@pytest.mark.long
def test_closed_windows_may_be_swept_while_all_are_listed() -> None:
    """The script runs in its own process, which crashes without that care."""
    done = subprocess.run([sys.executable, "-c", SWEPT], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
