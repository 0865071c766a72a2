"""A switch: on or off, at once. To a screen reader it is a check box."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QWidget

from app.gui.look import theme as sizes
from app.gui.look.theme import Theme

WIDTH, HEIGHT, KNOB = sizes.XL + sizes.L, sizes.XL, sizes.L
LINE = 2  # of the focus ring


class Switch(QCheckBox):
    """`switched(on)` is called when a person turned it, not when `show_on` did."""

    def __init__(
        self, theme: Theme, name: str, switched: Callable[[bool], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAccessibleName(name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.clicked.connect(switched)
        theme.changed.connect(self.updateGeometry)

    def show_on(self, on: bool) -> None:
        """As it is now."""
        self.setChecked(on)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        px = self._theme.px
        return QSize(px(WIDTH + sizes.S), px(sizes.XXL))

    minimumSizeHint = sizeHint  # noqa: N815  Qt's name

    def hitButton(self, where: QPoint) -> bool:  # noqa: N802  Qt's name
        return self.rect().contains(where)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, height, knob = theme.px(WIDTH), theme.px(HEIGHT), theme.px(KNOB)
        box = QRectF((self.width() - width) / 2, (self.height() - height) / 2, width, height)
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("accent"), LINE))
            ring = box.adjusted(-LINE - 1, -LINE - 1, LINE + 1, LINE + 1)
            painter.drawRoundedRect(ring, ring.height() / 2, ring.height() / 2)
        on = self.isChecked()
        fill = "accent" if on and self.isEnabled() else "hairline" if on else "card"
        painter.setPen(QPen(theme.colour("accent" if on else "border"), 1))
        painter.setBrush(theme.colour(fill))
        painter.drawRoundedRect(box, height / 2, height / 2)
        gap = (height - knob) / 2
        left = box.right() - gap - knob if on else box.left() + gap
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("on_accent" if on else "border"))
        painter.drawEllipse(QRectF(left, box.top() + gap, knob, knob))
