"""The Overview tab, with work in progress, recent answers, forecast accuracy and lending."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractItemView, QFrame, QSizePolicy, QTableView, QWidget

from app.api.computer import AnswerEntry
from app.core.planner.forecast_range import spread_of
from app.core.scheduler.requester import OWNER, Requester
from app.gui.activity.journal_feed import (
    JournalFeed,
    computed_seconds,
    forecast_errors,
    is_comparable,
    relative_speedups,
)
from app.gui.activity.now_card import NowCard, jobs_of
from app.gui.activity.timeline import Timeline
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import Columns, EmptyState, card, column, row

Index = QModelIndex | QPersistentModelIndex
AT, MODEL, REQUESTER, TOKENS, FIRST, FIRST_FORECAST, SPEED, SPEED_FORECAST = range(8)
FIGURES = (TOKENS, FIRST, FIRST_FORECAST, SPEED, SPEED_FORECAST)
SHOWN_ROWS = 5
MOST_SHOWN = 40  # maximum number of answers
LEAST_RANGE, MOST_RANGE = 0.25, 1.0  # bounds of the chart's range above and below the forecast
GOOD = 0.1  # maximum error of a good forecast
LEAST_WATT_HOURS = 0.1  # smaller amounts are not shown
SOLID, HATCHED, DOT, SQUARE = "solid", "hatched", "dot", "square"  # shapes of legend markers


class Overview(QWidget):
    """The cards of the Overview tab."""

    def __init__(self, services: AppContext, feed: JournalFeed) -> None:
        super().__init__()
        self._services, self._feed = services, feed
        self.now = NowCard(services.theme)
        self.timeline = Timeline(services.theme)
        self.table = AnswersTable(services.theme, self._show_one)
        self.chart = ForecastChart(services.theme)
        self._title, self._legend = label("", "muted"), self._keys()
        self._off = paragraph("", "muted")
        self.lent = paragraph()
        self._some, self._none = QWidget(), QWidget()
        self._forecast = self._forecast_card()
        box = column(self.now, self._answers_card(), self._forecast, self._lent_card(), gap=sizes.L)
        box.addStretch(1)
        self.setLayout(box)
        feed.changed.connect(self._show_entries)
        feed.running_changed.connect(self._show_now)
        services.pool.changed.connect(self._show_now)
        services.pool.link_changed.connect(self._show_now)
        services.importing.changed.connect(self._show_now)
        self._show_entries()
        self._show_now()

    def _keys(self) -> Legend:
        return Legend(
            self._services.theme,
            ("muted", SOLID, self.tr("reading")),
            ("accent", SOLID, self.tr("writing")),
            ("good", SOLID, self.tr("computing, including network time")),
            ("warning", HATCHED, self.tr("waiting")),
        )

    def _answers_card(self) -> QFrame:
        top = Flow(self._title, self._legend, gap=sizes.M, last_right=True)
        self._some.setLayout(column(self.table, top, self.timeline, gap=sizes.M))
        go = button(self.tr("Open the chat"), lambda: self._services.go(navigation.CHAT), role="primary")
        empty = EmptyState(
            self.tr("No answers yet"), self.tr("Ask a question to see what each machine contributed to the answer."), go
        )
        self._none.setLayout(column(empty))
        return card(label(self.tr("Answers"), "section"), self._some, self._none)

    def _forecast_card(self) -> QFrame:
        theme = self._services.theme
        self._marks = Legend(theme, ("accent", DOT, self.tr("speed")), ("warning", SQUARE, self.tr("first token")))
        title = label(self.tr("Forecast and result"), "section")
        top = Flow(title, self._marks, gap=sizes.M, last_right=True)
        return card(top, self._off, self.chart)

    def _lent_card(self) -> QFrame:
        return card(label(self.tr("Lent to others"), "section"), self.lent, gap=sizes.S)

    def _show_entries(self) -> None:
        answers = list(self._feed.answers)
        show_if(self._some, bool(answers))
        show_if(self._none, not answers)
        self.table.show_answers(answers)
        sentence = self.chart.show_answers(answers)
        self._off.setText(sentence or self._no_forecast())
        for widget in (self.chart, self._marks):
            show_if(widget, bool(sentence))

    def _no_forecast(self) -> str:
        return self.tr(
            "Nothing to compare yet. A comparison appears after a long answer that ran without others at the same time."
        )

    def _show_one(self, answer: AnswerEntry | None) -> None:
        self.timeline.show_answer(answer)
        has_bars = bool(self.timeline.lines)
        self._legend.setVisible(has_bars)
        self.timeline.setVisible(has_bars)
        if answer is None:
            self._title.setText("")
        elif has_bars:
            self._title.setText(self._time_of(answer))
        else:
            self._title.setText(self.table.rows.end_of(answer))

    def _time_of(self, answer: AnswerEntry) -> str:
        text = self.tr("Where the time went: {seconds} for {tokens} tokens")
        if not answer.alone:  # a stage measures its work for all concurrent answers together
            text = self.tr("{seconds} for {tokens} tokens (the bars include work for other answers)")
        return text.format(
            seconds=formats.seconds(answer.queued_s + computed_seconds(answer)), tokens=formats.number(answer.tokens)
        )

    def _show_now(self) -> None:
        services = self._services
        self.now.show_jobs(jobs_of(services.pool, self._feed.running, services.importing))
        self.lent.setText(self._lent_words())

    def _lent_words(self) -> str:
        lent = self._feed.lent
        if not lent.rows and lent.seconds < 1:
            return self.tr("Other machines have not used this one yet.")
        text = self.tr(
            "Since {day}, this machine has held layers for other machines for a total of {time}. "
            "It has processed {tokens} tokens for them and transferred {size}."
        )
        words = text.format(
            day=formats.day(lent.since),
            time=formats.seconds(lent.seconds),
            tokens=formats.number(lent.rows),
            size=formats.size(lent.bytes_in + lent.bytes_out),
        )
        if lent.watt_hours >= LEAST_WATT_HOURS:
            drew = self.tr("During that time, the whole machine used {energy}.")
            words += " " + drew.format(energy=formats.energy(lent.watt_hours))
        return words


class ForecastChart(QWidget):
    """A chart that compares answers with their forecasts.

    For each answer, a dot marks its speed and a square its first token. The horizontal line is the forecast.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._errors: list[tuple[float, float]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Forecast and result"))
        theme.changed.connect(self.updateGeometry)

    @property
    def n_shown(self) -> int:
        return len(self._errors)

    def show_answers(self, answers: Sequence[AnswerEntry]) -> str:
        """Plot the answers that can be compared with their forecasts. Return a sentence on the median errors, or ""."""
        compared = [answer for answer in answers if is_comparable(answer)]
        self._errors = [relative_speedups(answer) for answer in compared[-MOST_SHOWN:]]
        sentence = self._sentence([forecast_errors(answer) for answer in compared])
        self.setAccessibleDescription(sentence)
        self.update()
        return sentence

    def _sentence(self, errors: list[tuple[float, float]]) -> str:
        if not errors:
            return ""
        first, speed = (self._off(statistics.median(error[n] for error in errors)) for n in (0, 1))
        many = len(errors)
        return self.tr(
            "Over %n answer(s), the median forecast error was {first} for the first token and {speed} for the speed.",
            "",
            many,
        ).format(first=first, speed=speed)

    def _off(self, error: float) -> str:
        """Format an error as a percentage, or as a factor if it exceeds 100 %."""
        if error <= 1:
            return formats.percent(error)
        return self.tr("a factor of {times}").format(times=formats.number(1 + error))

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(self._theme.px(sizes.SIDEBAR_WIDTH), self._theme.px(4 * sizes.CONTROL_HEIGHT))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        room = self.room()
        reach = self._reach()
        self._scale(painter, room, reach)
        self._dots(painter, room, reach)
        painter.end()

    def room(self) -> QRectF:
        """Return the plot area, to the right of the labels."""
        measure = QFontMetricsF(self._theme.font(sizes.CAPTION))
        side = sizes.S + max(map(measure.horizontalAdvance, self._words()))
        return QRectF(side, sizes.S, self.width() - side - sizes.S, self.height() - 2 * sizes.S)

    def _words(self) -> tuple[str, str, str]:
        """Return the labels above, on and below the forecast line."""
        return self.tr("faster"), self.tr("as forecast"), self.tr("slower")

    def _reach(self) -> float:
        farthest = max((abs(share) for shares in self._errors for share in shares), default=0.0)
        return min(MOST_RANGE, max(LEAST_RANGE, 1.1 * farthest))

    def _scale(self, painter: QPainter, room: QRectF, reach: float) -> None:
        """Paint the band of good forecasts, the forecast line, and the labels."""
        theme, middle = self._theme, room.center().y()
        band = room.height() * GOOD / reach
        painter.fillRect(QRectF(room.left(), middle - band / 2, room.width(), band), theme.color("selected"))
        painter.setPen(QPen(theme.color("border"), 1))
        painter.drawLine(QPointF(room.left(), middle), QPointF(room.right(), middle))
        painter.setFont(theme.font(sizes.CAPTION))
        painter.setPen(theme.color("muted"))
        high = painter.fontMetrics().height()
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        places = room.top() + high / 2, middle, room.bottom() - high / 2
        for words, y in zip(self._words(), places, strict=True):
            place = QRectF(0, y - high / 2, room.left() - sizes.S, high)
            painter.drawText(place, right, words)

    def _dots(self, painter: QPainter, room: QRectF, reach: float) -> None:
        size = self._theme.px(sizes.S)
        step = room.width() / max(len(self._errors), 8)
        for place, (first, speed) in enumerate(self._errors):
            x = room.left() + (place + 0.5) * step
            for value, token, is_round in ((first, "warning", False), (speed, "accent", True)):
                off = max(-1.0, min(1.0, value / reach))
                y = room.center().y() - off * (room.height() - size) / 2
                mark = QRectF(x - size / 2, y - size / 2, size, size)
                color = self._theme.color(token)
                painter.setPen(QPen(color, 2))
                painter.setBrush(color if is_round else Qt.BrushStyle.NoBrush)
                if is_round:
                    painter.drawEllipse(mark)
                else:
                    painter.drawRect(mark)


class LegendMarker(QWidget):
    """A marker in the legend that looks like those in the chart."""

    def __init__(self, theme: Theme, token: str, shape: str) -> None:
        super().__init__()
        self._theme, self._token, self._shape = theme, token, shape
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        side = self._theme.px(sizes.M)
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = self._theme.color(self._token)
        mark = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        hollow, hatched = self._shape == SQUARE, self._shape == HATCHED
        painter.setPen(QPen(color, 2) if hollow else Qt.PenStyle.NoPen)
        pattern = Qt.BrushStyle.BDiagPattern if hatched else Qt.BrushStyle.SolidPattern
        painter.setBrush(Qt.BrushStyle.NoBrush if hollow else QBrush(color, pattern))
        if self._shape == DOT:
            painter.drawEllipse(mark)
        else:
            painter.drawRect(mark)
        painter.end()


class Legend(QWidget):
    """A chart legend. Each key is (color token, marker shape, text)."""

    def __init__(self, theme: Theme, *keys: tuple[str, str, str]) -> None:
        super().__init__()
        box = Flow(gap=sizes.M)
        for token, shape, words in keys:
            key = QWidget()
            key.setLayout(row(LegendMarker(theme, token, shape), label(words, "caption"), gap=sizes.XS))
            box.addWidget(key)
        self.setLayout(box)


class AnswersModel(QAbstractTableModel):
    """A Qt table model of answers, newest first."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[AnswerEntry] = []

    def show(self, answers: Iterable[AnswerEntry]) -> None:
        """Replace the rows if they have changed."""
        rows = list(answers)[::-1]
        if rows != self._rows:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()

    def answer(self, row: int) -> AnswerEntry | None:
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def row_of(self, number: int) -> int:
        """Return the row of the answer with this number, or -1."""
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
            self.tr("Asked by"),
            self.tr("Tokens"),
            self.tr("First token"),
            self.tr("First-token forecast"),
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
        """Return a sentence about how the answer ended."""
        return {
            "stop": self.tr("Complete."),
            "length": self.tr("Stopped at the token limit."),
            "full": self.tr("Stopped because the context was full."),
            "stopped": self.tr("Stopped before it was finished."),
            "failed": self.tr("Cut off by an error. See the log for details."),
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
        spread = spread_of(answer.forecast_tok_s or 0.0, estimated=False)
        if column == FIRST_FORECAST:
            return formats.seconds_range(value, spread)
        if column == SPEED_FORECAST:
            return formats.speed_range(value, spread)
        return formats.seconds(value) if column == FIRST else formats.speed(value)

    def _requester_words(self, requester: Requester | None) -> str:
        match requester:
            case None:
                return self.tr("not recorded")
            case Requester(kind="owner"):
                words = self.tr("you")
            case Requester(kind="program", name=""):
                words = self.tr("program without a key")
            case Requester(kind="program"):
                words = self.tr("program {name}")
            case Requester(kind="phone"):
                words = self.tr("phone {name}")
            case Requester(kind="guest"):
                words = self.tr("guest {name}")
            case _:
                words = "{name}"
        return words.format(name=requester.name)

    def end_word(self, answer: AnswerEntry) -> str:
        return self.tr("stopped") if answer.end == "stopped" else self.tr("cut off")


class AnswersTable(QTableView):
    """The table of recent answers. It calls `chosen(answer)` when the selection changes."""

    def __init__(
        self, theme: Theme, chosen: Callable[[AnswerEntry | None], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme, self._chosen = theme, chosen
        self.rows = AnswersModel()
        self.rows.setParent(self)
        self.setModel(self.rows)
        self.setAccessibleName(self.tr("Recent answers"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.setCornerButtonEnabled(False)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setResizeContentsPrecision(2 * SHOWN_ROWS)  # only this many rows determine the column widths
        self._columns = Columns(self, MODEL, self._fit)
        self.selectionModel().currentRowChanged.connect(self._current_changed)
        theme.changed.connect(self._fit)
        self._fit()

    def show_answers(self, answers: Iterable[AnswerEntry]) -> None:
        """Show these answers. Select the newest one unless the user has selected another."""
        was = self.rows.answer(self.currentIndex().row())
        follows = was is None or self.currentIndex().row() == 0
        shown = list(answers)
        # leaves more room for the figures
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
