"""One rule: what it is, what is so now, its value, its switch."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.gui.look import theme as sizes
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column


class RuleRow(QWidget):
    """`reading` is the line below the title."""

    def __init__(self, title: str, *controls: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = label(title)
        self.title.setWordWrap(True)
        self.reading = paragraph("", "caption")
        texts = QWidget()
        texts.setLayout(column(self.title, self.reading, gap=0))
        self.setLayout(Beside(texts, *controls, gap=sizes.M))

    def say(self, reading: str) -> None:
        """What is so now."""
        self.reading.setText(reading)
        show_if(self.reading, bool(reading))
