"""Walks a window as keyboard, screen reader and eye do: what can get the focus, in which order, what is cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListWidget,
    QRubberBand,
    QScrollArea,
    QScrollBar,
    QTabBar,
    QToolButton,
    QWidget,
)

from app.gui.app.window import FadeIn
from app.gui.widgets.buttons import WrappingButton
from app.gui.widgets.labels import ElidedLabel

LEAST = 24  # pixels each way that a finger or an unsteady hand can hit
SLACK = 2
LAYERS = 8


def focusable(root: QWidget) -> list[QWidget]:
    """Return the controls that can be used now. Parts of a spin box or a table belong to it."""
    return [
        widget for widget in root.findChildren(QWidget) if widget.isVisible() and widget.isEnabled() and _is_own(widget)
    ]


def _is_own(widget: QWidget) -> bool:
    inner = widget.objectName().startswith("qt_") or isinstance(widget, QHeaderView)
    parent = widget.parent()
    inner = inner or isinstance(parent, QTabBar)
    inner = inner or (isinstance(parent, QAbstractScrollArea) and parent.viewport() is widget)
    return widget.focusPolicy() is not Qt.FocusPolicy.NoFocus and not inner


def described(widget: QWidget) -> str:
    """Return a description by which a person can find the widget in the code."""
    words = widget.property("text") or widget.objectName() or widget.toolTip()
    parents: list[str] = []
    parent = widget.parent()
    while parent is not None and len(parents) < 3:
        parents.append(type(parent).__name__)
        parent = parent.parent()
    return f"{type(widget).__name__} {words!r} in {' < '.join(parents)}"


def name_of(widget: QWidget) -> str:
    """Return the name that a screen reader reads."""
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name).strip()


def nameless(root: QWidget) -> list[str]:
    return [described(widget) for widget in focusable(root) if not name_of(widget)]


def unexplained(root: QWidget) -> list[str]:
    """Buttons with only a picture, and no tooltip."""
    return [
        described(widget)
        for widget in root.findChildren(QAbstractButton)
        if widget.isVisible()
        and not widget.icon().isNull()
        and not widget.toolTip()
        and (not widget.text() or _is_icon_only(widget))
        and not isinstance(widget.parent(), QLineEdit)  # a picture in the field
    ]


def _is_icon_only(button: QAbstractButton) -> bool:
    only = Qt.ToolButtonStyle.ToolButtonIconOnly
    return isinstance(button, QToolButton) and button.toolButtonStyle() is only


def too_small(root: QWidget) -> list[str]:
    """Return the controls that are too small to press. Selectable text is not a target."""
    return [
        f"{described(widget)}: {widget.width()} x {widget.height()}"
        for widget in focusable(root)
        if min(widget.width(), widget.height()) < LEAST and not isinstance(widget, QLabel)
    ]


def tab_chain(window: QWidget, root: QWidget) -> list[QWidget]:
    """Return the widgets of `root` that the Tab key reaches, in order."""
    usable = set(focusable(root))
    result, at = [], window.nextInFocusChain()
    while at is not None and at is not window:
        if at in usable and at.focusPolicy() & Qt.FocusPolicy.TabFocus:
            result.append(at)
        at = at.nextInFocusChain()
    return result


def out_of_order(window: QWidget, root: QWidget) -> list[str]:
    """Steps of the Tab key that go back: up and not to the right, or left in the same row."""
    chain = tab_chain(window, root)
    return [
        f"{described(earlier)} -> {described(other)}"
        for earlier, other in pairwise(chain)
        if goes_back(_place(earlier, window), _place(other, window))
    ]


def goes_back(rect: QRect, other: QRect) -> bool:
    """Return whether these two are read in the wrong order."""
    overlap = min(rect.bottom(), other.bottom()) - max(rect.top(), other.top())
    if overlap > min(rect.height(), other.height()) / 2:
        return other.right() <= rect.left()
    return other.bottom() <= rect.top() and other.left() <= rect.right()


def _place(widget: QWidget, window: QWidget) -> QRect:
    return QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())


def cut(root: QWidget) -> list[str]:
    """Texts that do not fit where they stand. What is elided has its tooltip."""
    for _ in range(LAYERS):  # a text that has just come is laid out, from the inside to the outside
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    return [*_cut_labels(root), *_cut_buttons(root), *_cut_pages(root)]


def _cut_labels(root: QWidget) -> Iterator[str]:
    for label in root.findChildren(QLabel):
        if not label.isVisible() or not label.text() or isinstance(label, ElidedLabel):
            continue
        if label.wordWrap():
            if label.heightForWidth(label.width()) > label.height() + SLACK:
                yield f"{described(label)} is too low"
        elif label.sizeHint().width() > label.width() + SLACK:
            yield f"{described(label)} is too narrow"


def _cut_buttons(root: QWidget) -> Iterator[str]:
    for button in root.findChildren(QAbstractButton):
        shown = button.isVisible() and button.text() and not isinstance(button.parent(), QTabBar)
        wraps = isinstance(button, WrappingButton)
        size = button.minimumSizeHint() if wraps else button.sizeHint()
        narrow = size.width() > button.width() + SLACK
        if shown and narrow and not _is_icon_only(button):
            yield f"{described(button)} is too narrow"
        if shown and wraps and button.heightForWidth(button.width()) > button.height() + SLACK:
            yield f"{described(button)} is too low"
    for bar in root.findChildren(QTabBar):
        wide = sum(bar.tabRect(at).width() for at in range(bar.count()))
        if bar.isVisible() and wide > bar.width() + SLACK:
            yield f"{described(bar)} is too narrow"


def _cut_pages(root: QWidget) -> Iterator[str]:
    off = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    for area in root.findChildren(QScrollArea):
        inner = area.widget()
        if not area.isVisible() or not inner or area.horizontalScrollBarPolicy() != off:
            continue
        if inner.minimumSizeHint().width() > area.viewport().width() + SLACK:
            yield f"{described(area)} is too narrow for {type(inner).__name__}"


def untidy(root: QWidget) -> list[str]:
    """All that the eye would find wrong: cut, sticking out, on one another."""
    return [*cut(root), *sticking_out(root), *overlapping(root)]


def sticking_out(root: QWidget) -> list[str]:
    """Return usable or readable widgets that are partly outside their parent. Those that can be scrolled to are
    inside."""
    return [
        f"{described(widget)}: {widget.geometry()} of {parent.rect()}"
        for widget in root.findChildren(QWidget)
        if _is_content(widget)
        and (parent := widget.parentWidget()) is not None
        and not isinstance(parent.parentWidget(), QAbstractScrollArea)
        and not parent.rect().adjusted(-SLACK, -SLACK, SLACK, SLACK).contains(widget.geometry())
    ]


def beyond(window: QWidget, screen: QRect) -> list[str]:
    """Buttons that cannot be pressed on this screen. What can be scrolled to can be."""
    return [
        described(button)
        for button in window.findChildren(QAbstractButton)
        if button.isVisible()
        and button.window() is window.window()
        and not _scrolls(button)
        and not screen.contains(QRect(button.mapToGlobal(QPoint(0, 0)), button.size()))
    ]


def _scrolls(widget: QWidget) -> bool:
    """Return whether a visible view around it can scroll to it."""
    parent = widget.parentWidget()
    while parent is not None and not parent.isWindow():
        if isinstance(parent, QAbstractScrollArea):
            return True
        parent = parent.parentWidget()
    return False


def overlapping(root: QWidget) -> list[str]:
    """Return the widgets that overlap their neighbors."""
    result = []
    for parent in (root, *root.findChildren(QWidget)):
        inside = [child for child in parent.children() if isinstance(child, QWidget) and _is_content(child)]
        for choice, other in combinations(inside, 2):
            common = choice.geometry().intersected(other.geometry())
            if min(common.width(), common.height()) > SLACK:
                result.append(f"{described(choice)} and {described(other)}: {common}")
    return result


def _is_content(widget: QWidget) -> bool:
    """Something that a person reads or presses, or a box of such things."""
    own = widget.isVisible() and not widget.isWindow() and not widget.objectName().startswith("qt_")
    whole = isinstance(widget.parentWidget(), QAbstractSpinBox | QComboBox | QLineEdit | QTabBar)
    return own and not whole and not isinstance(widget, FadeIn | QRubberBand | QScrollBar)


def parts(root: QWidget) -> Iterator[str]:
    """Each tab of the page in turn, else each line of its list of pages; once for a page with neither."""
    lists = [child for child in root.findChildren(QListWidget) if child.isVisible() and child.count() > 1]
    if not lists:
        yield from tabs(root)
    for at in range(lists[0].count() if lists else 0):
        lists[0].setCurrentRow(at)
        yield lists[0].item(at).text()


def tabs(root: QWidget) -> Iterator[str]:
    """Each tab of the page in turn; once for a page without tabs."""
    bars = [bar for bar in root.findChildren(QTabBar) if bar.isVisible() and bar.count() > 1]
    for at in range(bars[0].count() if bars else 1):
        if bars:
            bars[0].setCurrentIndex(at)
        yield bars[0].tabText(at) if bars else ""
