"""What a model thought before an answer: folded under a line that says for how long, opened by a click or a key."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QWidget

from app.gui.chat.message.blocks import Look
from app.gui.chat.message.body import Body
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.layouts import column, row


class ThoughtView(QWidget):
    """Hidden where nothing was thought. Its text is laid out only once somebody opens it."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = look
        self._text, self._growing = "", False
        self.body: Body | None = None
        self.fold = button("", self.turn, "fold")
        self._frame = QFrame()
        set_role(self._frame, "thought")
        self._inside = column(gap=0)
        self._inside.setContentsMargins(sizes.M, sizes.XS, 0, sizes.XS)
        self._frame.setLayout(self._inside)
        self._frame.hide()
        box = column(row(self.fold, None, gap=0), self._frame, gap=sizes.XS)
        box.setContentsMargins(0, 0, 0, sizes.XS)  # the answer stands apart
        self.setLayout(box)
        self.hide()

    @property
    def is_open(self) -> bool:
        return not self._frame.isHidden()

    def show_thought(
        self, text: str, seconds: float | None, n_tokens: int | None, *, growing: bool
    ) -> None:
        """growing: it is being thought now."""
        self._text, self._growing = text, growing
        self.setVisible(bool(text))
        if growing and n_tokens:
            words = self.tr("Thinking… %n token(s)", "", n_tokens)
        elif growing:
            words = self.tr("Thinking…")
        elif seconds:
            words = self.tr("Thought for {time}").format(
                time=formats.whole_seconds(max(1, seconds))
            )
        else:
            words = self.tr("Thought")
        self.fold.setText(words)
        self._tell()

    def turn(self) -> None:
        """Open or fold it."""
        self._frame.setVisible(not self.is_open)
        self._tell()

    def restyle(self) -> None:
        """The theme is another."""
        self._paint()
        if self.body is not None:
            self.body.restyle()

    def _tell(self) -> None:
        state = self.tr("opened") if self.is_open else self.tr("folded")
        self.fold.setAccessibleName(f"{self.fold.text()}, {state}")
        self._paint()
        if self.is_open:
            if self.body is None:
                self.body = Body(self._look, is_markdown=True)
                self._inside.addWidget(self.body)
            self.body.show_text(self._text, growing=self._growing)

    def _paint(self) -> None:
        picture = "down" if self.is_open else "right"
        self.fold.setIcon(icon(picture, self._look.theme.colours.muted))
