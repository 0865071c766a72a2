"""The accessibility gate: every page of the real window by keyboard, screen reader and unsteady hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui.app import sidebar
from app.gui.app.window import Window
from app.gui.look.theme import Scheme
from app.gui.pool.machine_facts import machines_of
from testbed.snapshots import household, snapshot_of
from tests.gui import walk
from tests.gui.desk import Desk, window_over
from tests.gui.test_large_sheets import SHEETS
from tests.node.pool import TestNode

SETTLE_MS = 300  # for what a page asks of the node when it is first shown
NAMES = [entry.name for entry in sidebar.ENTRIES]


@pytest.fixture(scope="module")
def lived_in(lone: TestNode) -> TestNode:
    """A node that has answered once: lists are not empty."""
    ran = lone.run("ask", "What is a pool?", "--max-tokens", "12")
    assert ran.returncode == 0, ran.stderr
    return lone


@pytest.fixture
def window(qtbot: QtBot, lived_in: TestNode, at_lone: Desk) -> Iterator[Window]:
    """The real window over that node."""
    made = window_over(qtbot, at_lone.services)
    yield made
    made.hide()


def everywhere(
    qtbot: QtBot, window: Window, at_lone: Desk, name: str, look: Callable[[QWidget], list[str]]
) -> list[str]:
    """Return what `look` finds on a page, in its tabs, in both palettes."""
    result = []
    window.go(name)
    assert window.page(name).isVisible()
    qtbot.wait(SETTLE_MS)
    for scheme in (Scheme.LIGHT, Scheme.DARK):
        at_lone.services.theme.choose(scheme, 1.0)
        for tab in walk.tabs(window.page(name)):
            qtbot.wait(20)
            result += [f"{name} {tab} {scheme}: {label}" for label in look(window)]
    return result


@pytest.mark.many(keep=2)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_used_by_everybody(qtbot: QtBot, window: Window, at_lone: Desk, name: str) -> None:
    def look(root: QWidget) -> list[str]:
        return [
            *(f"no name: {name}" for name in walk.nameless(root)),
            *(f"no tooltip: {name}" for name in walk.unexplained(root)),
            *(f"too small: {name}" for name in walk.too_small(root)),
            *(f"wrong order: {name}" for name in walk.out_of_order(root, window.page(name))),
        ]

    names = everywhere(qtbot, window, at_lone, name, look)
    assert not names, "\n".join(names)


@pytest.mark.parametrize("name", SHEETS)
def test_so_can_a_dialog(qtbot: QtBot, away: Desk, name: str) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(1000, 700)
    sheet = SHEETS[name](away.services, machines_of(snapshot_of(household(3)))[1], window)
    sheet.show()
    qtbot.wait(20)
    names = [
        *(f"no name: {name}" for name in walk.nameless(sheet)),
        *(f"no tooltip: {name}" for name in walk.unexplained(sheet)),
        *(f"too small: {name}" for name in walk.too_small(sheet)),
        *(f"wrong order: {name}" for name in walk.out_of_order(sheet, sheet)),
    ]
    reached = walk.tab_chain(sheet, sheet)
    sheet.close()
    assert not names, "\n".join(names)
    assert reached


def test_tab_reaches_the_sidebar_first(window: Window, qtbot: QtBot) -> None:
    window.go(NAMES[0])
    assert window.page(NAMES[0]).isVisible()
    qtbot.wait(SETTLE_MS)
    chain = walk.tab_chain(window, window)
    assert walk.name_of(chain[0]) == sidebar.ENTRIES[0].title


def rectangle(left: int, top: int, wide: int = 100, high: int = 30) -> QRect:
    return QRect(left, top, wide, high)


@pytest.mark.parametrize(
    ("rect", "other", "back"),
    [
        (rectangle(0, 0), rectangle(110, 0), False),  # to the right
        (rectangle(110, 0), rectangle(0, 0), True),
        (rectangle(0, 0), rectangle(0, 40), False),  # down
        (rectangle(0, 40), rectangle(0, 0), True),
        (rectangle(300, 0), rectangle(0, 40), False),  # the next row
        (rectangle(0, 400), rectangle(200, 0), False),  # the next column
        (rectangle(0, 0), rectangle(110, 10, high=10), False),  # lower ones of a row
    ],
)
def test_what_goes_back(rect: QRect, other: QRect, back: bool) -> None:
    assert walk.goes_back(rect, other) is back
