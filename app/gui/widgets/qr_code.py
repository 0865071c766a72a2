"""A widget that shows a text as a QR code."""

from __future__ import annotations

import segno
from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

QUIET_MODULES = 4  # of light border, which cameras need
LIGHT, DARK = "#ffffff", "#000000"  # in both palettes, since some cameras read no inverted code


class QrCode(QWidget):
    """A QR code that fits into `side` pixels. Every module is a whole number of pixels wide."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self._side = side
        self._modules: tuple[tuple[bool, ...], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_text(self, text: str) -> None:
        """Show another text, or nothing if it is empty."""
        rows = segno.make(text, micro=False).matrix if text else ()
        self._modules = tuple(tuple(bool(module) for module in row) for row in rows)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        side = self._module_pixels() * self._count()
        return QSize(side, side)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter, pixels = QPainter(self), self._module_pixels()
        painter.fillRect(QRect(0, 0, pixels * self._count(), pixels * self._count()), QColor(LIGHT))
        for y, row in enumerate(self._modules):
            for x, is_dark in enumerate(row):
                if is_dark:
                    left, top = (QUIET_MODULES + x) * pixels, (QUIET_MODULES + y) * pixels
                    painter.fillRect(QRect(left, top, pixels, pixels), QColor(DARK))
        painter.end()

    def _count(self) -> int:
        return len(self._modules) + 2 * QUIET_MODULES

    def _module_pixels(self) -> int:
        return max(1, self._side // self._count())
