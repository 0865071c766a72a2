"""Buttons and switches with hover effects, focus rings, and names for screen readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEasingCurve, QEvent, QPoint, QRectF, QSize, Qt, QVariantAnimation
from PySide6.QtGui import QEnterEvent, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOption,
    QStyleOptionButton,
    QStyleOptionToolButton,
    QStylePainter,
    QToolButton,
    QWidget,
)

from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.motion import may_move
from app.gui.look.theme import HOVER_MS, Theme, set_role
from app.gui.widgets.labels import lines, tooltip

# Qt style sheets cannot fade. While the pointer enters or leaves, a button is therefore painted twice: in its normal
# style, and on top of that in its hover style with changing opacity. See Feedback.

REASON = Qt.FocusReason
# reasons for which the focus returns from a menu or another window
KEPT = (REASON.ActiveWindowFocusReason, REASON.PopupFocusReason, REASON.MenuBarFocusReason)
STATE = QStyle.StateFlag


class Feedback:
    """The hover effect and the focus ring of a button.

    The hover effect fades in or out within HOVER_MS. The ring is shown only if the focus came from the keyboard.
    """

    def __init__(self, button: QAbstractButton) -> None:
        self._button = button
        self._by_pointer = False  # whether the focus came from a click, so that no ring is needed
        self._fade: QVariantAnimation | None = None  # created when the pointer enters for the first time

    @property
    def is_fading(self) -> bool:
        return self._fade is not None and self._fade.state() is QVariantAnimation.State.Running

    def hovered(self, on: bool) -> None:
        """Fade the hover effect in or out."""
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
        """Show the focus ring after a key press."""
        if self._by_pointer:
            self._by_pointer = False
            self._button.update()

    def adapt(self, option: QStyleOption) -> None:
        """Remove the focus ring from a style option if the focus was set with the pointer."""
        if self._by_pointer:
            option.state &= ~STATE.State_HasFocus

    def paint(self, option: QStyleOption, draw: Callable[[QStylePainter], object]) -> None:
        """Paint the button in its normal style, then its hover style on top at the current opacity.

        draw: paints the button in the style described by `option`.
        """
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


RETURNS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


if TYPE_CHECKING:
    _Base = QAbstractButton
else:
    _Base = object  # a Python class can have only one Qt base class


class _WithFeedback(_Base):
    """A mixin that adds Feedback to a Qt button. It must precede the Qt class in the list of base classes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._feedback = Feedback(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        self._feedback.keyed()
        super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802  Qt's name
        super().enterEvent(event)
        self._feedback.hovered(True)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802  Qt's name
        super().leaveEvent(event)
        self._feedback.hovered(False)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802  Qt's name
        self._feedback.focused(event)
        super().focusInEvent(event)


class _Button(_WithFeedback, QPushButton):
    """A push button that reacts to Return as well as to Space while it has the focus, even outside dialogs."""

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        if event.key() not in RETURNS:
            super().keyPressEvent(event)
            return
        self._feedback.keyed()
        if not event.isAutoRepeat():
            self.click()

    def initStyleOption(self, option: QStyleOptionButton) -> None:  # noqa: N802  Qt's name
        super().initStyleOption(option)
        self._feedback.adapt(option)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        if not self._feedback.is_fading:
            super().paintEvent(event)
            return
        option, control = QStyleOptionButton(), QStyle.ControlElement.CE_PushButton
        self.initStyleOption(option)
        self._feedback.paint(option, lambda painter: painter.drawControl(control, option))


class WrappingButton(_Button):
    """A button whose text wraps. `text()` returns it without line breaks."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        self._whole = ""
        super().__init__(parent)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setText(text)

    def text(self) -> str:
        return self._whole

    def setText(self, text: str) -> None:  # noqa: N802  Qt's name
        self._whole = text
        self.setAccessibleName(text)
        self._wrap()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self._size_of([self._whole])

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self._size_of([max(self._whole.split(), key=len, default="")])

    def hasHeightForWidth(self) -> bool:  # noqa: N802  Qt's name
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802  Qt's name
        return self._size_of(self._lines(width)).height()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._wrap()

    def _wrap(self) -> None:
        shown = "\n".join(self._lines(self.width()))
        if shown != super().text():
            super().setText(shown)

    def _lines(self, width: int) -> list[str]:
        around = self.sizeHint().width() - self.fontMetrics().horizontalAdvance(self._whole)
        if width >= self.sizeHint().width():
            return [self._whole]
        return lines(self._whole, self.fontMetrics(), width - around)

    def _size_of(self, lines_: list[str]) -> QSize:
        self.ensurePolished()
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.state &= ~QStyle.StateFlag.State_HasFocus  # the border is thicker with focus
        words = self.fontMetrics().size(int(Qt.TextFlag.TextShowMnemonic), "\n".join(lines_))
        kind = QStyle.ContentsType.CT_PushButton
        size = self.style().sizeFromContents(kind, option, words, self)
        air = self.fontMetrics().height() // 2 if len(lines_) > 1 else 0
        return size.expandedTo(QSize(0, words.height() + air))


def wrapping(text: str, clicked: Callable[[], object]) -> WrappingButton:
    """Return a button with wrapping text, for narrow places such as notices."""
    made = WrappingButton(text)
    made.setAutoDefault(False)
    made.clicked.connect(lambda *_: clicked())
    return made


def button(
    text: str, clicked: Callable[[], object] | None = None, role: str = "", parent: QWidget | None = None
) -> QPushButton:
    """Return a push button that calls `clicked`.

    role: primary, danger, link, inline (a link aligned with the text above it), or "".
    """
    made = _Button(parent)
    made.setText(text)
    made.setAutoDefault(role == "primary")
    if role:
        set_role(made, role)
    if clicked is not None:
        made.clicked.connect(lambda *_: clicked())
    return made


class ToolButton(_WithFeedback, QToolButton):
    """A tool button with a hover effect and a focus ring."""

    def initStyleOption(self, option: QStyleOptionToolButton) -> None:  # noqa: N802  Qt's name
        super().initStyleOption(option)
        self._feedback.adapt(option)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        if not self._feedback.is_fading:
            super().paintEvent(event)
            return
        option, control = QStyleOptionToolButton(), QStyle.ComplexControl.CC_ToolButton
        self.initStyleOption(option)
        self._feedback.paint(option, lambda painter: painter.drawComplexControl(control, option))


class IconButton(ToolButton):
    """A button that shows only an icon. Its name appears as a tooltip."""

    def __init__(
        self,
        theme: Theme,
        picture: str,
        name: str,
        clicked: Callable[[], object] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme, self._picture, self._is_stale = theme, picture, False
        self.rename(name)
        theme.changed.connect(self._repaint)
        self._paint()
        if clicked is not None:
            self.clicked.connect(lambda *_: clicked())

    def rename(self, name: str) -> None:
        self.setAccessibleName(name)
        # screen readers read the tooltip too, so it is plain text if possible
        self.setToolTip(tooltip(name) if "<" in name else name)

    def show_picture(self, picture: str) -> None:
        self._picture = picture
        self._paint()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        if self._is_stale:
            self._paint()

    def _repaint(self) -> None:
        """Repaint the icon in the colors of a new theme. A hidden button is repainted when it is next shown."""
        self._is_stale = not self.isVisible()
        if not self._is_stale:
            self._paint()

    def _paint(self) -> None:
        self._is_stale = False
        side = self._theme.px(sizes.TITLE)
        self.setIcon(icon(self._picture, self._theme.colors.text))
        self.setIconSize(QSize(side, side))


WIDTH, HEIGHT, KNOB = sizes.XL + sizes.L, sizes.XL, sizes.L


LINE = 2  # width of the focus ring


class Switch(QCheckBox):
    """A toggle switch. It calls `switched(on)` when the user toggles it, but not when `show_on` changes it."""

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
        """Set the state without calling `switched`."""
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
            painter.setPen(QPen(theme.color("accent"), LINE))
            ring = box.adjusted(-LINE - 1, -LINE - 1, LINE + 1, LINE + 1)
            painter.drawRoundedRect(ring, ring.height() / 2, ring.height() / 2)
        on = self.isChecked()
        fill = "accent" if on and self.isEnabled() else "hairline" if on else "card"
        painter.setPen(QPen(theme.color("accent" if on else "border"), 1))
        painter.setBrush(theme.color(fill))
        painter.drawRoundedRect(box, height / 2, height / 2)
        gap = (height - knob) / 2
        left = box.right() - gap - knob if on else box.left() + gap
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("on_accent" if on else "border"))
        painter.drawEllipse(QRectF(left, box.top() + gap, knob, knob))
