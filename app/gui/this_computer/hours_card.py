"""When this machine lends: always, or in the hours of a week."""

from __future__ import annotations

from PySide6.QtCore import QDateTime
from PySide6.QtWidgets import QFrame, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from app.core.errors import AppError
from app.core.lending.hours import MAX_CHARACTERS, MAX_SPANS, hours_text, read_hours, within
from app.gui.app.app_context import AppContext
from app.gui.app.preferences import Preferences
from app.gui.look import theme as sizes
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.this_computer.lending_state import Lending
from app.gui.this_computer.rule_row import RuleRow
from app.gui.this_computer.switch import Switch
from app.gui.this_computer.week import Cells, cells_of, is_exact, spans_of, text_of
from app.gui.this_computer.week_grid import WeekGrid
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column

ALWAYS = "always"
NIGHTS, NIGHTS_AND_WEEKENDS = "mon-sun 22:00-07:00", "mon-fri 18:00-08:00, sat, sun"
KEPT = "lending/hours"  # what was painted before it was switched off


class HoursCard(QFrame):
    """A switch; below it the week, as a table to paint and as text."""

    def __init__(self, services: AppContext, lending: Lending, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._lending = lending
        self._preferences: Preferences = services.preferences
        title = self.tr("Only at certain hours")
        self.switch = Switch(services.theme, title, self._switched)
        self._row = RuleRow(title, self.switch)
        set_role(self._row.title, "section")
        self.grid = WeekGrid(services.theme)
        self.grid.painted.connect(self._painted)
        self.text = QLineEdit()
        self.text.setAccessibleName(self.tr("Hours as text"))
        self.text.setMaxLength(MAX_CHARACTERS)
        self.text.editingFinished.connect(self._typed)
        self._problem = paragraph("", "error")
        self._problem.hide()
        self._week = QWidget()
        self._week.setLayout(self._laid_out())
        box = column(self._row, self._week, gap=sizes.L)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        lending.changed.connect(self.show_state)
        self.show_state()

    def _laid_out(self) -> QVBoxLayout:
        self.text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        presets = Flow(
            label(self.tr("As text"), "muted"),
            self.text,
            button(self.tr("Nights"), lambda: self._choose(NIGHTS)),
            button(self.tr("Nights and weekends"), lambda: self._choose(NIGHTS_AND_WEEKENDS)),
        )
        return column(self.grid, presets, self._problem, gap=sizes.M)

    def show_state(self) -> None:
        """As the node has it now."""
        if not self._lending.is_known:
            self.switch.setEnabled(False)
            self._week.hide()
            return
        text = str(self._lending.rules.get("hours") or ALWAYS)
        spans = read_hours(text)
        limited = bool(spans)
        self.switch.setEnabled(True)
        self.switch.show_on(limited)
        self._week.setVisible(limited)
        if not self._lending.is_changing:  # else hours that are painted quickly would come undone
            self.grid.show_cells(cells_of(spans))
        if not self.text.hasFocus():
            self.text.setText(text)
        self._row.say(self._reading(limited, text))

    def _reading(self, limited: bool, text: str) -> str:
        if not limited:
            return self.tr("Lends at any hour.")
        now = QDateTime.currentDateTime()
        minute = now.time().hour() * 60 + now.time().minute()
        inside = within(read_hours(text), now.date().dayOfWeek() - 1, minute)
        words = self.tr("Now it may lend.") if inside else self.tr("Now it does not lend.")
        if not is_exact(read_hours(text)):
            words += " " + self.tr("The table shows whole hours only; the text is exact.")
        return words

    def _switched(self, on: bool) -> None:
        self._choose(self._preferences.text(KEPT, NIGHTS_AND_WEEKENDS) if on else ALWAYS)

    def _painted(self, cells: Cells) -> None:
        spans = spans_of(cells)
        if not cells:
            self._refuse(self.tr("Leave at least one hour, or turn lending off above."))
        elif len(spans) > MAX_SPANS or len(hours_text(spans)) > MAX_CHARACTERS:
            self._refuse(self.tr("That is too finely divided. Use longer stretches."))
        else:
            self._choose(text_of(cells))

    def _typed(self) -> None:
        if not self.text.isModified():
            return
        self.text.setModified(False)
        try:
            self._choose(hours_text(read_hours(self.text.text())))
        except AppError as error:
            self._problem.setText(said(error))
            self._problem.show()

    def _refuse(self, sentence: str) -> None:
        """Say why, and show what is in force."""
        self.show_state()
        self._problem.setText(sentence)
        self._problem.show()

    def _choose(self, text: str) -> None:
        self._problem.hide()
        if text != ALWAYS:
            self._preferences.keep(KEPT, text)
        self._lending.change({"hours": text})
