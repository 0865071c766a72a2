"""The This computer page and the layout of its cards."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.app.page import Page
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.this_computer.added_engine_card import AddedEngineCard
from app.gui.this_computer.cards_card import CardsCard
from app.gui.this_computer.engines_card import EnginesCard
from app.gui.this_computer.hardware_card import HardwareCard
from app.gui.this_computer.hours_card import HoursCard
from app.gui.this_computer.lending_store import LendingStore
from app.gui.this_computer.memory_card import MemoryCard
from app.gui.this_computer.rule_controls import AutostartSwitch
from app.gui.this_computer.rules_card import RulesCard
from app.gui.this_computer.state_card import StateCard
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import bound_width, label, show_if
from app.gui.widgets.layouts import card, column, row, scrolled

SAVED_MS = 10_000  # time for which "Saved" is shown; Undo stays


class ComputerPage(Page):
    """The This computer page. Each change takes effect immediately and can be undone."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(services, self.tr("This computer"), parent)
        self.lending = LendingStore(services.client, services.pool, self)
        self.lending.failed.connect(self._failed)
        self.lending.saved.connect(self._saved)
        self._kept = label("", "muted")
        self.undo = button(self.tr("Undo"), self.lending.undo, "link")
        self.undo.setToolTip(self.tr("Undo the last change (Ctrl+Z)"))
        self.undo.hide()
        self.head.addWidget(self._kept)
        self.head.addWidget(self.undo)
        undone = QShortcut(QKeySequence.StandardKey.Undo, self, self.lending.undo)
        undone.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._silence = QTimer(self)
        self._silence.setSingleShot(True)
        self._silence.setInterval(SAVED_MS)
        self._silence.timeout.connect(self._kept.clear)
        self._cards = column(gap=sizes.L)
        self._cards.setContentsMargins(0, 0, sizes.M, 0)  # leaves space for the scroll bar
        self._place()
        self.later(
            lambda: self._add(self.state),
            lambda: self._add(self.memory),
            lambda: self._add(self.rules),
            lambda: self._add(self.hours),
            lambda: self._add(self.hardware),
            lambda: self._add(self.graphics),
            lambda: self._add(self.engines),
            lambda: self._add(self.added_engine),
            lambda: self._add(card(self.autostart)),
            self._begin,
        )

    @cached_property
    def state(self) -> StateCard:
        return StateCard(self.services, self.lending)

    @cached_property
    def memory(self) -> MemoryCard:
        return MemoryCard(self.services, self.lending)

    @cached_property
    def hours(self) -> HoursCard:
        return HoursCard(self.services, self.lending)

    @cached_property
    def rules(self) -> RulesCard:
        return RulesCard(self.services, self.lending)

    @cached_property
    def hardware(self) -> HardwareCard:
        return HardwareCard(self.services)

    @cached_property
    def graphics(self) -> CardsCard:
        return CardsCard(self.services, self.lending)

    @cached_property
    def engines(self) -> EnginesCard:
        return EnginesCard(self.services)

    @cached_property
    def added_engine(self) -> AddedEngineCard:
        return AddedEngineCard(self.services)

    @cached_property
    def autostart(self) -> AutostartSwitch:
        return AutostartSwitch(self.services)

    def _place(self) -> None:
        body, self._stack = QWidget(), QWidget()
        self._stack.setLayout(self._cards)
        bound_width(self.services.theme, self._stack, sizes.CHAT_WIDTH + sizes.SIDEBAR_WIDTH)
        self.content.addWidget(scrolled(body))
        body.setLayout(row(self._stack, None, gap=0))  # stays aligned with the title on a wide page

    def _add(self, widget: QWidget) -> None:
        self._cards.addWidget(widget)

    def _begin(self) -> None:
        """Start following the lending state, after all cards have been created."""
        self._cards.addStretch(1)
        self.lending.changed.connect(self._show_known)
        self._show_known()

    @property
    def is_busy(self) -> bool:
        return self.hardware.is_measuring or self.engines.is_changing

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.lending.watch(True)
        self.hardware.refresh()
        self.graphics.watch(True)
        self.engines.refresh()
        self.added_engine.refresh()
        self.rules.programs.refresh()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802  Qt's name
        super().hideEvent(event)
        self.lending.watch(False)
        self.graphics.watch(False)

    def _show_known(self) -> None:
        """Show the limits and rules once they are known."""
        for card_ in (self.memory, self.rules, self.hours):
            show_if(card_, self.lending.state is not None)

    def _saved(self) -> None:
        self.notice.clear()
        self._kept.setText(self.tr("Saved"))
        self.undo.setVisible(self.lending.can_undo)
        self._silence.start()
        announce(self, self.tr("Saved"))

    def _failed(self, error: AppError) -> None:
        self.fail(error, (self.tr("Try again"), self._again))

    def _again(self) -> None:
        self.notice.clear()
        self.lending.retry()
