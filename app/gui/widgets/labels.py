"""Labels for single lines, paragraphs and values. Their text is never interpreted as HTML."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QObject, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QLayout, QSizePolicy, QWidget

from app.gui.look.theme import Theme, set_role


class _Width(QObject):
    """An observer that scales the width of a widget with the text size."""

    def __init__(self, widget: QWidget, theme: Theme, size: int, *, fixed: bool) -> None:
        super().__init__(widget)
        self._widget, self._theme, self._size, self._fixed = widget, theme, size, fixed
        theme.changed.connect(self._set)
        self._set()

    def _set(self) -> None:
        wide = self._theme.px(self._size)
        if self._fixed:
            self._widget.setFixedWidth(wide)
        else:
            self._widget.setMaximumWidth(wide)


def keep_width(theme: Theme, widget: QWidget, size: int) -> None:
    """Set a fixed width, which is `size` pixels at 100 % text size and scales with the text size."""
    _Width(widget, theme, size, fixed=True)


def bound_width(theme: Theme, widget: QWidget, size: int) -> None:
    """Set a maximum width, which is `size` pixels at 100 % text size and scales with the text size."""
    _Width(widget, theme, size, fixed=False)


class FullHeightFrame(QFrame):
    """A frame whose minimum height fits its content at the current width. Splitters ignore height-for-width layouts."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        box, hint = self.shown_layout(), super().minimumSizeHint()
        if box is None or not box.hasHeightForWidth():
            return hint
        return QSize(hint.width(), box.minimumHeightForWidth(self.width()))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def shown_layout(self) -> QLayout | None:
        """Return the layout of the visible content."""
        return self.layout()


def show_if(widget: QWidget, visible: bool) -> None:
    """Hide a widget, or show it again if it was hidden.

    A widget that was never hidden appears with its parent. Showing it explicitly would make Qt polish and measure
    it immediately, even on an unfinished page, and again whenever the page gets another parent.
    """
    if not visible or widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide):
        widget.setVisible(visible)


# Pixels above a line for the dots of Ä, Ö and Ü, which exceed the stated height of some fonts.
DOTS, SMALL_DOTS = 1, 2
LEAST_CHARACTERS = 6  # minimum number of characters of an elided text
SPARE = 4  # pixels, without which Qt would wrap a line that fits


def label(text: str = "", role: str = "", parent: QWidget | None = None) -> QLabel:
    """Return a label for a single line of plain text. HTML in the text is not interpreted."""
    return _dressed(QLabel(text, parent), role)


def _dressed(made: QLabel, role: str) -> QLabel:
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setContentsMargins(0, SMALL_DOTS if role == "caption" else DOTS, 0, 0)
    if role:
        set_role(made, role)
    return made


def paragraph(text: str = "", role: str = "", parent: QWidget | None = None) -> QLabel:
    """Return a label with plain text that wraps and can be selected."""
    made = _dressed(_Paragraph(text, parent), role)
    made.setWordWrap(True)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
    return made


class _Paragraph(QLabel):
    """A label that redraws the umlaut dots on its first line, which Qt cuts off in selectable text."""

    _needs: tuple[tuple[str, int, str], int] = (("", 0, ""), 0)

    def _needed(self) -> int:
        """Return the height of the text. It is cached, because computing it makes Qt repaint the label."""
        key = (self.text(), self.width(), self.font().key())
        if self._needs[0] != key:
            self._needs = (key, self.heightForWidth(self.width()))
        return self._needs[1]

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        super().paintEvent(event)
        if self.textFormat() is not Qt.TextFormat.PlainText or not self.text():
            return
        room = self.contentsRect()
        above = self.height() - room.height()
        spare = room.height() - (self._needed() - above)
        if self.alignment() & Qt.AlignmentFlag.AlignVCenter:
            room.setTop(room.top() + max(spare, 0) // 2)
        painter = QPainter(self)
        painter.setClipRect(QRect(room.left(), room.top() - SMALL_DOTS, room.width(), SMALL_DOTS))
        start = Qt.AlignmentFlag.AlignTop | self.alignment() & Qt.AlignmentFlag.AlignHorizontal_Mask
        flags = start.value | Qt.TextFlag.TextWordWrap.value
        role, shown = self.foregroundRole(), self.text()
        self.style().drawItemText(painter, room, flags, self.palette(), self.isEnabled(), shown, role)
        painter.end()


def lines(text: str, metrics: QFontMetrics, room: int) -> list[str]:
    """Break text into lines at most `room` pixels wide. A single long word may be wider."""
    rows = [""]
    for word in text.split():
        longer = f"{rows[-1]} {word}".strip()
        if rows[-1] and metrics.horizontalAdvance(longer) > room:
            rows.append(word)
        else:
            rows[-1] = longer
    return rows


def tooltip(*lines: str) -> str:
    """Return lines of untrusted text as an HTML tooltip.

    The explicit HTML element keeps Qt from guessing the format: it would treat text in which only an apostrophe is
    escaped as plain text.
    """
    text = "<br>".join(escape(line, quote=False) for line in lines if line)
    return f"<span>{text}</span>" if text else ""


class ValueLabel(QLabel):
    """A label for a value, which wraps only if it does not fit on one line."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        _dressed(self, "muted").setWordWrap(True)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """Return the size of a single line, plus a few pixels because Qt would wrap a line that fits exactly.

        Qt's own size hint assumes several lines.
        """
        wide = self.fontMetrics().horizontalAdvance(self.text()) + SPARE
        return QSize(wide, self.heightForWidth(wide))


class ElidedLabel(QLabel):
    """A line of text that is elided with … if it is too long. The tooltip then shows the full text."""

    def __init__(self, text: str = "", role: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _dressed(self, role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._whole = ""
        self.say(text)

    def say(self, text: str) -> None:
        """Replace the text."""
        self._whole = text
        self.setAccessibleName(text)
        self._fit()

    def whole(self) -> str:
        return self._whole

    def _room(self) -> int:
        """Return the width available for the text."""
        return self.width()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        line = " ".join(self._whole.split())
        shown = self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, self._room())
        if shown != self.text():
            self.setText(shown)
        self.setToolTip(tooltip(self._whole) if shown != line else "")


class Chip(ElidedLabel):
    """A small label that is as wide as its text, or elided if there is less space."""

    def __init__(self, text: str, role: str = "chip", parent: QWidget | None = None) -> None:
        super().__init__(text, role, parent)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        wide = self.fontMetrics().horizontalAdvance(" ".join(self._whole.split()))
        return QSize(wide + SPARE + self._edges(), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        least = LEAST_CHARACTERS * self.fontMetrics().averageCharWidth() + self._edges()
        hint = self.sizeHint()
        return QSize(min(least, hint.width()), hint.height())

    def _room(self) -> int:
        return self.width() - self._edges()

    def _edges(self) -> int:
        """Return the width that the style adds on both sides of the text."""
        return QLabel.sizeHint(self).width() - self.fontMetrics().horizontalAdvance(self.text())
