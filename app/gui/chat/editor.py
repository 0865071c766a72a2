"""A message being edited, in the place of its text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.gui import theme as sizes
from app.gui.parts.buttons import button
from app.gui.parts.layouts import column, row
from app.gui.theme import Theme

LINES = 12


class Editor(QWidget):
    """`done(text)` with another text, `gone()` when nothing is to change."""

    def __init__(
        self,
        theme: Theme,
        text: str,
        accept: str,
        done: Callable[[str], None],
        gone: Callable[[], None],
    ) -> None:
        super().__init__()
        self._before, self._done, self._gone = text, done, gone
        self.field = QPlainTextEdit(text)
        self.field.setAccessibleName(self.tr("Text of the message"))
        self.field.setTabChangesFocus(True)
        line = self.field.fontMetrics().lineSpacing()
        n_lines = min(LINES, max(2, text.count("\n") + 2))
        self.field.setFixedHeight(n_lines * line + 2 * theme.px(sizes.M))
        self.accept = button(accept, self._accept)
        cancel = button(self.tr("Cancel"), gone)
        self.setLayout(column(self.field, row(None, cancel, self.accept), gap=sizes.S))

    def begin(self) -> None:
        self.field.setFocus()
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() == Qt.Key.Key_Escape:
            self._gone()
        elif enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._accept()
        else:
            super().keyPressEvent(event)

    def _accept(self) -> None:
        text = self.field.toPlainText()
        if text.strip() and text != self._before:
            self._done(text)
        else:
            self._gone()
