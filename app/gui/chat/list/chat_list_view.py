"""The tree view of the chats. When rows are replaced, it preserves the selection and the expanded folders."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTreeView, QWidget

from app.core.chat import ChatId, Heading
from app.gui.chat.history.history import History
from app.gui.chat.list.chat_list_model import ROW_ROLE, ChatListModel, ChatRow, FolderRow, Row
from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.motion import may_move
from app.gui.look.theme import Theme, set_role

Index = QModelIndex | QPersistentModelIndex


class ChatListDelegate(QStyledItemDelegate):
    """A delegate that paints the row of a chat, with its title, its pin and the excerpt of a search result."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        row = index.data(ROW_ROLE)
        high = self._theme.px(sizes.CONTROL_HEIGHT)
        if isinstance(row, ChatRow) and row.excerpt:
            high += QFontMetrics(self._theme.font(sizes.CAPTION)).height() + self._theme.px(sizes.XS)
        return QSize(super().sizeHint(option, index).width(), high)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ROW_ROLE)
        if not isinstance(row, ChatRow):
            super().paint(painter, option, index)
            return
        own = QStyleOptionViewItem(option)
        self.initStyleOption(own, index)
        title, own.text = own.text, ""
        own.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, own, painter, own.widget)
        gap = self._theme.px(sizes.S)
        room: QRect = own.rect.adjusted(gap, 0, -gap, 0)
        painter.save()
        if row.heading.pinned:
            room = self._pin(painter, room)
        self._write(painter, room, title, row.excerpt)
        painter.restore()

    def _pin(self, painter: QPainter, room: QRect) -> QRect:
        """Paint the pin at the right edge. Return the remaining space."""
        side = self._theme.px(sizes.L)
        picture = icon("pin", self._theme.colors.muted).pixmap(side, side)
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
            painter.setPen(self._theme.color("muted"))
            words = QFontMetrics(small).elidedText(excerpt, right, under.width())
            painter.drawText(under, align, words)
        painter.setFont(font)
        painter.setPen(self._theme.color("text"))
        painter.drawText(room, align, QFontMetrics(font).elidedText(title, right, room.width()))


class ChatListView(QTreeView):
    """The tree view of the chats. `picked(row)` is emitted when the user clicks a chat or presses Enter on it."""

    picked = Signal(object)
    folded = Signal()

    def __init__(self, theme: Theme, history: History, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.closed: set[str] = set()  # names of collapsed folders
        self._archive_open = False
        self._whole, self._marking = True, False
        self._theme = theme
        self._rows_model = ChatListModel(history, theme, self)
        self.setModel(self._rows_model)
        self.setItemDelegate(ChatListDelegate(theme, self))
        set_role(self, "plain")
        self.setAccessibleName(self.tr("Chats"))
        self.setHeaderHidden(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setDropIndicatorShown(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setExpandsOnDoubleClick(False)
        self.clicked.connect(self._pick)
        self.expanded.connect(lambda index: self._fold(index, open_now=True))
        self.collapsed.connect(lambda index: self._fold(index, open_now=False))
        theme.changed.connect(self._paint)
        self._paint()

    @property
    def rows(self) -> tuple[Row, ...]:
        return self._rows_model.rows

    @property
    def busy(self) -> bool:
        """Return whether the user is renaming an item or dragging a chat. Rows must not change during that time."""
        usual = (QAbstractItemView.State.NoState, QAbstractItemView.State.AnimatingState)
        return self.state() not in usual

    def show_rows(self, rows: tuple[Row, ...], *, whole: bool) -> None:
        """Replace the rows. `whole` is False for search results, which are not in folders."""
        if rows == self.rows and whole == self._whole:
            return
        chosen, here = [heading.id for heading in self.chosen()], self.verticalScrollBar().value()
        current = self._line_id(self.currentIndex())
        self._marking, self._whole = True, whole
        self.setAnimated(False)  # expand the folders without animation
        self.setUniformRowHeights(whole)
        self.setRootIsDecorated(whole and any(isinstance(row, FolderRow) for row in rows))
        self._rows_model.show(rows)
        for number, row in enumerate(rows):
            if isinstance(row, FolderRow):
                self.setExpanded(self._rows_model.index(number, 0), self._is_open(row))
        self._choose(chosen, current)
        self.verticalScrollBar().setValue(here)
        self._marking = False

    def mark(self, chat: ChatId | None) -> None:
        """Select only this chat, or nothing if it is None, without emitting a signal."""
        if chat is None:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        elif [heading.id for heading in self.chosen()] != [chat]:
            self._choose([chat], chat)

    def chosen(self) -> list[Heading]:
        """Return the selected chats in display order."""
        rows = [self._rows_model.row(index) for index in self.selectedIndexes()]
        return [row.heading for row in rows if isinstance(row, ChatRow)]

    def folder(self) -> str | None:
        """Return the name of the selected folder, or None if no folder or any chat is selected."""
        row = self._rows_model.row(self.currentIndex())
        chosen = bool(self.selectedIndexes()) and not self.chosen()
        return row.name if chosen and isinstance(row, FolderRow) else None

    def drawRow(  # noqa: N802  Qt's name
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint the background of a selected row with rounded corners, which the style does not support."""
        if self.selectionModel().isSelected(index):
            radius = self._theme.px(sizes.CONTROL_RADIUS)
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("selected"))
            painter.drawRoundedRect(option.rect, radius, radius)
            painter.restore()
        super().drawRow(painter, option, index)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and self.state() != QAbstractItemView.State.EditingState:
            self._pick(self.currentIndex())
            return
        self.setAnimated(may_move())
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        self.setAnimated(may_move())
        super().mousePressEvent(event)

    def _pick(self, index: QModelIndex) -> None:
        row = self._rows_model.row(index)
        if isinstance(row, FolderRow):
            self.setExpanded(index, not self.isExpanded(index))
        elif isinstance(row, ChatRow) and self.chosen() == [row.heading]:
            self.picked.emit(row)

    def _choose(self, chats: list[ChatId], current: ChatId | None) -> None:
        flag = QItemSelectionModel.SelectionFlag
        selection = self.selectionModel()
        selection.clearSelection()
        for chat in chats:
            index = self._rows_model.place(chat)
            if index.isValid():
                selection.select(index, flag.Select)
        if current is not None:
            index = self._rows_model.place(current)
            if index.isValid():
                selection.setCurrentIndex(index, flag.NoUpdate)

    def _line_id(self, index: QModelIndex) -> ChatId | None:
        row = self._rows_model.row(index)
        return row.heading.id if isinstance(row, ChatRow) else None

    def _is_open(self, folder: FolderRow) -> bool:
        return self._archive_open if folder.name is None else folder.name not in self.closed

    def _fold(self, index: QModelIndex, *, open_now: bool) -> None:
        row = self._rows_model.row(index)
        if self._marking or not isinstance(row, FolderRow):
            return
        if row.name is None:
            self._archive_open = open_now
        elif open_now:
            self.closed.discard(row.name)
            self.folded.emit()
        else:
            self.closed.add(row.name)
            self.folded.emit()

    def _paint(self) -> None:
        side = self._theme.px(sizes.L)
        self.setIndentation(self._theme.px(sizes.TITLE))
        self.setIconSize(QSize(side, side))
        self.scheduleDelayedItemsLayout()
