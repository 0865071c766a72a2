"""Labels: one line, a paragraph, a caption; foreign text is always plain."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QObject, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QLayout, QSizePolicy, QWidget

from app.gui.look.theme import Theme, set_role

# Widths that grow with the text, also when its size is changed while the widget is there.


class _Width(QObject):
    """Belongs to its widget, and ends with it."""

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
    """So wide at 100 % text, and in proportion at any other."""
    _Width(widget, theme, size, fixed=True)


def bound_width(theme: Theme, widget: QWidget, size: int) -> None:
    """At most so wide at 100 % text."""
    _Width(widget, theme, size, fixed=False)


# What is at least as high as its content at its width: Qt counts words and buttons that go on below as one line.


class Whole(QFrame):
    """For what stands in a splitter, which asks for no height at a width."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        box, hint = self.shown_layout(), super().minimumSizeHint()
        return hint if box is None else QSize(hint.width(), box.minimumHeightForWidth(self.width()))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def shown_layout(self) -> QLayout | None:
        """Of what is in it now."""
        return self.layout()


# Whether a widget is seen, chosen before anybody sees it.


def show_if(widget: QWidget, wanted: bool) -> None:
    """Hide it, or let it be seen with what holds it.

    Qt dresses and measures at once what is shown, also in a page that is still being made, and does so again each
    time that part finds its place: what nobody had hidden needs no showing.
    """
    if not wanted or widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide):
        widget.setVisible(wanted)


# Pixels above a line, for the dots of Ä, Ö and Ü: some fonts draw them above what they say of their height.
DOTS, SMALL_DOTS = 1, 2
LEAST_CHARACTERS = 6  # of a name that is shortened
SPARE = 4  # pixels: with fewer Qt wraps a line that would have fitted


def label(text: str = "", role: str = "", parent: QWidget | None = None) -> QLabel:
    """One line. Plain text: a machine's or model's name may look like HTML."""
    return _dressed(QLabel(text, parent), role)


def _dressed(made: QLabel, role: str) -> QLabel:
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setContentsMargins(0, SMALL_DOTS if role == "caption" else DOTS, 0, 0)
    if role:
        set_role(made, role)
    return made


def paragraph(text: str = "", role: str = "", parent: QWidget | None = None) -> QLabel:
    """Text that wraps and can be selected."""
    made = _dressed(_Paragraph(text, parent), role)
    made.setWordWrap(True)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
    return made


class _Paragraph(QLabel):
    """Qt clips text that can be selected at the top of its first line, and the dots above with it."""

    _needs: tuple[tuple[str, int, str], int] = (("", 0, ""), 0)

    def _needed(self) -> int:
        """The height of its words, asked once for each text, width and font: asking has Qt paint it again."""
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
    """Its words in lines of this many pixels, where a single word is not wider."""
    found = [""]
    for word in text.split():
        longer = f"{found[-1]} {word}".strip()
        if found[-1] and metrics.horizontalAdvance(longer) > room:
            found.append(word)
        else:
            found[-1] = longer
    return found


def tooltip(*lines: str) -> str:
    """Foreign text as a tooltip, which Qt would else take for HTML where it looks like it, and for plain text where
    only an apostrophe was written otherwise."""
    told = "<br>".join(escape(line, quote=False) for line in lines if line)
    return f"<span>{told}</span>" if told else ""


class Value(QLabel):
    """What something is now: in one line where that has room, else in as many as it needs."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        _dressed(self, "muted").setWordWrap(True)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """Of the whole line: Qt would make a block of it, and breaks one that has just its width."""
        wide = self.fontMetrics().horizontalAdvance(self.text()) + SPARE
        return QSize(wide, self.heightForWidth(wide))


class Elided(QLabel):
    """One line that ends in … where it is too long, with the whole text as its tooltip."""

    def __init__(self, text: str = "", role: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _dressed(self, role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._whole = ""
        self.say(text)

    def say(self, text: str) -> None:
        """Show another text."""
        self._whole = text
        self.setAccessibleName(text)
        self._fit()

    def whole(self) -> str:
        return self._whole

    def _room(self) -> int:
        """How wide the line may be."""
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


class Chip(Elided):
    """Something small with its name: as wide as that, and shortened where there is less room."""

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
        """What its style puts around the words."""
        return QLabel.sizeHint(self).width() - self.fontMetrics().horizontalAdvance(self.text())
