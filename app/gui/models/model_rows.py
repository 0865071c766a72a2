"""The rows of the model list, with their Qt model, painter and hover effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEasingCurve,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    QVariantAnimation,
)
from PySide6.QtGui import QFont, QFontMetrics, QHoverEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.motion import may_move
from app.gui.look.theme import HOVER_MS, Theme
from app.gui.models.model_item import ModelItem, details_line
from app.gui.models.verdicts import Judgment, short
from app.gui.models.verdicts import speed as forecast

Index = QModelIndex | QPersistentModelIndex
HOVER_MOVES = (QEvent.Type.HoverEnter, QEvent.Type.HoverMove)
ITEM_ROLE = Qt.ItemDataRole.UserRole + 1  # Row
NOTHING = QModelIndex()
LINE_HEIGHT, HEADING_HEIGHT = sizes.CONTROL_HEIGHT + sizes.L, sizes.CONTROL_HEIGHT
BADGES_HEIGHT = sizes.XL  # in addition to LINE_HEIGHT, if a model has badges
ELIDE = Qt.TextElideMode.ElideRight
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the list, which is either a heading or a model with all data shown for it."""

    heading: str = ""
    item: ModelItem | None = None
    judgment: Judgment | None = None
    mark: str = ""  # a short highlighted text, such as "Loaded"
    badges: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The text that a screen reader reads for this row."""
        if self.item is None:
            return self.heading
        verdict, speed = (short(self.judgment), forecast(self.judgment)) if self.judgment else ("", "")
        parts = (self.item.title, details_line(self.item), verdict, speed, *self.badges, self.mark)
        return ", ".join(part for part in parts if part)


class Rows(QAbstractListModel):
    """The Qt model of the list."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []

    def rowCount(self, parent: Index = NOTHING) -> int:  # noqa: N802  Qt's name
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self._rows[index.row()]
        if role == ITEM_ROLE:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.item.title if row.item else row.heading
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return row.sentence
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if self._rows[index.row()].item is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def show(self, rows: list[Row]) -> None:
        """Replace the rows. If the entries and their order are the same, only changed rows are repainted."""
        if _lines(rows) == _lines(self._rows):
            changed = [n for n, row in enumerate(rows) if row != self._rows[n]]
            self._rows = rows
            if changed:
                self.dataChanged.emit(self.index(changed[0]), self.index(changed[-1]))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, index: Index) -> Row:
        return self._rows[index.row()]

    def place(self, key: str) -> QModelIndex:
        """Return the index of a model, or an invalid index if it is not listed."""
        for n, row in enumerate(self._rows):
            if row.item is not None and row.item.key == key:
                return self.index(n)
        return QModelIndex()


def _lines(rows: list[Row]) -> list[str]:
    return [row.item.key if row.item else row.heading for row in rows]


class RowPainter(QStyledItemDelegate):
    """A delegate that paints headings and models. A model has two lines, with the verdict on the right."""

    def __init__(self, theme: Theme, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._theme, self._hover = theme, RowHover(view)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        row: Row = index.data(ITEM_ROLE)
        height = LINE_HEIGHT + (BADGES_HEIGHT if row.badges else 0) if row.item else HEADING_HEIGHT
        return QSize(0, self._theme.px(height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: Row = index.data(ITEM_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRect(option.rect)
        if row.item is None:
            self._heading(painter, rect, row)
        else:
            is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
            self._ground(painter, rect, is_chosen, self._hover.share(index))
            below = self._theme.px(BADGES_HEIGHT) if row.badges else 0
            self._line(painter, rect.adjusted(0, 0, 0, -below), row)
            if row.badges:
                self._badges(painter, rect.adjusted(0, rect.height() - below, 0, 0), row)
        painter.restore()

    def _heading(self, painter: QPainter, rect: QRect, row: Row) -> None:
        painter.setFont(self._theme.font(sizes.CAPTION, bold=True))
        painter.setPen(self._theme.color("muted"))
        inner = rect.adjusted(self._theme.px(sizes.M), self._theme.px(sizes.S), 0, 0)
        painter.drawText(inner, LEFT, row.heading)

    def _ground(self, painter: QPainter, rect: QRect, is_chosen: bool, hovered: float) -> None:
        color = self._theme.color("selected" if is_chosen else "window")
        if not is_chosen:
            color.setAlphaF(hovered)
        if is_chosen or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            gap = self._theme.px(sizes.XS)
            radius = self._theme.px(sizes.CONTROL_RADIUS)
            painter.drawRoundedRect(rect.adjusted(gap, 0, -gap, 0), radius, radius)

    def _line(self, painter: QPainter, rect: QRect, row: Row) -> None:
        px = self._theme.px
        inner = rect.adjusted(px(sizes.M), px(sizes.S), -px(sizes.M), -px(sizes.S))
        half = inner.height() // 2
        top = QRect(inner.left(), inner.top(), inner.width(), half)
        below = top.translated(0, half)
        assert row.item is not None
        gap = px(sizes.S)
        extra = self._extra(painter, below, row)
        small = below.adjusted(0, 0, -extra - (gap if extra else 0), 0)
        beside = self._width(row.item.title, sizes.BODY) + gap + self._needed(row) <= top.width()
        verdict = self._verdict(painter, top if beside else small, row) + gap
        if not beside:  # the name takes precedence over the verdict
            verdict, small = 0, small.adjusted(0, 0, -verdict, 0)
        self._text(painter, top.adjusted(0, 0, -verdict, 0), row.item.title, "text")
        self._text(painter, small, details_line(row.item), "muted", sizes.CAPTION)

    def _needed(self, row: Row) -> int:
        """Return the width required by the verdict."""
        if row.judgment is None:
            return 0
        px = self._theme.px
        return self._width(short(row.judgment), sizes.CAPTION) + px(sizes.SECTION) + px(sizes.XS)

    def _verdict(self, painter: QPainter, room: QRect, row: Row) -> int:
        """Paint the verdict and return the width used."""
        if row.judgment is None:
            return 0
        words, side = short(row.judgment), self._theme.px(sizes.SECTION)
        used = self._text(painter, room, words, row.judgment.color, sizes.CAPTION, right=True)
        place = QRect(room.right() - used - side - self._theme.px(sizes.XS), 0, side, side)
        place.moveTop(room.center().y() - side // 2)
        color = getattr(self._theme.colors, row.judgment.color)
        icon(row.judgment.icon, color).paint(painter, place)
        return used + side + self._theme.px(sizes.XS)

    def _extra(self, painter: QPainter, room: QRect, row: Row) -> int:
        """Paint the mark, or the forecast speed if there is no mark. Return the width used."""
        words = row.mark or (forecast(row.judgment) if row.judgment is not None else "")
        color = "accent" if row.mark else "muted"
        return self._text(painter, room, words, color, sizes.CAPTION, right=True)

    def _badges(self, painter: QPainter, room: QRect, row: Row) -> None:
        """Paint as many badges as fit. A marked model also shows its forecast speed here."""
        px = self._theme.px
        inner = room.adjusted(px(sizes.M), 0, -px(sizes.M), -px(sizes.S))
        if row.mark and row.judgment is not None and (words := forecast(row.judgment)):
            used = self._text(painter, inner, words, "muted", sizes.CAPTION, right=True)
            inner.adjust(0, 0, -used - px(sizes.S), 0)
        left = inner.left()
        for words in row.badges:
            width = self._width(words, sizes.CAPTION) + 2 * px(sizes.S)
            if left + width > inner.right():
                return
            place = QRect(left, inner.top(), width, inner.height())
            painter.setPen(self._theme.color("border"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(place, inner.height() / 2, inner.height() / 2)
            self._text(painter, place.adjusted(px(sizes.S), 0, 0, 0), words, "muted", sizes.CAPTION)
            left += width + px(sizes.XS)

    def _text(
        self, painter: QPainter, room: QRect, words: str, color: str, size: int = sizes.BODY, *, right: bool = False
    ) -> int:
        """Paint a line of text and return the width used."""
        shown = self._shown(words, size, room)
        painter.setFont(self._font(size))
        painter.setPen(self._theme.color(color))
        painter.drawText(room, RIGHT if right else LEFT, shown)
        return self._width(shown, size)

    def _font(self, size: int) -> QFont:
        return self._theme.font(size, bold=size == sizes.BODY)

    def _width(self, words: str, size: int) -> int:
        return QFontMetrics(self._font(size)).horizontalAdvance(" ".join(words.split()))

    def _shown(self, words: str, size: int, room: QRect) -> str:
        """Return the text, elided to fit the available width."""
        line = " ".join(words.split())
        return QFontMetrics(self._font(size)).elidedText(line, ELIDE, max(0, room.width()))


class RowHover(QObject):
    """The hover effect of rows, which fades in and out within HOVER_MS."""

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._view = view
        self._over, self._left = QPersistentModelIndex(), QPersistentModelIndex()
        self._left_at = 0.0  # strength of the effect at the moment the pointer left the row
        self._fade = QVariantAnimation(self)
        self._fade.setDuration(HOVER_MS)
        self._fade.setStartValue(0.0)
        self._fade.setEndValue(1.0)
        self._fade.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._fade.valueChanged.connect(lambda _: self._paint())
        view.entered.connect(self._point)  # also emitted when rows scroll under a resting pointer
        view.viewport().installEventFilter(self)

    def share(self, index: Index) -> float:
        """Return the strength of a row's hover effect, from 0 to 1."""
        done = float(self._fade.currentValue() or 0)
        if self._over == index:
            return done
        return (1 - done) * self._left_at if self._left == index else 0.0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() in HOVER_MOVES and isinstance(event, QHoverEvent):
            self._point(self._view.indexAt(event.position().toPoint()))
        elif event.type() == QEvent.Type.HoverLeave:
            self._point(QModelIndex())
        return False

    def _point(self, index: QModelIndex) -> None:
        if self._over == index:
            return
        self._left_at = self.share(self._over)
        self._left, self._over = self._over, QPersistentModelIndex(index)
        self._fade.stop()
        self._fade.start()
        if not may_move():
            self._fade.setCurrentTime(HOVER_MS)
        self._paint()

    def _paint(self) -> None:
        model = self._view.model()
        for row in (self._left, self._over):
            if row.isValid():
                self._view.update(model.index(row.row(), row.column(), row.parent()))
