"""The tool calls of answers in progress: asking the user, calling the tools, and storing the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from PySide6.QtCore import QObject, Signal

from app.api.responses import ToolCall
from app.api.tools import CallResult, CallTool, Offered, OfferedTool, OpenTools
from app.core import chat as tree
from app.core.chat import TOOL_SEPARATOR, Chat, ChatId, Message, MessageId
from app.core.errors import AppError, Refused
from app.core.tools.call_outcomes import INTERRUPTED, bounded
from app.core.tools.chat_calls import CallRecord, CallRound, CallState, rounds_of, with_call, with_rounds
from app.core.wire_json import error_of
from app.gui.chat.history.history import History
from app.gui.look.sentences import said
from app.gui.tools.tool_client import ToolClient

ONCE, IN_CHAT, DENY = "once", "chat", "deny"  # what the user can decide about a call
MAX_ALLOWED = 200  # tools that a chat may call without asking


def has_open_calls(message: Message) -> bool:
    """Return whether an answer ended before all of its calls had an outcome."""
    rounds = rounds_of(message.details)
    return bool(rounds) and not rounds[-1].is_over and len(message.text) <= rounds[-1].at


def permission_key(tool: OfferedTool) -> str:
    """Return the key under which a chat stores that it may call this tool, in its current form, without asking."""
    return TOOL_SEPARATOR.join((tool.server, tool.tool, tool.fingerprint))


@dataclass(slots=True)
class _Open:
    """The tools offered in a chat, and its calls in progress."""

    offered: dict[str, OfferedTool]  # by the name in the prompt
    failed: dict[str, AppError] = field(default_factory=dict)  # by the name of the server; "" for all
    message: MessageId | None = None
    requests: dict[str, int] = field(default_factory=dict)  # by the ID of the call

    def tool_of(self, call: CallRecord) -> OfferedTool | None:
        """Return the tool shown on a call's card, or None.

        Its name in the prompt may now belong to another tool.
        """
        if not call.server:
            return self.offered.get(call.name)
        named = (tool for tool in self.offered.values() if (tool.server, tool.tool) == (call.server, call.tool))
        return next(named, None)


class ToolRounds(QObject):
    """The calls of the answers in progress, at most one round per chat.

    Calls that are not already allowed are made only after `decide`. `room` returns the maximum number of characters
    for each result in a chat, given the number of results.
    """

    changed = Signal(str)  # ID of a chat whose calls have changed
    waits = Signal(str, object)  # chat, CallRecord that the user must decide about
    over = Signal(str)  # ID of a chat in which all calls have an outcome

    def __init__(
        self, history: History, client: ToolClient, room: Callable[[Chat, int], int], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._history, self._client, self._room = history, client, room
        self._open: dict[ChatId, _Open] = {}
        self._opening: dict[ChatId, int] = {}  # the numbers of requests

    def open(self, chat: Chat, ready: Callable[[Offered], object]) -> None:
        """List the tools that a chat may use.

        Call `ready` afterwards, even on failure, with the tools and the errors.
        """

        def opened(offered: Offered) -> None:
            self._opening.pop(chat.id, None)
            errors = {name: error_of(msgspec.to_builtins(error)) for name, error in offered.failed.items()}
            self._open[chat.id] = _Open({tool.name: tool for tool in offered.tools}, errors)
            ready(offered)

        def failed(error: AppError) -> None:
            from app.api.responses import SentError

            reason = error.reason
            opened(Offered(failed={"": SentError(type(error).__name__, reason.code, reason.facts)}))

        request = OpenTools(list(chat.tools.servers))
        self._opening[chat.id] = self._client.ask(request, Offered, opened, failed)

    def offered(self, chat: ChatId) -> list[OfferedTool]:
        """Return the tools offered in a chat."""
        return list(self._open[chat].offered.values()) if chat in self._open else []

    def is_open(self, chat: ChatId) -> bool:
        """Return whether the tools of a chat are known."""
        return chat in self._open

    def record(self, chat_id: ChatId, message: MessageId, at: int, thought_at: int, calls: Sequence[ToolCall]) -> None:
        """Store the calls for which an answer has paused."""
        chat = self._history.chat(chat_id)
        if chat is not None:
            offered = self._open[chat_id].offered if chat_id in self._open else {}
            records = tuple(_record(call, offered.get(call.name)) for call in calls)
            if chat_id in self._open:  # otherwise it is not known yet which tools there are
                records = tuple(_unknown(call) if not call.server else call for call in records)
            rounds = rounds_of(chat.messages[message].details)
            self._keep(chat, message, (*rounds, CallRound(at=at, thought_at=thought_at, calls=records)))

    def obstacle(self, chat_id: ChatId, message: MessageId) -> AppError | None:
        """Return the reason why calls without an outcome cannot be resumed, or None.

        For example, a tool server is off or did not start.
        """
        chat, opened = self._history.chat(chat_id), self._open[chat_id]
        calls = [] if chat is None else [call for call in self._last(chat, message) if not call.is_over]
        for call in calls:
            if chat is None or opened.tool_of(call) is not None:
                continue
            if call.server and call.server not in chat.tools.servers:
                return Refused("tool_server_unchecked", name=call.server)
            if (error := opened.failed.get(call.server) or opened.failed.get("")) is not None:
                return error
            if not call.server and opened.failed:  # it may be a tool of a server that did not start
                return next(iter(opened.failed.values()))
            if call.server and not any(tool.server == call.server for tool in opened.offered.values()):
                return Refused("tool_server_off", name=call.server)
        return None

    def resume(self, chat_id: ChatId, message: MessageId) -> None:
        """Decide or ask about the calls of the last round that have no outcome yet. The tools must be known.

        The user is always asked about a call that was interrupted, because it may have been carried out.
        """
        chat = self._history.chat(chat_id)
        if chat is None:
            return
        opened = self._open[chat_id]
        opened.message = message
        for call in self._last(chat, message):
            if call.is_over or call.id in opened.requests:
                continue
            tool = opened.tool_of(call)
            was_begun = call.state in ("running", "interrupted")
            if tool is None:
                self._set(chat_id, _stopped(call) if was_begun else _unknown(call))
            elif was_begun:
                self._set(chat_id, _with_state(_record_again(call, tool), "interrupted"))
                self.waits.emit(chat_id, call)
            elif tool.permission == "always" or permission_key(tool) in chat.tools.allowed:
                self._call(chat_id, call, tool)
            else:
                self._set(chat_id, _with_state(_record_again(call, tool), "waiting"))
                self.waits.emit(chat_id, call)
        self._finish(chat_id)

    def decide(self, chat_id: ChatId, call_id: str, decision: str) -> None:
        """Carry out the user's decision about a call: ONCE, IN_CHAT or DENY."""
        chat, opened = self._history.chat(chat_id), self._open.get(chat_id)
        if chat is None or opened is None or opened.message is None:
            return
        waiting = [call for call in self._last(chat, opened.message) if call.waits]
        call = next((call for call in waiting if call.id == call_id), None)
        tool = opened.tool_of(call) if call is not None else None
        if call is None or tool is None:
            return
        if decision == DENY:
            self._set(chat_id, _stopped(call) if call.state == "interrupted" else _with_state(call, "denied"))
        else:
            if decision == IN_CHAT:
                allowed = (*chat.tools.allowed, permission_key(tool))[-MAX_ALLOWED:]
                self._history.save(replace(chat, tools=replace(chat.tools, allowed=allowed)))
            self._call(chat_id, call, tool)
        if decision == IN_CHAT:  # other calls of the same tool may wait
            self.resume(chat_id, opened.message)
        else:
            self._finish(chat_id)

    def stop(self, chat_id: ChatId) -> None:
        """Cancel the calls in progress.

        They may have been carried out, so the user is asked about each of them again.
        """
        opened = self._open.get(chat_id)
        chat = self._history.chat(chat_id)
        if opened is None or chat is None or opened.message is None:
            return
        for call in self._last(chat, opened.message):
            if (number := opened.requests.pop(call.id, None)) is not None:
                self._client.cancel(number)
                self._set(chat_id, _with_state(call, "interrupted"))

    def forget(self, chat_id: ChatId) -> None:
        """Discard the tools of a chat whose answer has ended."""
        if (number := self._opening.pop(chat_id, None)) is not None:
            self._client.cancel(number)
        self._open.pop(chat_id, None)

    def _call(self, chat_id: ChatId, call: CallRecord, tool: OfferedTool) -> None:
        self._set(chat_id, _with_state(call, "running"))
        request = CallTool(tool.server, tool.tool, call.arguments, tool.fingerprint)
        number = self._client.ask(
            request,
            CallResult,
            lambda result: self._called(chat_id, call, result),
            lambda error: self._failed(chat_id, call, error),
        )
        self._open[chat_id].requests[call.id] = number

    def _called(self, chat_id: ChatId, call: CallRecord, result: CallResult) -> None:
        chat, opened = self._history.chat(chat_id), self._open.get(chat_id)
        if not self._has_ended(chat_id, call) or chat is None or opened is None or opened.message is None:
            return
        text, n_left_out = bounded(result.text, self._room(chat, len(self._last(chat, opened.message))))
        done = msgspec.structs.replace(
            call,
            state="done",
            result=text,
            is_error=result.is_error,
            n_pictures=result.n_pictures,
            n_left_out=result.n_left_out + n_left_out,
            seconds=result.seconds,
        )
        self._set(chat_id, done)
        self._finish(chat_id)

    def _failed(self, chat_id: ChatId, call: CallRecord, error: AppError) -> None:
        if self._has_ended(chat_id, call):
            self._set(chat_id, msgspec.structs.replace(call, state="failed", result=said(error)))
            self._finish(chat_id)

    def _has_ended(self, chat_id: ChatId, call: CallRecord) -> bool:
        """Record that a call has ended. Return whether its result is still needed."""
        opened = self._open.get(chat_id)
        return opened is not None and opened.requests.pop(call.id, None) is not None and opened.message is not None

    def _set(self, chat_id: ChatId, changed: CallRecord) -> None:
        chat, opened = self._history.chat(chat_id), self._open[chat_id]
        if chat is None or opened.message is None or opened.message not in chat.messages:
            return
        self._keep(chat, opened.message, with_call(rounds_of(chat.messages[opened.message].details), changed))

    def _keep(self, chat: Chat, message: MessageId, rounds: Sequence[CallRound]) -> None:
        kept = chat.messages[message]
        self._history.save(tree.set_text(chat, message, kept.text, with_rounds(kept.details, rounds)))
        self.changed.emit(chat.id)

    def _finish(self, chat_id: ChatId) -> None:
        chat, opened = self._history.chat(chat_id), self._open.get(chat_id)
        if chat is None or opened is None or opened.message is None:
            return
        if all(call.is_over for call in self._last(chat, opened.message)):
            opened.message = None
            self.over.emit(chat_id)

    @staticmethod
    def _last(chat: Chat, message: MessageId) -> tuple[CallRecord, ...]:
        rounds = rounds_of(chat.messages[message].details) if message in chat.messages else ()
        return rounds[-1].calls if rounds else ()


def _record(call: ToolCall, tool: OfferedTool | None) -> CallRecord:
    record = CallRecord(id=call.id, name=call.name, arguments=call.arguments)
    return record if tool is None else _record_again(record, tool)


def _record_again(call: CallRecord, tool: OfferedTool) -> CallRecord:
    return msgspec.structs.replace(call, server=tool.server, tool=tool.tool, fingerprint=tool.fingerprint)


def _with_state(call: CallRecord, state: CallState) -> CallRecord:
    return msgspec.structs.replace(call, state=state)


def _unknown(call: CallRecord) -> CallRecord:
    return _with_state(call, "unknown")


def _stopped(call: CallRecord) -> CallRecord:
    """Return the record of a call that was interrupted and will not be repeated."""
    return msgspec.structs.replace(call, state="failed", result=INTERRUPTED)
