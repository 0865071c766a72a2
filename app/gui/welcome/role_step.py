"""Third step: what this computer is for."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QRadioButton

from app.gui.app.app_context import Services
from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.pool import machine_words
from app.gui.settings.daily_check import DailyCheck
from app.gui.this_computer.autostart_switch import AutostartSwitch
from app.gui.welcome.step import Failed, Step, Then
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import card, column

KEY, BOTH, LEND = "first_run/role", "both", "lend"


class RoleStep(Step):
    """Use models and lend, or lend only: which page opens first. Lending itself is on This computer."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            services,
            self.tr("What is this computer for?"),
            self.tr("Either way its memory helps the others, and you can pause that at any time."),
        )
        self._group = QButtonGroup(self)
        self.both = self._choice(
            machine_words.may(machine_words.USE_AND_LEND),
            self.tr("You chat here. While you do not need its memory, the others may use it."),
        )
        self.lend = self._choice(
            machine_words.may(machine_words.LEND),
            self.tr("Nobody chats here. It opens with what it lends, and to whom."),
        )
        chosen = self.lend if services.preferences.text(KEY, BOTH) == LEND else self.both
        chosen.setChecked(True)
        self.content.addSpacing(sizes.S)
        self.content.addWidget(card(AutostartSwitch(services)))
        self.updates = DailyCheck(services)
        self.content.addWidget(self.updates)

    def entered(self) -> None:
        self.updates.look()
        button = self._group.checkedButton()
        if button is not None:
            button.setFocus()

    def cancel(self) -> None:
        self.updates.end()
        super().cancel()

    def apply(self, then: Then, failed: Failed) -> None:
        self.services.preferences.keep(KEY, LEND if self.lend.isChecked() else BOTH)
        then()

    def _choice(self, title: str, sentence: str) -> QRadioButton:
        option = Option(title, sentence)
        self._group.addButton(option.button)
        self.content.addWidget(option)
        return option.button


class Option(QFrame):
    """A radio button with a sentence, in a card that can be clicked anywhere."""

    def __init__(self, title: str, sentence: str) -> None:
        super().__init__()
        self.button = QRadioButton(title)
        self.button.setAccessibleDescription(sentence)
        self.button.toggled.connect(self._paint)
        told = paragraph(sentence, "muted")
        told.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        told.setContentsMargins(sizes.XL + sizes.S, 0, 0, 0)
        box = column(self.button, told, gap=0)
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.L)
        self.setLayout(box)
        self._paint()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        self.button.setChecked(True)
        self.button.setFocus()
        super().mouseReleaseEvent(event)

    def _paint(self) -> None:
        set_role(self, "option-chosen" if self.button.isChecked() else "option")
