"""The Log tab, with a sentence for each event and answer, newest first, and a filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSize, Qt, QTimer
from PySide6.QtGui import QIcon, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QHeaderView, QLineEdit, QStackedLayout, QTableView, QWidget

from app.api.computer import AnswerEntry
from app.gui.activity.journal_feed import JournalFeed, event_sentence
from app.gui.app import navigation
from app.gui.look import formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import DropDown
from app.gui.widgets.labels import tooltip
from app.gui.widgets.layouts import EmptyState, column, row

Index = QModelIndex | QPersistentModelIndex
PICTURES = {"answer": "chat", "model": "models", "machine": "pool", "lending": "computer", "node": "info"}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the log."""

    number: int
    at: float
    kind: str
    sentence: str


class LogModel(QAbstractTableModel):
    """A Qt table model of log entries with two columns, the time and the sentence."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[Entry] = []

    def show(self, rows: list[Entry]) -> None:
        if rows != self._rows:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008  Qt's name and manner
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        return 0 if parent.isValid() else 2

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return (self.tr("When"), self.tr("What happened"))[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry, is_when = self._rows[index.row()], index.column() == 0
        if role == Qt.ItemDataRole.DisplayRole:
            return formats.clock(entry.at) if is_when else entry.sentence
        if role == Qt.ItemDataRole.ToolTipRole:
            return formats.exact(entry.at) if is_when else tooltip(entry.sentence)
        if role == Qt.ItemDataRole.DecorationRole and is_when:
            return self._picture(entry.kind)
        return None

    def _picture(self, kind: str) -> QIcon:
        return icon(PICTURES.get(kind, "info"), self._theme.colors.muted)


class LogView(QWidget):
    """The Log tab. If the log is empty, a button opens the Chat page by calling `go(page)`."""

    def __init__(
        self, theme: Theme, feed: JournalFeed, go: Callable[[str], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme, self._feed = theme, feed
        self._model = LogModel(theme)
        self._model.setParent(self)
        self.kind = self._kinds()
        self.words = QLineEdit()
        self.words.setPlaceholderText(self.tr("Search the log"))
        self.words.setAccessibleName(self.tr("Search the log"))
        self.words.setClearButtonEnabled(True)
        self.words.textChanged.connect(self.refresh)
        self.table = self._table()
        about = self.tr("The log records events for models, machines, lending and answers, but never your chats.")
        chat = button(self.tr("Open the chat"), lambda: go(navigation.CHAT))
        self._nothing = EmptyState(self.tr("No events yet"), about, chat)
        self._not_found = EmptyState(
            self.tr("Nothing found"),
            self.tr("No entries of this type match your search."),
            button(self.tr("Show everything"), self.show_all),
        )
        self._stack = QStackedLayout()
        self._stack.addWidget(self.table)
        self._stack.addWidget(self._nothing)
        self._stack.addWidget(self._not_found)
        top = row(self.words, self.kind, gap=sizes.S)
        top.setStretch(0, 1)
        box = column(gap=sizes.M)
        box.addLayout(top)
        box.addLayout(self._stack, 1)
        self.setLayout(box)
        feed.changed.connect(self._grown)
        theme.changed.connect(self._fit)
        self.refresh()

    def sentences(self) -> list[str]:
        """Return the sentences of all entries that match the filter."""
        model = self._model
        return [str(model.data(model.index(at, 1))) for at in range(model.rowCount())]

    def show_all(self) -> None:
        """Clear the filter."""
        self.words.clear()
        self.kind.setCurrentIndex(0)

    def refresh(self) -> None:
        """Reload the entries from the feed, and filter them."""
        chosen, words = self.kind.currentData(), self.words.text().strip().casefold()
        rows = [entry for entry in self._entries() if chosen in ("", entry.kind) and words in entry.sentence.casefold()]
        self._model.show(rows)
        none = self._not_found if chosen or words else self._nothing
        self._stack.setCurrentWidget(self.table if rows else none)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.refresh()

    def _grown(self) -> None:
        if self.isVisible():
            self.refresh()

    def _entries(self) -> list[Entry]:
        events = (Entry(event.number, event.at, event.kind, event_sentence(event)) for event in self._feed.events)
        answers = map(self._answer, self._feed.answers)
        return sorted((*events, *answers), key=lambda entry: entry.number, reverse=True)

    def _answer(self, answer: AnswerEntry) -> Entry:
        if answer.end == "failed":
            text = self.tr("An answer from {model} was cut off after {tokens} tokens.")
        elif answer.end == "stopped":
            text = self.tr("{model} was stopped after {tokens} tokens.")
        else:
            text = self.tr("{model} wrote {tokens} tokens at {speed}, with the first token after {first}.")
        sentence = text.format(
            model=model_name(answer.model),
            tokens=formats.number(answer.tokens),
            first=formats.seconds(answer.ttft_s or 0.0),
            speed=formats.speed(answer.decode_tok_s or 0.0),
        )
        return Entry(answer.number, answer.at, "answer", sentence)

    def _kinds(self) -> QComboBox:
        box = DropDown()
        box.setAccessibleName(self.tr("Type of entry"))
        for name, words in (
            ("", self.tr("Everything")),
            ("answer", self.tr("Answers")),
            ("model", self.tr("Models")),
            ("machine", self.tr("Machines")),
            ("lending", self.tr("Lending")),
            ("node", self.tr("The app")),
        ):
            box.addItem(words, name)
        box.currentIndexChanged.connect(self.refresh)
        return box

    def _table(self) -> QTableView:
        table = QTableView()
        table.setModel(self._model)
        table.setAccessibleName(self.tr("The log"))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTabKeyNavigation(False)
        table.setShowGrid(False)
        table.setWordWrap(True)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.verticalHeader().hide()
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setResizeContentsPrecision(0)  # only visible rows determine the column widths
        header.sectionResized.connect(self._resized)
        return table

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def _resized(self, column: int) -> None:
        """Adjust the row heights to the new width of the sentence column.

        The adjustment is deferred, because the width changes only after the signal. Otherwise, rows measured at the
        narrow initial width would stay too tall.
        """
        if column == 1:
            QTimer.singleShot(0, self, self._fit)

    def _fit(self) -> None:
        side = self._theme.px(sizes.SECTION)
        self.table.setIconSize(QSize(side, side))
        rows, high = self.table.verticalHeader(), self._theme.px(sizes.CONTROL_HEIGHT)
        rows.setMinimumSectionSize(high)
        rows.setDefaultSectionSize(high)
        if not self.isVisible():
            return
        room, measure = self.table.columnWidth(1) - 2 * sizes.L, self.table.fontMetrics()
        # Qt would take too long to measure every row, so only long sentences are measured
        for at, sentence in enumerate(self.sentences()):
            if measure.horizontalAdvance(sentence) > room:
                self.table.resizeRowToContents(at)
            elif self.table.rowHeight(at) > high:
                self.table.setRowHeight(at, high)
