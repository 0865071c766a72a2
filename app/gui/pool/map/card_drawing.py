"""Functions that draw cards and plates: a line of text, an icon, a bar, a rounded surface."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtSvg import QSvgRenderer

from app.gui.look.icons import FOLDER

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTRE = Qt.AlignmentFlag.AlignCenter


def draw_text(
    painter: QPainter, where: QRectF, words: str, font: QFont, color: QColor, align: Qt.AlignmentFlag = LEFT
) -> None:
    """Draw one line, shortened with … where it is too long."""
    fits = QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideRight, where.width())
    painter.setFont(font)
    painter.setPen(color)
    painter.drawText(where, int(align) | int(Qt.TextFlag.TextSingleLine), fits)


def draw_icon(painter: QPainter, where: QRectF, name: str, color: QColor) -> None:
    """Draw an icon of the set."""
    _renderer(name, color.name()).render(painter, where)


@lru_cache(maxsize=64)
def _renderer(name: str, color: str) -> QSvgRenderer:
    """Return a renderer, which is sharp at any zoom as a pixmap would not be."""
    svg = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", color)
    return QSvgRenderer(QByteArray(svg.encode()))


def draw_surface(painter: QPainter, where: QRectF, radius: float, fill: QColor, pen: QPen) -> None:
    """Draw a rounded rectangle whose border lies inside `where`."""
    inner = pen.widthF() / 2
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(fill)
    painter.setPen(pen)
    painter.drawRoundedRect(where.adjusted(inner, inner, -inner, -inner), radius, radius)


def draw_bar(painter: QPainter, where: QRectF, share: float, track: QColor, fill: QColor) -> None:
    """Draw a share of a whole; any share above zero is visible."""
    radius = where.height() / 2
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(track)
    painter.drawRoundedRect(where, radius, radius)
    if share > 0:
        width = max(where.height(), where.width() * min(1.0, share))
        painter.setBrush(fill)
        painter.drawRoundedRect(QRectF(where.topLeft(), QPointF(where.x() + width, where.bottom())), radius, radius)


def text_width(words: str, font: QFont) -> float:
    return QFontMetricsF(font).horizontalAdvance(words)


def line_height(font: QFont) -> float:
    return QFontMetricsF(font).height()


def elided(words: str, font: QFont, most: float) -> str:
    """Return the words, cut with … to at most this width."""
    return QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideRight, most)


def wrapped(words: str, font: QFont, most_width: float, most: int) -> list[str]:
    """Return at most so many lines, broken between words; the last one ends in … where there is more."""
    metrics, rest = QFontMetricsF(font), words.split()
    lines: list[str] = []
    while rest and len(lines) < most - 1:
        fit = next(
            (n for n in range(len(rest), 0, -1) if metrics.horizontalAdvance(" ".join(rest[:n])) <= most_width), 1
        )
        lines.append(elided(" ".join(rest[:fit]), font, most_width))
        rest = rest[fit:]
    return [*lines, elided(" ".join(rest), font, most_width)] if rest else lines
