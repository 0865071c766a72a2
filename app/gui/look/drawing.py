"""Drawing functions for custom-painted items: icons, lines of text, bars and rounded surfaces.

Icons are SVG outlines on a 20 px grid, drawn in a single color.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QIcon, QPainter, QPen, QPixmap
from PySide6.QtSvg import QSvgRenderer

ICONS_FOLDER = Path(__file__).resolve().parents[3] / "resources" / "gui" / "icons"
ICON_SIZES = (16, 20, 22, 24, 32, 40, 48, 64)
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTER = Qt.AlignmentFlag.AlignCenter


@lru_cache(maxsize=256)
def icon(name: str, color: str) -> QIcon:
    """Return an icon from resources/gui/icons in a color such as #14743a."""
    picture, drawn = QIcon(), _renderer(name, color)
    for size in ICON_SIZES:
        picture.addPixmap(_drawn(drawn, size))
    return picture


def pixmap(name: str, color: str, size: int) -> QPixmap:
    """Return an icon as a square pixmap with sides of `size` pixels."""
    return _drawn(_renderer(name, color), size)


@lru_cache(maxsize=256)
def _renderer(name: str, color: str) -> QSvgRenderer:
    svg = (ICONS_FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", color)
    return QSvgRenderer(QByteArray(svg.encode()))


def _drawn(renderer: QSvgRenderer, size: int) -> QPixmap:
    picture = QPixmap(QSize(size, size))
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    renderer.render(painter)
    painter.end()
    return picture


def draw_text(
    painter: QPainter, where: QRectF, words: str, font: QFont, color: QColor, align: Qt.AlignmentFlag = LEFT
) -> None:
    """Draw a line of text, elided with … if it does not fit."""
    fits = QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideRight, where.width())
    painter.setFont(font)
    painter.setPen(color)
    painter.drawText(where, int(align) | int(Qt.TextFlag.TextSingleLine), fits)


def draw_icon(painter: QPainter, where: QRectF, name: str, color: QColor) -> None:
    """Draw an icon, rendered at its final size so that it is sharp at any scale factor."""
    _renderer(name, color.name()).render(painter, where)


def draw_surface(painter: QPainter, where: QRectF, radius: float, fill: QColor, pen: QPen) -> None:
    """Draw a rounded rectangle with its border inside `where`."""
    inner = pen.widthF() / 2
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(fill)
    painter.setPen(pen)
    painter.drawRoundedRect(where.adjusted(inner, inner, -inner, -inner), radius, radius)


def draw_bar(painter: QPainter, where: QRectF, share: float, track: QColor, fill: QColor) -> None:
    """Draw a progress bar. Any `share` above zero is visible."""
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
    """Return the text, elided with … if it is wider than `most` pixels."""
    return QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideRight, most)


def wrapped(words: str, font: QFont, most_width: float, most: int) -> list[str]:
    """Break the text between words into at most `most` lines. Elide the last line if the text does not fit."""
    metrics, rest = QFontMetricsF(font), words.split()
    lines: list[str] = []
    while rest and len(lines) < most - 1:
        fit = next(
            (n for n in range(len(rest), 0, -1) if metrics.horizontalAdvance(" ".join(rest[:n])) <= most_width), 1
        )
        lines.append(elided(" ".join(rest[:fit]), font, most_width))
        rest = rest[fit:]
    return [*lines, elided(" ".join(rest), font, most_width)] if rest else lines
