"""Paints a line of the list: the title, a pin, and under a search's finding the words around it."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.gui.chat.list.chat_list_model import ROW_ROLE
from app.gui.chat.list.chat_list_rows import Line
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.theme import Theme

Index = QModelIndex | QPersistentModelIndex


class ChatListDelegate(QStyledItemDelegate):
    """Titles are elided, never cut; all text is plain."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        row = index.data(ROW_ROLE)
        high = self._theme.px(sizes.CONTROL_HEIGHT)
        if isinstance(row, Line) and row.excerpt:
            high += QFontMetrics(self._theme.font(sizes.CAPTION)).height() + self._theme.px(
                sizes.XS
            )
        return QSize(super().sizeHint(option, index).width(), high)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ROW_ROLE)
        if not isinstance(row, Line):
            super().paint(painter, option, index)
            return
        own = QStyleOptionViewItem(option)
        self.initStyleOption(own, index)
        title, own.text = own.text, ""
        own.widget.style().drawControl(
            QStyle.ControlElement.CE_ItemViewItem, own, painter, own.widget
        )
        gap = self._theme.px(sizes.S)
        room: QRect = own.rect.adjusted(gap, 0, -gap, 0)
        painter.save()
        if row.heading.pinned:
            room = self._pin(painter, room)
        self._write(painter, room, title, row.excerpt)
        painter.restore()

    def _pin(self, painter: QPainter, room: QRect) -> QRect:
        """A pin at the right; the room that is left of it."""
        side = self._theme.px(sizes.L)
        picture = icon("pin", self._theme.colours.muted).pixmap(side, side)
        painter.drawPixmap(room.right() - side, room.center().y() - side // 2, picture)
        return room.adjusted(0, 0, -side - self._theme.px(sizes.XS), 0)

    def _write(self, painter: QPainter, room: QRect, title: str, excerpt: str) -> None:
        right = Qt.TextElideMode.ElideRight
        align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        font, small = self._theme.font(), self._theme.font(sizes.CAPTION)
        if excerpt:
            high, low = QFontMetrics(font).height(), QFontMetrics(small).height()
            top = room.top() + (room.height() - high - low) // 2
            under = QRect(room.left(), top + high, room.width(), low)
            room = QRect(room.left(), top, room.width(), high)
            painter.setFont(small)
            painter.setPen(self._theme.colour("muted"))
            words = QFontMetrics(small).elidedText(excerpt, right, under.width())
            painter.drawText(under, align, words)
        painter.setFont(font)
        painter.setPen(self._theme.colour("text"))
        painter.drawText(room, align, QFontMetrics(font).elidedText(title, right, room.width()))
