"""The buttons below the details, made anew when others are possible."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.gui.look import theme as sizes
from app.gui.models.details.model_actions import Action, Do
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.layouts import clear

GOING = (Do.DELETE, Do.REMOVE)  # they stand apart, at the far end


class ActionBar(QWidget):
    """`pressed` with what to do."""

    pressed = Signal(object)  # Do

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Action] = []
        self.buttons: dict[Do, QPushButton] = {}
        self._row = Flow(gap=sizes.S)
        self.setLayout(self._row)

    def show_actions(self, actions: list[Action]) -> None:
        """These, in this order; the same ones are left alone, with their focus."""
        if actions == self._shown:
            return
        focused = next((do for do, made in self.buttons.items() if made.hasFocus()), None)
        self._shown = actions
        clear(self._row)
        self.buttons = {}
        self._row.right_from = sum(action.do not in GOING for action in actions)
        for action in actions:
            self._row.addWidget(self._made(action))
        if focused in self.buttons:
            self.buttons[focused].setFocus()

    def focus(self) -> None:
        """To the first that can be pressed."""
        for made in self.buttons.values():
            if made.isEnabled():
                made.setFocus()
                return

    def _made(self, action: Action) -> QPushButton:
        made = button(action.text, lambda: self.pressed.emit(action.do), action.role)
        made.setEnabled(action.enabled)
        self.buttons[action.do] = made
        return made
