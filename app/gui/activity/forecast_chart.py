"""Forecast against fact: how much faster or slower each answer was than was said before."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.activity.entries import Answer
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.theme import Theme

MOST_SHOWN = 40  # answers
LEAST_RANGE, MOST_RANGE = 0.25, 1.0  # up and down from the forecast
GOOD = 0.1  # within a tenth is good


class ForecastChart(QWidget):
    """A dot for each answer's speed and a square for its first token; the line is the forecast."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._errors: list[tuple[float, float]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Forecast against fact"))
        theme.changed.connect(self.updateGeometry)

    @property
    def n_shown(self) -> int:
        return len(self._errors)

    def show_answers(self, answers: Sequence[Answer]) -> str:
        """Those that had the pool to themselves. Says how far off forecasts were, in a sentence."""
        compared = [answer for answer in answers if answer.is_compared]
        self._errors = [answer.faster for answer in compared[-MOST_SHOWN:]]
        sentence = self._sentence([answer.errors for answer in compared])
        self.setAccessibleDescription(sentence)
        self.update()
        return sentence

    def _sentence(self, errors: list[tuple[float, float]]) -> str:
        if not errors:
            return ""
        first, speed = (self._off(statistics.median(one[n] for one in errors)) for n in (0, 1))
        many = len(errors)
        return self.tr(
            "At the median of %n answer(s) the forecast was off by {first} for the first token and by"
            " {speed} for the speed.",
            "",
            many,
        ).format(first=first, speed=speed)

    def _off(self, error: float) -> str:
        """How far off; beyond the double of what came, how many times it was forecast."""
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
        """Of the dots. On its left the words have theirs."""
        measure = QFontMetricsF(self._theme.font(sizes.CAPTION))
        side = sizes.S + max(map(measure.horizontalAdvance, self._words()))
        return QRectF(side, sizes.S, self.width() - side - sizes.S, self.height() - 2 * sizes.S)

    def _words(self) -> tuple[str, str, str]:
        """Above, at the line and below."""
        return self.tr("faster"), self.tr("as forecast"), self.tr("slower")

    def _reach(self) -> float:
        farthest = max((abs(value) for one in self._errors for value in one), default=0.0)
        return min(MOST_RANGE, max(LEAST_RANGE, 1.1 * farthest))

    def _scale(self, painter: QPainter, room: QRectF, reach: float) -> None:
        """The band of good forecasts, the line, and words at its ends."""
        theme, middle = self._theme, room.center().y()
        band = room.height() * GOOD / reach
        painter.fillRect(QRectF(room.left(), middle - band / 2, room.width(), band), theme.colour("selected"))
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(QPointF(room.left(), middle), QPointF(room.right(), middle))
        painter.setFont(theme.font(sizes.CAPTION))
        painter.setPen(theme.colour("muted"))
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
                colour = self._theme.colour(token)
                painter.setPen(QPen(colour, 2))
                painter.setBrush(colour if is_round else Qt.BrushStyle.NoBrush)
                if is_round:
                    painter.drawEllipse(mark)
                else:
                    painter.drawRect(mark)
