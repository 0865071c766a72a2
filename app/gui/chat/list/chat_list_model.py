"""A two-level Qt tree model of the chats, with in-place renaming and drag and drop into folders."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractItemModel,
    QByteArray,
    QDateTime,
    QLocale,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)

from app.core.chat import ChatId, Heading, MessageId
from app.gui.chat.history.history import History
from app.gui.chat.history.history_search import Hit
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme


@dataclass(frozen=True, slots=True)
class ChatRow:
    """The row of a chat. A search result also has an excerpt and the matching message."""

    heading: Heading
    excerpt: str = ""
    message: MessageId | None = None


@dataclass(frozen=True, slots=True)
class FolderRow:
    """The row of a folder, with the rows of its chats. The archive is a folder without a name."""

    name: str | None
    chats: tuple[ChatRow, ...]


Row = ChatRow | FolderRow


def rows(current: Sequence[Heading], archived: Sequence[Heading], folders: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows in display order: pinned chats, folders, other chats and the archive."""
    inside: dict[str, list[ChatRow]] = {name: [] for name in folders}
    pinned: list[ChatRow] = []
    loose: list[ChatRow] = []
    for heading in current:
        if heading.folder:
            inside.setdefault(heading.folder, []).append(ChatRow(heading))
        else:
            (pinned if heading.pinned else loose).append(ChatRow(heading))
    folder_rows = [FolderRow(name, tuple(chats)) for name, chats in inside.items()]
    archive = [FolderRow(None, tuple(map(ChatRow, archived)))] if archived else []
    return (*pinned, *folder_rows, *loose, *archive)


def search_rows(hits: Sequence[Hit]) -> tuple[Row, ...]:
    """Return search results as a flat list of rows."""
    return tuple(ChatRow(hit.heading, hit.excerpt, hit.message) for hit in hits)


Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = Qt.ItemDataRole.UserRole  # the ChatRow or FolderRow
MIME = "application/x-poolhouse-chats"
ROOT = QModelIndex()


class ChatListModel(QAbstractItemModel):
    """The tree model of the list. It passes the user's edits to the history, whose signals then update the rows."""

    def __init__(self, history: History, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history, self._theme = history, theme
        self._rows: tuple[Row, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return self._rows

    def show(self, rows: tuple[Row, ...]) -> None:
        """Replace all rows, which clears the selection of views."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, index: Index) -> Row | None:
        """Return the row at an index."""
        if not index.isValid():
            return None
        if index.internalId() == 0:
            return self._rows[index.row()]
        folder = self._rows[index.internalId() - 1]
        return folder.chats[index.row()] if isinstance(folder, FolderRow) else None

    def place(self, chat: ChatId) -> QModelIndex:
        """Return the index of a chat, or an invalid index if the chat is not in the list."""
        for number, row in enumerate(self._rows):
            if isinstance(row, ChatRow) and row.heading.id == chat:
                return self.createIndex(number, 0, 0)
            if isinstance(row, FolderRow):
                for place, inner in enumerate(row.chats):
                    if inner.heading.id == chat:
                        return self.createIndex(place, 0, number + 1)
        return QModelIndex()

    # Overrides of Qt's methods

    def index(self, row: int, column: int, parent: Index = ROOT) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, index: Index = ROOT) -> QModelIndex:  # type: ignore[override]
        if not index.isValid() or index.internalId() == 0:
            return QModelIndex()
        return self.createIndex(index.internalId() - 1, 0, 0)

    def rowCount(self, parent: Index = ROOT) -> int:  # noqa: N802
        if not parent.isValid():
            return len(self._rows)
        row = self.row(parent)
        return len(row.chats) if isinstance(row, FolderRow) else 0

    def columnCount(self, parent: Index = ROOT) -> int:  # noqa: N802
        return 1

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.row(index)
        if row is None:
            return None
        if role == ROW_ROLE:
            return row
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return self.words(row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._read_aloud(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tooltip(row)
        if role == Qt.ItemDataRole.DecorationRole and isinstance(row, FolderRow):
            picture = "archive" if row.name is None else "folder"
            return icon(picture, self._theme.colors.muted)
        return None

    def setData(  # noqa: N802
        self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole
    ) -> bool:
        """Rename a chat or folder."""
        row, name = self.row(index), str(value).strip()
        if row is None or name == self.words(row):
            return False
        if isinstance(row, ChatRow):
            self._history.rename(row.heading.id, name)
        elif row.name is not None:
            self._history.rename_folder(row.name, name)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        row, flag = self.row(index), Qt.ItemFlag
        if row is None:
            return flag.ItemIsDropEnabled
        usual = flag.ItemIsEnabled | flag.ItemIsSelectable
        if isinstance(row, ChatRow):
            return usual | flag.ItemIsEditable | flag.ItemIsDragEnabled | flag.ItemNeverHasChildren
        return usual | flag.ItemIsDropEnabled | (flag.ItemIsEditable if row.name is not None else flag.NoItemFlags)

    def supportedDropActions(self) -> Qt.DropAction:  # noqa: N802
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:  # noqa: N802
        return [MIME]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:  # noqa: N802
        chats = [row for index in indexes if isinstance(row := self.row(index), ChatRow)]
        data = QMimeData()
        data.setData(MIME, QByteArray("\n".join(chat.heading.id for chat in chats).encode()))
        return data

    def dropMimeData(  # noqa: N802
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        """Move the dropped chats into a folder, into the archive, or out of both."""
        ids = [ChatId(ident) for ident in data.data(MIME).toStdString().split("\n") if ident]
        if not ids:
            return False
        target = self.row(parent)
        if isinstance(target, FolderRow) and target.name is None:
            self._history.archive(ids, True)
        else:
            self._history.archive(ids, False)
            folder = target.name if isinstance(target, FolderRow) else ""
            self._history.move(ids, folder or "")
        return False  # the history's signal moves the rows, so the view must not

    def words(self, row: Row) -> str:
        """Return the displayed name, which is the title of a chat or the name of a folder."""
        if isinstance(row, ChatRow):
            return row.heading.title or self.tr("New chat")
        return self.tr("Archive") if row.name is None else row.name

    def _read_aloud(self, row: Row) -> str:
        words = self.words(row)
        if isinstance(row, FolderRow):
            many = self.tr("%n chat(s)", "", len(row.chats))
            return self.tr("Folder {name}, {chats}").format(name=words, chats=many)
        if row.heading.pinned:
            words = self.tr("{title}, pinned").format(title=words)
        return f"{words}. {row.excerpt}" if row.excerpt else words

    def _tooltip(self, row: Row) -> str:
        """Return the tooltip as escaped HTML, so that markup in a title is shown literally."""
        lines = [self.words(row)]
        if isinstance(row, ChatRow):
            when = QDateTime.fromSecsSinceEpoch(int(row.heading.changed_at))
            lines.append(QLocale().toString(when, QLocale.FormatType.ShortFormat))
        return "<br>".join(html.escape(line) for line in lines)
