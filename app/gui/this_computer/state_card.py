"""Whether this machine lends: the switch, one line with the reason, pauses."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QApplication, QFrame, QPushButton, QVBoxLayout, QWidget

from app.gui.api.node_client import Json
from app.gui.api.node_state import GONE, Link
from app.gui.app.app_context import AppContext
from app.gui.app.pool_status import COLOURS, Kind
from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.look.icons import icon
from app.gui.look.theme import set_role
from app.gui.this_computer import lending_words
from app.gui.this_computer.lending_state import Lending
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column, line, row

PAUSES_H = (1, 4)
HOUR_S = 3600
KINDS = {
    "working": Kind.WORKING,
    "lending": Kind.WORKING,
    "ready": Kind.IDLE,
    "draining": Kind.PAUSED,
    "paused": Kind.PAUSED,
}


class StateCard(QFrame):
    """The first thing on the page."""

    def __init__(self, services: AppContext, lending: Lending, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._services, self._lending = services, lending
        self._told: tuple[object, object] = (None, None)  # to a screen reader
        name = self.tr("Lend this machine")
        self.switch = Switch(services.theme, name, self._switched)
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
        self.stop.setToolTip(self.tr("Takes all memory back at once, also from a running answer."))
        self.allow = button(self.tr("Allow it to lend"), self._lending.allow, "primary")
        holder = QWidget()
        holder.setLayout(Flow(self.allow, self.resume, *self.pauses, self.stop, last_right=True))
        return holder

    def _pause(self, seconds: float | None) -> Callable[[], object]:
        return lambda: self._lending.pause(seconds)

    def _switched(self, on: bool) -> None:
        self._lending.switch(on)

    def show_state(self) -> None:
        """As the node says it is now."""
        gone = self._services.pool.link not in (Link.THERE, Link.LOOKING)
        state = {} if gone else self._lending.state  # what a node said last that is no more
        known = self._lending.is_known and bool(state)
        on = self._lending.is_on
        self.switch.setEnabled(known)
        self.switch.show_on(known and on)
        self._show_picture(str(state.get("state") or "off"))
        sentence = lending_words.state_sentence(state, self._services.pool.away) if state else self._untold()
        cause = state.get("state"), state.get("code")
        if sentence != self._sentence.text():
            self._sentence.setText(sentence)
            if self.isVisible() and cause != self._told:  # not each new percent of the battery
                announce(self, sentence)
        self._told = cause
        self._detail.setText(self._details(state))
        by_hand, forbidden = (lending_words.is_by_hand(state), state.get("code") == lending_words.NO_ROLE)
        focus = QApplication.focusWidget()
        was_there = focus is not None and self._buttons.isAncestorOf(focus)
        for widget in (self._line, self._buttons):
            show_if(widget, known and on)
        show_if(self.allow, forbidden)
        show_if(self.resume, by_hand)
        for one in self.pauses:
            show_if(one, not by_hand and not forbidden)
        show_if(self.stop, bool(state.get("used_bytes")) or not (by_hand or forbidden))
        if was_there and by_hand:
            self.resume.setFocus()  # what was pressed is hidden now

    def _untold(self) -> str:
        """Why nothing is known."""
        if self._services.pool.link in GONE:
            return QCoreApplication.translate("Standing", "The background service is not running.")
        return self.tr("Asking the background service…")

    def _details(self, state: Json) -> str:
        parts = [lending_words.since(state)] if state else []
        if state.get("used_by"):
            parts.append(self.tr("Used by {names}").format(names=lending_words.users(state)))
        elif state.get("state") == "ready":
            parts.append(self.tr("Nobody uses it now"))
        return " · ".join(part for part in parts if part)

    def _show_picture(self, state: str) -> None:
        theme = self._services.theme
        kind = KINDS.get(state, Kind.AWAY)
        side = theme.px(sizes.XXL)
        colour = getattr(theme.colours, COLOURS[kind])
        self._picture.setPixmap(icon(str(kind), colour).pixmap(side, side))
