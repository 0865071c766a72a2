"""An option in the first run, shown as a radio button on a card."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFocusEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QRadioButton

from app.gui.look import sizes
from app.gui.look.theme import set_role
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column, layout_widget

REASON = Qt.FocusReason


class Option(QFrame):
    """A radio button with an explanation, on a card that can be clicked anywhere.

    The card shows the button's focus ring, but only if the focus came from the keyboard. figure: a short text to the
    right of the title.
    """

    def __init__(self, title: str, sentence: str, figure: str = "") -> None:
        super().__init__()
        self._has_ring = False
        self.button = QRadioButton()
        set_role(self.button, "on-card")
        self.button.toggled.connect(self._paint)
        self.button.installEventFilter(self)
        self.sentence, self.figure = paragraph("", "muted"), label("", "muted")
        for words in (self.sentence, self.figure):
            words.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        head = layout_widget(Beside(self.button, self.figure, gap=sizes.S))
        body = column(head, self.sentence, gap=sizes.XS)
        body.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.M)
        body.addStretch(1)
        self.setLayout(body)
        self.say(title, sentence, figure)
        self._paint()

    def say(self, title: str, sentence: str, figure: str = "") -> None:
        """Replace all texts."""
        self.button.setText(title)
        self.sentence.setText(sentence)
        self.figure.setText(figure)
        self.figure.setVisible(bool(figure))
        self.button.setAccessibleDescription(" ".join(filter(None, (sentence, figure))))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        self.button.setFocus(REASON.MouseFocusReason)
        self.button.click()
        super().mouseReleaseEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if isinstance(event, QFocusEvent):
            self._has_ring = event.gotFocus() and event.reason() is not REASON.MouseFocusReason
            self._paint()
        return super().eventFilter(watched, event)

    def _paint(self) -> None:
        role = "option-chosen" if self.button.isChecked() else "option"
        set_role(self, f"{role}-focused" if self._has_ring else role)
