"""The last answers as a table: when, how many tokens, how fast, and how fast it was forecast to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QTableView, QWidget

from app.api.computer import AnswerEntry
from app.core.planner.speed_estimates import is_rough
from app.core.scheduler.requester import OWNER, Requester
from app.gui.look import formats, sizes
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.layouts import Columns

Index = QModelIndex | QPersistentModelIndex
AT, MODEL, REQUESTER, TOKENS, FIRST, FIRST_FORECAST, SPEED, SPEED_FORECAST = range(8)
FIGURES = (TOKENS, FIRST, FIRST_FORECAST, SPEED, SPEED_FORECAST)
SHOWN_ROWS = 5


class AnswersModel(QAbstractTableModel):
    """The answers as a Qt model, newest first."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[AnswerEntry] = []

    def show(self, answers: Iterable[AnswerEntry]) -> None:
        """Replace the answers; the same ones change nothing."""
        rows = list(answers)[::-1]
        if rows != self._rows:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()

    def answer(self, row: int) -> AnswerEntry | None:
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def row_of(self, number: int) -> int:
        """Return the row of an answer, or -1."""
        return next((row for row, answer in enumerate(self._rows) if answer.number == number), -1)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008  Qt's name and manner
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        return 0 if parent.isValid() else 8

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(section)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return (
            self.tr("When"),
            self.tr("Model"),
            self.tr("For"),
            self.tr("Tokens"),
            self.tr("First token"),
            self.tr("Token forecast"),
            self.tr("Speed"),
            self.tr("Speed forecast"),
        )[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        answer = self._rows[index.row()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._words(answer, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{formats.exact(answer.at)}\n{self.end_of(answer)}" if index.column() == AT else None
        return None

    def end_of(self, answer: AnswerEntry) -> str:
        """Return a sentence that says how an answer ended."""
        return {
            "stop": self.tr("It came to its end."),
            "length": self.tr("It reached its limit of tokens."),
            "full": self.tr("The context was full, so it ended there."),
            "stopped": self.tr("It was stopped."),
            "failed": self.tr("It broke off; the log says why."),
        }.get(answer.end, answer.end)

    def _words(self, answer: AnswerEntry, column: int) -> str:
        if column == AT:
            return formats.clock(answer.at)
        if column == MODEL:
            return model_name(answer.model)
        if column == REQUESTER:
            return self._requester_words(answer.whose)
        if column == TOKENS:
            return formats.number(answer.tokens)
        value = {
            FIRST: answer.ttft_s,
            FIRST_FORECAST: answer.forecast_ttft_s,
            SPEED: answer.decode_tok_s,
            SPEED_FORECAST: answer.forecast_tok_s,
        }[column]
        if not value:
            if column in (FIRST_FORECAST, SPEED_FORECAST):
                return self.tr("none")
            broken = answer.end in ("stopped", "failed")
            return self.end_word(answer) if broken else self.tr("not measured")
        if column in (FIRST, FIRST_FORECAST):
            return formats.seconds(value)
        text = self.tr("rough {speed}") if column == SPEED_FORECAST and is_rough(value) else "{speed}"
        return text.format(speed=formats.speed(value))

    def _requester_words(self, requester: Requester | None) -> str:
        match requester:
            case None:
                return self.tr("not noted")
            case Requester(kind="owner"):
                words = self.tr("you")
            case Requester(kind="program", name=""):
                words = self.tr("program without a key")
            case Requester(kind="program"):
                words = self.tr("program {name}")
            case Requester(kind="guest"):
                words = self.tr("guest {name}")
            case _:
                words = "{name}"
        return words.format(name=requester.name)

    def end_word(self, answer: AnswerEntry) -> str:
        return self.tr("stopped") if answer.end == "stopped" else self.tr("broke off")


class AnswersTable(QTableView):
    """The answers; `chosen(answer)` is called when another row is chosen."""

    def __init__(
        self, theme: Theme, chosen: Callable[[AnswerEntry | None], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme, self._chosen = theme, chosen
        self.rows = AnswersModel()
        self.rows.setParent(self)
        self.setModel(self.rows)
        self.setAccessibleName(self.tr("The last answers"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.setCornerButtonEnabled(False)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setResizeContentsPrecision(2 * SHOWN_ROWS)  # rows that decide how wide a column is
        self._columns = Columns(self, MODEL, self._fit)
        self.selectionModel().currentRowChanged.connect(self._current_changed)
        theme.changed.connect(self._fit)
        self._fit()

    def show_answers(self, answers: Iterable[AnswerEntry]) -> None:
        """Show these, and choose the newest unless a person looks at another one."""
        was = self.rows.answer(self.currentIndex().row())
        follows = was is None or self.currentIndex().row() == 0
        shown = list(answers)
        # without this column there is more room for the figures
        self.setColumnHidden(REQUESTER, all(answer.whose == OWNER for answer in shown))
        self.rows.show(shown)
        row = 0 if follows or was is None else max(0, self.rows.row_of(was.number))
        if self.rows.answer(row) is None:
            self._chosen(None)
        elif self.currentIndex().row() != row or was is None:
            self.setCurrentIndex(self.rows.index(row, 0))
        else:
            self._chosen(self.rows.answer(row))

    def _current_changed(self, now: QModelIndex, _: QModelIndex) -> None:
        self._chosen(self.rows.answer(now.row()))

    def _fit(self) -> None:
        row = self._theme.px(sizes.CONTROL_HEIGHT)
        self.verticalHeader().setDefaultSectionSize(row)
        self.setFixedHeight(row * (SHOWN_ROWS + 1) + sizes.S + self._columns.bar_height)


def _side(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in FIGURES else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
