"""What a button shows of the pointer and of the keys: see Feedback.

A style sheet cannot fade. So while the pointer comes or goes the button is painted twice: as it usually is, and over
that, ever plainer, as the sheet has it under the pointer.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEasingCurve, Qt, QVariantAnimation
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QAbstractButton, QStyle, QStyleOption, QStylePainter

from app.gui.look.motion import may_move
from app.gui.look.theme import HOVER_MS

REASON = Qt.FocusReason
KEPT = (REASON.ActiveWindowFocusReason, REASON.PopupFocusReason, REASON.MenuBarFocusReason)  # back
STATE = QStyle.StateFlag


class Feedback:
    """Of one button: its look under the pointer comes and goes in HOVER_MS; a ring is where keys brought the focus."""

    def __init__(self, button: QAbstractButton) -> None:
        self._button = button
        self._by_pointer = False  # the focus came by a click: whoever clicked knows where
        self._fade: QVariantAnimation | None = None  # made for the first pointer that comes

    @property
    def is_fading(self) -> bool:
        return self._fade is not None and self._fade.state() is QVariantAnimation.State.Running

    def hovered(self, on: bool) -> None:
        """The pointer came, or went."""
        fade = self._fade or self._made()
        now = float(fade.currentValue() or 0)
        fade.stop()
        fade.setStartValue(now)
        fade.setEndValue(float(on))
        fade.start()
        if not may_move():
            fade.setCurrentTime(HOVER_MS)

    def focused(self, event: QFocusEvent) -> None:
        if event.reason() not in KEPT:
            self._by_pointer = event.reason() is REASON.MouseFocusReason

    def keyed(self) -> None:
        """A key was pressed: from now on it matters where the keys go."""
        if self._by_pointer:
            self._by_pointer = False
            self._button.update()

    def adapt(self, option: QStyleOption) -> None:
        """What the style is told of the focus."""
        if self._by_pointer:
            option.state &= ~STATE.State_HasFocus

    def paint(self, option: QStyleOption, draw: Callable[[QStylePainter], object]) -> None:
        """Both looks: `draw` with the option as it is then."""
        assert self._fade is not None
        painter = QStylePainter(self._button)
        option.state &= ~STATE.State_MouseOver
        draw(painter)
        option.state |= STATE.State_MouseOver
        painter.setOpacity(float(self._fade.currentValue()))
        draw(painter)
        painter.end()

    def _made(self) -> QVariantAnimation:
        self._fade = QVariantAnimation(self._button)
        self._fade.setDuration(HOVER_MS)
        self._fade.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._fade.valueChanged.connect(lambda _: self._button.update())
        return self._fade
