"""The icons: SVG outlines on a 20 px grid, colored from the palette."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).resolve().parents[3] / "resources" / "gui" / "icons"
SIZES = (16, 20, 22, 24, 32, 40, 48, 64)


@lru_cache(maxsize=256)
def icon(name: str, color: str) -> QIcon:
    """Return the icon `name` (a file of resources/gui/icons) in a color like #14743a."""
    picture, drawn = QIcon(), _renderer(name, color)
    for size in SIZES:
        picture.addPixmap(_drawn(drawn, size))
    return picture


def pixmap(name: str, color: str, size: int) -> QPixmap:
    """Return a square picture of `size` pixels."""
    return _drawn(_renderer(name, color), size)


def _renderer(name: str, color: str) -> QSvgRenderer:
    svg = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", color)
    return QSvgRenderer(QByteArray(svg.encode()))


def _drawn(renderer: QSvgRenderer, size: int) -> QPixmap:
    picture = QPixmap(QSize(size, size))
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    renderer.render(painter)
    painter.end()
    return picture
