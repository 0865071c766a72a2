"""The placeholder of an empty page or list: a title, a sentence, a button."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.gui.look import sizes
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column, row


class EmptyState(QWidget):
    """A centered placeholder with at least one button."""

    def __init__(
        self, title: str, sentence: str, button: QPushButton, *more: QPushButton, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.title, self.sentence = label(title, "section"), paragraph(sentence, "muted")
        self.title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.sentence.setMaximumWidth(sizes.CHAT_WIDTH // 2 + sizes.XXL)
        middle = row(None, self.sentence, None)
        middle.setStretch(1, 100)  # up to its greatest width
        inner = column(None, self.title, middle, gap=sizes.S)
        inner.addSpacing(sizes.S)
        inner.addLayout(row(None, button, *more, None))
        inner.addStretch(1)
        self.setLayout(inner)
