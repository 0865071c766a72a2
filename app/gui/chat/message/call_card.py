"""The cards of an answer's tool calls, with each call, the user's decision, and the collapsed result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication, QFrame, QPushButton, QWidget

from app.core.tools.call_outcomes import INTERRUPTED
from app.core.tools.chat_calls import CallRecord, CallRound
from app.core.tools.shown_values import shown_values, visible
from app.gui.chat.message.body import Body, MessageServices
from app.gui.look import formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column, layout_widget, row

Decide = Callable[[str], object]  # receives the decision and the call's ID, separated by a space
ONCE, IN_CHAT, DENY = "once", "chat", "deny"


class CallCard(QFrame):
    """The card of one call."""

    def __init__(self, services: MessageServices, call: CallRecord, decide: Decide) -> None:
        super().__init__()
        self._services, self._decide = services, decide
        self.call: CallRecord | None = None
        set_role(self, "code")
        self._title = paragraph("", "who")
        self._source = paragraph("", "caption")
        self._arguments = Body(services, is_markdown=False)
        self._arguments.more.clicked.connect(self._update_choice)
        self._state = paragraph("", "caption")
        self.once = self._button(_tr("Allow once"), ONCE)
        self.in_chat = self._button(_tr("Always allow this tool in this chat"), IN_CHAT)
        self.deny = self._button(_tr("Don't allow"), DENY)
        self._buttons = layout_widget(Flow(self.once, self.in_chat, self.deny))
        self.fold = button("", self.toggle, "fold")
        self._result: Body | None = None
        self._inside = column(gap=sizes.XS)
        self._frame = QFrame()
        set_role(self._frame, "thought")
        self._frame.setLayout(self._inside)
        self._inside.setContentsMargins(sizes.M, sizes.XS, 0, sizes.XS)
        self._frame.hide()
        box = column(
            self._title,
            self._source,
            self._arguments,
            self._state,
            self._buttons,
            layout_widget(row(self.fold, None, gap=0)),
            self._frame,
            gap=sizes.XS,
        )
        box.setContentsMargins(sizes.M, sizes.S, sizes.M, sizes.S)
        self.setLayout(box)
        self._is_deciding = False
        self.show_call(call, decides=False)

    @property
    def is_open(self) -> bool:
        return not self._frame.isHidden()

    def show_call(self, call: CallRecord, *, decides: bool) -> None:
        """Show a call.

        decides: whether the user can decide about it now.
        """
        asks = decides and call.waits
        if call.state == "running" and not decides:  # the window was closed in the middle of it
            call = msgspec.structs.replace(call, state="interrupted")
        if self.call == call and self._is_deciding == asks:
            return
        before, self.call, self._is_deciding = self.call, call, asks
        tool, server = visible(call.tool or call.name), call.server or _tr("no tool server")
        if asks:
            self._title.setText(_tr("The model wants to use {tool} from {server}").format(tool=tool, server=server))
        else:
            self._title.setText(_tr("{tool} from {server}").format(tool=tool, server=server))
        self._source.setVisible(asks)
        if before is None or before.arguments != call.arguments:
            self._arguments.show_text("\n".join(shown_values(call.arguments)) or _tr("(no values)"))
        self._state.setText(_state_words(call, asks=asks))
        self._state.setVisible(bool(self._state.text()))
        if not asks and self._buttons.isAncestorOf(QApplication.focusWidget() or self):
            self.setFocus()
        self._buttons.setVisible(asks)
        self._update_choice()
        self.fold.setVisible(call.state == "done")
        self._update_result()
        self.setAccessibleName(f"{self._title.text()}. {self._state.text()}")

    def toggle(self) -> None:
        """Expand or collapse the result."""
        self._frame.setVisible(not self.is_open)
        self._update_result()

    def restyle(self) -> None:
        """Apply the new theme."""
        self._arguments.restyle()
        if self._result is not None:
            self._result.restyle()
        self._update_result()

    def _update_choice(self) -> None:
        """Enable the Allow buttons only if all values of the call are shown."""
        is_whole = self._arguments.more.isHidden()
        words = _tr("The model wrote these values. Check them before you allow the call.")
        if not is_whole:
            words = _tr("The model wrote these values. Show all of them before you allow the call.")
        self._source.setText(words)
        self.once.setEnabled(is_whole)
        self.in_chat.setEnabled(is_whole)

    def _update_result(self) -> None:
        call = self.call
        if call is None or call.state != "done":
            return
        words = _tr("Result from {server}, {count} characters").format(
            server=call.server, count=formats.number(len(call.result))
        )
        self.fold.setText(words)
        state = _tr("opened") if self.is_open else _tr("folded")
        self.fold.setAccessibleName(f"{words}, {state}")
        self.fold.setIcon(icon("down" if self.is_open else "right", self._services.theme.colors.muted))
        if not self.is_open:
            return
        if self._result is None:
            warning = _tr("This text comes from the tool server. It can be wrong, and it can try to mislead the model.")
            self._result = Body(self._services, is_markdown=False)
            self._inside.addWidget(paragraph(warning, "caption"))
            self._inside.addWidget(self._result)
        self._result.show_text(call.result or _tr("(empty)"))

    def _button(self, words: str, decision: str) -> QPushButton:
        made = button(words, lambda: self._decide(f"{decision} {self.call.id if self.call else ''}"))
        made.setAccessibleDescription(_tr("Your decision about the tool call on this card"))
        return made


class ToolSteps(QWidget):
    """The rounds of an answer's tool calls, each with the text before it."""

    def __init__(self, services: MessageServices, decide: Decide) -> None:
        super().__init__()
        self._services, self._decide = services, decide
        self._texts: list[Body] = []
        self.cards: list[CallCard] = []
        self._shape: list[int] = []  # number of cards of each round
        self._box = column(gap=sizes.S)
        self._box.setContentsMargins(0, 0, 0, sizes.S)
        self.setLayout(self._box)
        self.end = 0  # where the text begins that follows the last round

    def show_rounds(self, text: str, rounds: Sequence[CallRound], *, decides: bool) -> None:
        """Show the tool-call rounds of an answer with this text.

        decides: whether the user can decide about calls now.
        """
        shape = [len(round_.calls) for round_ in rounds]
        if shape[: len(self._shape)] != self._shape:
            self._clear()
        for round_ in rounds[len(self._shape) :]:
            self._texts.append(Body(self._services, is_markdown=True))
            self._box.addWidget(self._texts[-1])
            for call in round_.calls:
                self.cards.append(CallCard(self._services, call, self._decide))
                self._box.addWidget(self.cards[-1])
        self._shape = shape
        begin = 0
        for body, round_ in zip(self._texts, rounds, strict=True):
            part = text[begin : round_.at].strip()
            if body.text != part:
                body.show_text(part)
            body.setVisible(bool(part))
            begin = round_.at
        calls = [call for round_ in rounds for call in round_.calls]
        for card, call in zip(self.cards, calls, strict=True):
            card.show_call(call, decides=decides)
        self.end = begin
        self.setVisible(bool(rounds))

    def restyle(self) -> None:
        """Apply the new theme."""
        for body in self._texts:
            body.restyle()
        for card in self.cards:
            card.restyle()

    def _clear(self) -> None:
        for widget in (*self._texts, *self.cards):
            self._box.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._texts, self.cards, self._shape = [], [], []


def _state_words(call: CallRecord, *, asks: bool) -> str:
    match call.state:
        case "waiting" if not asks:
            return _tr("You have not decided about this call.")
        case "interrupted":
            return _interrupted()
        case "running":
            return _tr("Calling…")
        case "denied":
            return _tr("You did not allow this call.")
        case "unknown":
            return _tr("There is no such tool, so nothing was called.")
        case "done":
            return _done_words(call)
        case "failed":
            return _interrupted() if call.result == INTERRUPTED else call.result
    return ""


def _interrupted() -> str:
    return _tr("This call was stopped before its result arrived. The tool may have done its work anyway.")


def _done_words(call: CallRecord) -> str:
    words = [_tr("Called, {time}").format(time=formats.seconds(call.seconds))]
    if call.is_error:
        words = [_tr("The tool reported an error.")]
    if call.n_left_out:
        text = _tr("{count} characters did not fit and were left out.")
        words.append(text.format(count=formats.number(call.n_left_out)))
    if call.n_pictures:
        words.append(_tr("Pictures and other files were left out."))
    return " · ".join(words)


def _tr(text: str) -> str:
    return QCoreApplication.translate("ToolCall", text)
