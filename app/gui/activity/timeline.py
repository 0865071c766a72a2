"""Bar charts of answers, with the phases of an answer and each machine's computing and waiting time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.api.computer import AnswerEntry
from app.gui.activity.journal_feed import MachineWork, by_machine, computed_seconds, decode_seconds
from app.gui.look import formats, sizes
from app.gui.look.theme import Theme


@dataclass(frozen=True, slots=True)
class BarSegment:
    """A segment of a bar, with its fraction of the width, its color and whether it is hatched."""

    share: float
    token: str
    hatched: bool = False


@dataclass(frozen=True, slots=True)
class LabeledBar:
    """A bar with a name on the left and figures on the right."""

    name: str
    pieces: tuple[BarSegment, ...]
    words: str


LINE, BAR, RADIUS = sizes.XXL, sizes.M, sizes.XS
NAME_SHARE, WORDS_SHARE = 0.2, 0.34  # fractions of the width for the text on either side of the bar


class Bars(QWidget):
    """A column of labeled bars."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lines: tuple[LabeledBar, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    @property
    def lines(self) -> tuple[LabeledBar, ...]:
        return self._lines

    def show_lines(self, lines: tuple[LabeledBar, ...]) -> None:
        """Replace the bars."""
        self._lines = lines
        description = "; ".join(f"{line.name}: {line.words}" for line in lines)
        self.setAccessibleName(self.tr("Where the time went"))
        self.setAccessibleDescription(description)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(self._theme.px(sizes.CHAT_WIDTH // 2), self._theme.px(LINE) * len(self._lines))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(sizes.SIDEBAR_WIDTH, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, line in enumerate(self._lines):
            self._paint(painter, line, place * self._theme.px(LINE))
        painter.end()

    def _paint(self, painter: QPainter, line: LabeledBar, top: int) -> None:
        high, gap = self._theme.px(LINE), self._theme.px(sizes.M)
        names, words = round(self.width() * NAME_SHARE), round(self.width() * WORDS_SHARE)
        middle = Qt.AlignmentFlag.AlignVCenter
        left, elide = Qt.AlignmentFlag.AlignLeft | middle, Qt.TextElideMode.ElideRight
        painter.setFont(self._theme.font(sizes.BODY))
        painter.setPen(self._theme.color("text"))
        name = painter.fontMetrics().elidedText(line.name, elide, names - gap)
        painter.drawText(QRectF(0, top, names - gap, high), left, name)
        bar = QRectF(names, top + (high - self._theme.px(BAR)) / 2, self.width() - names - words, self._theme.px(BAR))
        paint_bar(painter, bar, line.pieces, self._theme)
        painter.setFont(self._theme.font(sizes.CAPTION))
        painter.setPen(self._theme.color("muted"))
        place = QRectF(bar.right() + gap, top, words - gap, high)
        shown = painter.fontMetrics().elidedText(line.words, elide, words - gap)
        painter.drawText(place, left, shown)


def paint_bar(painter: QPainter, bar: QRectF, pieces: tuple[BarSegment, ...], theme: Theme) -> None:
    """Paint the segments of a bar from left to right on a pale background."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("hairline"))
    painter.drawRoundedRect(bar, RADIUS, RADIUS)
    at = bar.left()
    for piece in pieces:
        wide = bar.width() * piece.share
        if wide < 1:
            continue
        part = QRectF(at, bar.top(), wide, bar.height())
        pattern = Qt.BrushStyle.BDiagPattern if piece.hatched else Qt.BrushStyle.SolidPattern
        painter.setBrush(QBrush(theme.color(piece.token), pattern))
        painter.drawRoundedRect(part, RADIUS, RADIUS)
        at += wide


class Timeline(Bars):
    """The bars of an answer, one for its phases and one for each machine."""

    def show_answer(self, answer: AnswerEntry | None) -> None:
        """Show the phases of an answer and each machine's work, or nothing if the answer has no first token."""
        if answer is None or answer.ttft_s is None:
            self.show_lines(())
            return
        machines = share_lines(by_machine(answer.stages), computed_seconds(answer))
        self.show_lines((self._phases(answer), *machines))

    def _phases(self, answer: AnswerEntry) -> LabeledBar:
        decode_s = decode_seconds(answer)
        reads_s = max(0.0, (answer.ttft_s or 0.0) - answer.queued_s)
        whole_s = max(answer.queued_s + reads_s + decode_s, 1e-9)
        pieces = (
            BarSegment(answer.queued_s / whole_s, "warning", True),
            BarSegment(reads_s / whole_s, "muted"),
            BarSegment(decode_s / whole_s, "accent"),
        )
        words = self.tr("reading {reads}, writing {writes}").format(
            reads=formats.seconds(reads_s), writes=formats.seconds(decode_s)
        )
        if answer.queued_s >= 0.05:
            waits = formats.seconds(answer.queued_s)
            words = self.tr("waiting {waits}, {others}").format(waits=waits, others=words)
        return LabeledBar(self.tr("Answer"), pieces, words)


def share_lines(machines: Sequence[MachineWork], whole_s: float) -> tuple[LabeledBar, ...]:
    """Return a bar for each machine with its computing and waiting times as fractions of `whole_s`."""
    whole_s = max(whole_s, 1e-9)
    lines = []
    for machine in machines:
        busy = min(1.0, machine.busy_s / whole_s)
        wait = min(1.0 - busy, machine.wait_s / whole_s)  # waiting that overlaps with computing takes no extra time
        words = QCoreApplication.translate("Bars", "computing {busy}, waiting {wait}").format(
            busy=formats.percent(busy), wait=formats.percent(wait)
        )
        pieces = (BarSegment(busy, "good"), BarSegment(wait, "warning", True))
        lines.append(LabeledBar(machine.machine, pieces, words))
    return tuple(lines)
