"""A whole message as text, to select from: a selection in the conversation ends at its blocks."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocumentFragment, QTextOption
from PySide6.QtWidgets import QDialogButtonBox, QPlainTextEdit, QWidget

from app.gui.chat.message import segments
from app.gui.chat.message.segments import Kind
from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.layouts import column

LONG_LINE = 4_000  # is broken to be seen: one endless line takes seconds to lay out


def as_text(markdown: str) -> str:
    """Markdown without its signs."""
    parts = []
    for segment in segments.segments(markdown):
        if segment.kind is Kind.TEXT:
            parts.append(QTextDocumentFragment.fromHtml(segment.content).toPlainText().rstrip())
        else:
            parts.append(segment.content)
    return "\n\n".join(parts)


class TextWindow(Dialog):
    """Opens beside the conversation and stays while one works on."""

    def __init__(self, theme: Theme, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Message as text"))
        self.field = QPlainTextEdit()
        self.field.setAccessibleName(self.tr("Message as text"))
        self.field.setReadOnly(True)
        self.field.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.field.setPlainText("\n".join(_broken(text)))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        box = column(self.field, buttons, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self.begin_at(theme.px(sizes.CHAT_WIDTH), theme.px(sizes.CHAT_WIDTH * 2 // 3))


def _broken(text: str) -> list[str]:
    return [line[at : at + LONG_LINE] for line in text.split("\n") for at in range(0, max(1, len(line)), LONG_LINE)]
