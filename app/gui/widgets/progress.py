"""A progress bar with an animation for unknown progress."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, QVariantAnimation
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QProgressBar, QStyle, QStyleOptionProgressBar, QStylePainter

from app.gui.look.motion import may_move

WHOLE = 1000  # maximum value of the bar
ROUND_MS, STEPS = 1600, 48  # one pass of the animation, at 30 frames per second
PIECE = 0.3  # width of the moving part as a fraction of the bar
AT_REST = 0.4  # opacity of the whole bar if motion is reduced


class Progress(QProgressBar):
    """A progress bar, animated until `tell` receives a fraction."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.setTextVisible(False)
        self.setAccessibleName(name)
        self._wanders = QVariantAnimation(self)
        self._wanders.setDuration(ROUND_MS)
        self._wanders.setStartValue(0)
        self._wanders.setEndValue(STEPS)
        self._wanders.setLoopCount(-1)
        self._wanders.valueChanged.connect(self._moved)
        self.tell(None)

    @property
    def is_known(self) -> bool:
        """Return whether the progress is known. While it is unknown, the bar's range is 0 to 0."""
        return self.maximum() > 0

    def tell(self, share: float | None) -> None:
        """Show the completed fraction, or the animation if `share` is None."""
        self.setRange(0, WHOLE if share is not None else 0)
        if share is not None:
            self.setValue(round(WHOLE * min(1.0, max(0.0, share))))
        self._begin_or_stop()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self._begin_or_stop()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802  Qt's name
        super().hideEvent(event)
        self._wanders.stop()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        if self.is_known:
            super().paintEvent(event)
            return
        option = QStyleOptionProgressBar()
        self.initStyleOption(option)
        option.minimum, option.maximum, option.progress = 0, 1, 0  # Qt's own animation ignores reduced motion
        painter = QStylePainter(self)
        painter.drawControl(QStyle.ControlElement.CE_ProgressBar, option)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.palette().highlight())
        painter.setOpacity(1.0 if self.is_moving else AT_REST)
        radius = self.height() / 2
        painter.drawRoundedRect(self._filled(), radius, radius)
        painter.end()

    @property
    def is_moving(self) -> bool:
        return self._wanders.state() is QVariantAnimation.State.Running

    def _filled(self) -> QRectF:
        """Return the moving part of the animation, or the whole bar if motion is reduced."""
        if not self.is_moving:
            return QRectF(self.rect())
        begin = int(self._wanders.currentValue()) / STEPS * (1 + PIECE) - PIECE
        left, right = max(0.0, begin), min(1.0, begin + PIECE)
        return QRectF(left * self.width(), 0, (right - left) * self.width(), self.height())

    def _moved(self) -> None:
        if not may_move():
            self._wanders.stop()
        self.update()

    def _begin_or_stop(self) -> None:
        if self.is_known or not self.isVisible() or not may_move():
            self._wanders.stop()
        elif not self.is_moving:
            self._wanders.start()
