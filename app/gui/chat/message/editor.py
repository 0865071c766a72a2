"""A message being edited, in the place of its text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.gui.chat.message.wrapped import Wrapped
from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.escape_key import Escape
from app.gui.widgets.flow import Flow
from app.gui.widgets.layouts import column, held

LINES, ENDLESS = 12, 1 << 20


class Editor(QWidget):
    """`done(text)` with another text, `gone()` when nothing is to change. same_too: the text of before is done, too."""

    def __init__(
        self,
        theme: Theme,
        text: str,
        accept: str,
        done: Callable[[str], None],
        gone: Callable[[], None],
        *,
        same_too: bool = False,
    ) -> None:
        super().__init__()
        self._before, self._done, self._gone = None if same_too else text, done, gone
        self.field = QPlainTextEdit(text)
        self.field.setAccessibleName(self.tr("Text of the message"))
        self.field.setTabChangesFocus(True)
        self._edge = 2 * theme.px(sizes.M)
        self.accept = button(accept, self._accept)
        cancel = button(self.tr("Cancel"), gone)
        keys = self.tr("Ctrl+Enter: {accept}. Esc: {cancel}.")
        self.keys = Wrapped(keys.format(accept=accept, cancel=cancel.text()), "caption")
        self._flow = Flow(cancel, self.accept, right_from=0)
        self._below = held(self._flow)
        self.setLayout(column(self.field, self.keys, self._below, gap=sizes.S))
        self.field.textChanged.connect(self._fit)
        Escape(self.field, gone)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        """As high as what was written needs, up to a few lines; in a narrow column the buttons stand one
        under the other.
        """
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        measure, wide = self.field.fontMetrics(), self.width() - self._edge
        wraps = Qt.TextFlag.TextWordWrap.value
        written = measure.boundingRect(
            QRect(0, 0, wide, ENDLESS), wraps, self.field.toPlainText()
        ).height()
        n_lines = min(LINES, max(2, written // measure.lineSpacing() + 1))
        self.field.setFixedHeight(n_lines * measure.lineSpacing() + self._edge)
        self._below.setFixedHeight(self._flow.heightForWidth(self.width()))

    def begin(self) -> None:
        self.field.setFocus()
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._accept()
        else:
            super().keyPressEvent(event)

    def _accept(self) -> None:
        text = self.field.toPlainText()
        if text.strip() and text != self._before:
            self._done(text)
        else:
            self._gone()
