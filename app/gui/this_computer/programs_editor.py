"""The programs beside which nothing is lent: a list, with the running ones and installed games offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QWidget

from app.core.errors import AppError
from app.core.lending.policy import MAX_PROGRAM_CHARACTERS, MAX_PROGRAMS, executable
from app.gui.api.node_client import Call, Json
from app.gui.app.app_context import AppContext
from app.gui.look import theme as sizes
from app.gui.this_computer.lending_state import Lending
from app.gui.this_computer.rule_row import RuleRow
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.fields import DropDown
from app.gui.widgets.labels import Elided, label
from app.gui.widgets.layouts import clear, column, row

SHOWN_CHARACTERS = 12  # at least, of the name that is typed


class ProgramsEditor(QWidget):
    """Adds and removes at once; the page's Undo brings a removed one back."""

    def __init__(self, services: AppContext, lending: Lending, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services, self._lending = services, lending
        self._call: Call | None = None
        self._shown: tuple[tuple[str, bool], ...] | None = None
        self.entry = _Entry(self.look)
        self.entry.setAccessibleName(self.tr("Program to add"))
        edit = self.entry.lineEdit()
        if edit is not None:
            edit.setAccessibleName(self.entry.accessibleName())
            edit.setPlaceholderText(self.tr("Name of a program"))
            edit.returnPressed.connect(self._add)
        self.add = button(self.tr("Add"), self._add)
        self._row = RuleRow(self.tr("While these programs run"))
        self._list = column(gap=0)
        entry = row(self.entry, self.add, gap=sizes.S)
        entry.setStretch(0, 1)
        self.setLayout(column(self._row, self._list, entry, gap=sizes.S))
        lending.changed.connect(self.show_state)
        self.show_state()

    def show_state(self) -> None:
        """As the node has it now."""
        names = [str(name) for name in self._lending.rules.get("programs") or []]
        runs = {str(name) for name in self._lending.readings.get("programs") or []}
        full = len(names) >= MAX_PROGRAMS
        self.entry.setEnabled(self._lending.is_known and not full)
        self.add.setEnabled(self._lending.is_known and not full)
        self._row.say(self._words(names, full))
        shown = tuple((name, executable(name) in runs) for name in names)
        if shown != self._shown:
            self._shown = shown
            clear(self._list)
            for name, running in shown:
                self._list.addLayout(self._line(name, running))

    def _words(self, names: list[str], full: bool) -> str:
        if full:
            return self.tr("The list is full. Remove one to add another.")
        if not names:
            return self.tr("No program is listed. Add a game, or whatever needs the machine.")
        return self.tr("Lending resumes when they are closed.")

    def _line(self, name: str, running: bool) -> QHBoxLayout:
        remove = IconButton(
            self._services.theme, "close", self.tr("Remove {name}").format(name=name), lambda: self._remove(name)
        )
        words = self.tr("running now") if running else self.tr("not running")
        line = row(Elided(name), label(words, "warning" if running else "caption"), remove, gap=sizes.M)
        line.setStretch(0, 1)
        return line

    def _add(self) -> None:
        name = self.entry.program[:MAX_PROGRAM_CHARACTERS]
        listed = [str(one) for one in self._lending.rules.get("programs") or []]
        if name and executable(name) and executable(name) not in map(executable, listed):
            self._lending.change({"programs": [*listed, name]})
        self.entry.setEditText("")

    def _remove(self, name: str) -> None:
        listed = [str(one) for one in self._lending.rules.get("programs") or []]
        self._lending.change({"programs": [one for one in listed if one != name]})

    def look(self) -> None:
        """Ask what runs now, for the list of the entry."""
        if self._call is None:
            self._call = self._services.client.get("/programs", self._offered, self._no_offer)

    def _offered(self, answer: Json) -> None:
        self._call = None
        listed = {executable(str(one)) for one in self._lending.rules.get("programs") or []}
        games = {str(one["program"]): str(one["name"]) for one in answer.get("games") or []}
        runs = [str(name) for name in answer.get("programs") or []]
        both = dict.fromkeys([*runs, *games])  # what runs comes first
        named = {one: self._offer(one, games.get(one, "")) for one in both if one not in listed}
        self.entry.offer(named)

    def _offer(self, program: str, game: str) -> str:
        return self.tr("{game} ({program})").format(game=game, program=program) if game else program

    def _no_offer(self, error: AppError) -> None:
        """A name can be typed without it."""
        self._call = None


class _Entry(DropDown):
    """Type a name, or open the list of what runs and of games."""

    def __init__(self, opened: Callable[[], object]) -> None:
        super().__init__()
        self._opened = opened
        self.setEditable(True)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(SHOWN_CHARACTERS)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def showPopup(self) -> None:  # noqa: N802  Qt's name
        self._opened()
        super().showPopup()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        """Scrolling the page must not pick a program under the pointer."""
        event.ignore()

    @property
    def program(self) -> str:
        """What is typed, or stands behind what was chosen."""
        at = self.findText(self.currentText(), Qt.MatchFlag.MatchExactly)
        return str(self.itemData(at)) if at >= 0 else self.currentText().strip()

    def offer(self, named: Mapping[str, str]) -> None:
        """Programs, each with its words, in the list; what is typed stays."""
        typed = self.currentText()
        self.clear()
        for program, text in named.items():
            self.addItem(text, program)
        self.setEditText(typed)
        if self.view().isVisible():
            super().showPopup()  # as high as the list is now
