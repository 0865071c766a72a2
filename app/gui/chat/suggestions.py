"""What stands where a chat is still empty: a greeting, and questions to begin with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.gui import theme as sizes
from app.gui.parts.buttons import button
from app.gui.parts.layouts import column, row
from app.gui.parts.text import label, paragraph


class Suggestions(QWidget):
    """`chosen(question)` when one is pressed. The Guide knows Poolhouse and little else."""

    def __init__(self, chosen: Callable[[str], object]) -> None:
        super().__init__()
        self._chosen = chosen
        self.title = label("", "title")
        self.words = paragraph("", "muted")
        for one in (self.title, self.words):
            one.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.words.setFixedWidth(sizes.CHAT_WIDTH * 2 // 3)
        self.buttons = [button("", partial(self._press, n)) for n in range(3)]
        self._questions: tuple[str, ...] = ()
        list_ = column(*self.buttons, gap=sizes.S)
        inner = column(None, self.title, row(None, self.words, None), gap=sizes.M)
        inner.addSpacing(sizes.M)
        inner.addLayout(row(None, list_, None))
        inner.addStretch(1)
        self.setLayout(inner)
        self.tell(is_guide=True)

    def _press(self, place: int) -> None:
        self._chosen(self._questions[place])

    def tell(self, *, is_guide: bool) -> None:
        """Questions that whoever answers can answer."""
        self.title.setText(self.tr("What would you like to know?"))
        if is_guide:
            self.words.setText(
                self.tr(
                    "The Guide answers: a small model that comes with Poolhouse and knows how it is used."
                )
            )
            self._questions = (
                self.tr("What is Poolhouse?"),
                self.tr("How do I add a computer?"),
                self.tr("Does anything leave my home?"),
            )
        else:
            self.words.setText(self.tr("What you write stays in your household."))
            self._questions = (
                self.tr("Explain how a rainbow forms, in three sentences."),
                self.tr("Plan a weekend in the mountains with two children."),
                self.tr("Write a Python function that finds duplicate files."),
            )
        for one, question in zip(self.buttons, self._questions, strict=True):
            one.setText(question)
