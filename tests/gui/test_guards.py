"""Guards of the window: a Qt that keeps its references, only the allowed Qt, one place for colors and sizes."""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import QApplication, QLineEdit
from shiboken6 import Shiboken

from app.gui.look.theme import SHEET
from scripts.endurance.process_figures import own_memory

PROJECT = Path(__file__).resolve().parents[2]
WINDOW = PROJECT / "app" / "gui"
ALLOWED = {
    "QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg", "QtDBus", "QtPrintSupport",
}  # fmt: skip
CALLS, EMITS = 10_000, 2_000
SOME, MANY = 100, 2_000
FUNCTIONS = 40  # of Qt's that an object may be asked for
LEFT_BYTES = 500  # of an object that is gone, at most; one that stays takes ten thousand
STRAY = 20  # references that anything else in the process may take meanwhile

COLOR = re.compile(r"(?<![\w&])#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
PIXELS = re.compile(r"\b\d+ ?px\b")
SIZING = {
    "setFixedSize", "setFixedWidth", "setFixedHeight", "setMinimumSize", "setMinimumWidth",
    "setMinimumHeight", "setMaximumSize", "setMaximumWidth", "setMaximumHeight", "setSpacing",
    "setContentsMargins", "addSpacing", "setPixelSize", "setPointSize", "setPointSizeF",
}  # fmt: skip
SMALL = 2  # a hairline or a focus ring is no size of the layout


class Speaker(QObject):
    """Emits nothing, and true."""

    nothing = Signal()
    told = Signal(bool)


def references() -> tuple[int, int]:
    return sys.getrefcount(None), sys.getrefcount(True)


def test_qt_loses_no_reference_to_none_or_true(qapp: QApplication) -> None:
    """6.12 of PySide lost one each time, and ended the process within seconds."""
    speaker = Speaker()
    heard: list[bool] = []
    speaker.nothing.connect(lambda: None)
    speaker.told.connect(heard.append)
    before = references()
    for _ in range(CALLS):
        speaker.setObjectName("again")
    for _ in range(EMITS):
        speaker.nothing.emit()
        speaker.told.emit(True)
    assert len(heard) == EMITS
    heard.clear()
    assert [abs(now - was) < STRAY for now, was in zip(references(), before, strict=True)] == [
        True, True,
    ]  # fmt: skip


def test_what_is_left_of_a_gone_object_is_a_count_of_none_and_no_memory(qapp: QApplication) -> None:
    """PySide takes a reference to None when an object is first asked for a function that Python has not
    overridden, and keeps it: a window that makes and drops widgets counts up, and that is all."""
    made_and_gone(qapp, SOME)  # what is taken once
    before, memory, wrappers = references(), own_memory(psutil.Process()), n_wrappers()
    made_and_gone(qapp, MANY)
    risen = references()[0] - before[0]
    assert -STRAY < risen < MANY * FUNCTIONS
    assert abs(references()[1] - before[1]) < STRAY
    assert n_wrappers() <= wrappers  # what other tests left may go meanwhile
    assert own_memory(psutil.Process()) - memory < MANY * LEFT_BYTES


def made_and_gone(qapp: QApplication, number: int) -> None:
    heard: list[str] = []
    parent = QLineEdit()
    for _ in range(number):
        child = QLineEdit("x", parent)
        child.textChanged.connect(heard.append)
        child.setText("y")
        child.deleteLater()
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()


def n_wrappers() -> int:
    return len(Shiboken.getAllValidWrappers())


def sources(*roots: Path) -> Iterator[tuple[str, ast.Module]]:
    for root in roots:
        for file in sorted(root.rglob("*.py")):
            yield str(file.relative_to(PROJECT)), ast.parse(file.read_text("utf-8"))


def qt_modules(tree: ast.Module) -> set[str]:
    """Return the parts of Qt that a file imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("PySide6"):
            parts = (node.module or "").split(".")[1:]
            names |= set(parts[:1]) if parts else {name.name for name in node.names}
        elif isinstance(node, ast.Import):
            named = [name.name.split(".") for name in node.names]
            names |= {parts[1] for parts in named if parts[0] == "PySide6" and len(parts) > 1}
    return names


def test_only_the_allowed_parts_of_qt_are_used() -> None:
    odd = {name: extra for name, tree in sources(WINDOW) if (extra := qt_modules(tree) - ALLOWED)}
    assert not odd
    tests = {
        name: extra for name, tree in sources(PROJECT / "tests") if (extra := qt_modules(tree) - ALLOWED - {"QtTest"})
    }
    assert not tests


def test_nothing_is_looked_for_below_what_stays() -> None:
    """PySide ties what `findChildren` finds to the object that was asked: shells of widgets that are gone stay as
    long as that one does. A message goes with its parts."""
    asking = {
        Path(name).name
        for name, tree in sources(WINDOW)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "findChildren"
    }
    assert asking == {"conversation.py", "language.py"}


def docstrings(tree: ast.Module) -> set[int]:
    """Strings that nobody sees on a screen."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def colors_and_sizes(tree: ast.Module) -> list[str]:
    """The colors, the pixels in style sheets and the numeric sizes of a file: they belong in theme.py and sizes.py."""
    values = docstrings(tree)
    return [
        f"{node.lineno}: {ast.unparse(node)[:60]}"
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and id(node) not in values and is_of_the_theme(node)
    ]


def is_of_the_theme(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return bool(COLOR.search(text) or PIXELS.search(text))
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in SIZING:
            return any(map(is_size, args))
        case ast.Call(func=ast.Name(id="QColor"), args=args):
            return any(isinstance(argument, ast.Constant) for argument in args)
        case ast.Attribute(value=ast.Attribute(attr="GlobalColor"), attr=name):
            return name != "transparent"
    return False


def is_size(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > SMALL


def test_colors_and_sizes_stand_in_the_theme_only() -> None:
    """An exported chat is a document of its own, on paper or in a browser, and cameras need black on white."""
    names = [
        f"{name}:{colors_and_size}"
        for name, tree in sources(WINDOW)
        if Path(name).name not in ("theme.py", "sizes.py", "documents.py", "qr_code.py")
        for colors_and_size in colors_and_sizes(tree)
    ]
    assert not names, "\n".join(names)


def test_the_style_sheet_takes_its_colors_and_sizes_from_the_theme() -> None:
    sheet = re.sub(r"/\*.*?\*/", "", SHEET.read_text("utf-8"), flags=re.DOTALL)
    assert not [*COLOR.findall(sheet), *PIXELS.findall(sheet)]


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("x = '#ff0000'", True),
        ("x = 'color: #fff'", True),
        ("'''A docstring: #ff0000.'''", False),
        ("x = 'owner/name#123'", False),
        ("x = '&#128;'", False),
        ("x = 'width: 12px'", True),
        ("w.setFixedWidth(200)", True),
        ("w.setFixedWidth(theme.px(sizes.XL))", False),
        ("w.setContentsMargins(0, 0, 0, 0)", False),
        ("QColor(1, 2, 3)", True),
        ("QColor(token)", False),
        ("Qt.GlobalColor.red", True),
        ("Qt.GlobalColor.transparent", False),
    ],
)
def test_the_guard_sees(source: str, is_found: bool) -> None:
    assert bool(colors_and_sizes(ast.parse(source))) is is_found


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("from PySide6.QtCharts import QChart", {"QtCharts"}),
        ("from PySide6 import QtQml", {"QtQml"}),
        ("import PySide6.QtWebEngineCore", {"QtWebEngineCore"}),
        ("import os", set()),
    ],
)
def test_imports_are_seen(source: str, modules: set[str]) -> None:
    assert qt_modules(ast.parse(source)) == modules


def test_every_dialog_is_one_that_stays_on_its_screen() -> None:
    own = WINDOW / "widgets" / "dialog.py"
    qt = re.compile(r"\((?:Qt\w*\.)?QDialog\b|\bQ(?:MessageBox|InputDialog)\b")
    paths = [file for file in WINDOW.rglob("*.py") if qt.search(file.read_text("utf-8"))]
    assert paths == [own]


def test_every_box_to_choose_from_is_ours() -> None:
    own = WINDOW / "widgets" / "fields.py"
    qt = re.compile(r"\bQComboBox\b(?:\(\)|\):)")
    paths = [file for file in WINDOW.rglob("*.py") if qt.search(file.read_text("utf-8"))]
    assert paths == [own]
