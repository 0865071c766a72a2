"""The card that shows whether and why this machine lends, with a switch and buttons to pause lending."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QApplication, QFrame, QPushButton, QVBoxLayout, QWidget

from app.api.snapshot import Lending
from app.gui.api.node_state import GONE, Link
from app.gui.app.app_context import AppContext
from app.gui.app.pool_status import COLORS, StatusKind
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.drawing import icon
from app.gui.look.theme import set_role
from app.gui.this_computer import lending_store
from app.gui.this_computer.lending_store import LendingStore
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column, line, row

PAUSES_H = (1, 4)
HOUR_S = 3600
KINDS = {
    "working": StatusKind.WORKING,
    "lending": StatusKind.WORKING,
    "ready": StatusKind.IDLE,
    "draining": StatusKind.PAUSED,
    "paused": StatusKind.PAUSED,
}


class StateCard(QFrame):
    """The first card of the page, which shows the lending state."""

    def __init__(self, services: AppContext, lending: LendingStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._services, self._lending = services, lending
        self._announced: tuple[object, object] = (None, None)  # state and reason code
        name = self.tr("Lend this machine")
        self.switch = Switch(services.theme, name, lending.switch)
        self._picture = label()
        self._sentence = paragraph("")
        self._detail = paragraph("", "caption")
        title = paragraph(name, "section")
        texts = column(title, self._sentence, self._detail, gap=sizes.XS)
        head = row(self._picture, gap=sizes.L)
        head.addLayout(texts, 1)
        head.addWidget(self.switch)
        head.setAlignment(self._picture, Qt.AlignmentFlag.AlignTop)
        head.setAlignment(self.switch, Qt.AlignmentFlag.AlignTop)
        self._line, self._buttons = line(), self._made_buttons()
        box: QVBoxLayout = column(head, self._line, self._buttons, gap=sizes.L)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        services.theme.changed.connect(self.show_state)
        lending.changed.connect(self.show_state)
        services.pool.link_changed.connect(self.show_state)
        self.show_state()

    def _made_buttons(self) -> QWidget:
        self.resume = button(self.tr("Resume lending"), self._lending.resume, "primary")
        self.pauses: list[QPushButton] = [
            button(self.tr("Pause {hours} h").format(hours=hours), self._pause(hours * HOUR_S)) for hours in PAUSES_H
        ]
        self.pauses.append(button(self.tr("Pause until I resume"), self._pause(None)))
        self.stop = button(self.tr("Stop now"), lambda: self._lending.pause(at_once=True), "danger")
        self.stop.setToolTip(self.tr("Takes all memory back immediately, even if an answer is running."))
        self.allow = button(self.tr("Allow lending"), self._lending.grant_lender_role, "primary")
        holder = QWidget()
        holder.setLayout(Flow(self.allow, self.resume, *self.pauses, self.stop, last_right=True))
        return holder

    def _pause(self, seconds: float | None) -> Callable[[], object]:
        return lambda: self._lending.pause(seconds)

    def show_state(self) -> None:
        """Show the current lending state."""
        pool = self._services.pool
        gone = pool.link not in (Link.THERE, Link.LOOKING)
        lending = None if gone else self._lending.state  # the last state of a lost node is meaningless
        known, on = self._lending.is_known and lending is not None, self._lending.is_on
        self.switch.setEnabled(known)
        self.switch.show_on(known and on)
        self._show_picture(lending.state if lending else "off")
        away = [machine.name for machine in pool.now.sorted_machines if not machine.online]
        sentence = lending_store.state_sentence(lending, away) if lending else self._unknown_sentence()
        cause = (lending.state, lending.code) if lending else (None, None)
        if sentence != self._sentence.text():
            self._sentence.setText(sentence)
            # only if the cause changes, not for every percent of the battery
            if self.isVisible() and cause != self._announced:
                announce(self, sentence)
        self._announced = cause
        self._detail.setText(self._details(lending) if lending else "")
        self._show_buttons(lending or Lending(), shown=known and on)

    def _show_buttons(self, lending: Lending, *, shown: bool) -> None:
        by_hand, forbidden = lending_store.is_manual_pause(lending), lending.code == lending_store.NO_ROLE
        focus = QApplication.focusWidget()
        had_focus = focus is not None and self._buttons.isAncestorOf(focus)
        for widget in (self._line, self._buttons):
            show_if(widget, shown)
        show_if(self.allow, forbidden)
        show_if(self.resume, by_hand)
        for pause in self.pauses:
            show_if(pause, not by_hand and not forbidden)
        show_if(self.stop, bool(lending.used_bytes) or not (by_hand or forbidden))
        if had_focus and by_hand:
            self.resume.setFocus()  # the button that the user clicked is hidden now

    def _unknown_sentence(self) -> str:
        """Explain why the state is unknown."""
        if self._services.pool.link in GONE:
            return QCoreApplication.translate("Standing", "The background service is not running.")
        return self.tr("Waiting for the background service…")

    def _details(self, lending: Lending) -> str:
        details = [lending_store.since_text(lending)]
        if lending.used_by:
            details.append(self.tr("Used by {names}").format(names=lending_store.user_names(lending)))
        elif lending.state == "ready":
            details.append(self.tr("Not in use"))
        return " · ".join(filter(None, details))

    def _show_picture(self, state: str) -> None:
        theme = self._services.theme
        kind = KINDS.get(state, StatusKind.AWAY)
        side = theme.px(sizes.XXL)
        color = getattr(theme.colors, COLORS[kind])
        self._picture.setPixmap(icon(str(kind), color).pixmap(side, side))
