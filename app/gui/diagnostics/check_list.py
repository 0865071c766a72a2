"""All checks in a list: how each ended, in a picture and a word, and why."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from app.core.check import Check
from app.gui.diagnostics.finding_words import advice, cause, name_of, word
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.theme import Theme
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import clear


class CheckList(QWidget):
    """`show_checks` replaces what was there."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(sizes.S)
        self._grid.setColumnStretch(3, 1)
        self._checks: Sequence[Check] = ()
        theme.changed.connect(self._repaint)

    def show_checks(self, checks: Sequence[Check]) -> None:
        self._checks = checks
        clear(self._grid)
        self._grid.setHorizontalSpacing(
            self._theme.px(sizes.M)
        )  # else a name runs into what is said of it
        for number, check in enumerate(checks):
            self._add(number, check)

    def _repaint(self) -> None:
        self.show_checks(self._checks)

    def _add(self, number: int, check: Check) -> None:
        picture, token, said = word(check)
        mark = label()
        side = self._theme.px(sizes.SECTION)
        colour = getattr(self._theme.colours, token)
        mark.setPixmap(icon(picture, colour).pixmap(side, side))
        result, name = label(said, token), label(name_of(check))
        why = " ".join(part for part in (cause(check), advice(check)) if part)
        about = paragraph(why if check.ok is not True else cause(check), "muted")
        about.setAccessibleName(f"{name.text()}: {said}. {about.text()}")
        for column, widget in enumerate((mark, result, name, about)):
            self._grid.addWidget(widget, number, column, Qt.AlignmentFlag.AlignTop)
