"""The messages of a chat as displayed, including the answer in progress."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QCoreApplication

from app.api.plans import LoadedModel
from app.core import chat as tree
from app.core.chat import Chat, Message, Role
from app.gui.api.node_state import NodeState
from app.gui.chat.message import answer_stats
from app.gui.chat.message.message_view import ShownMessage
from app.gui.chat.session import RunningAnswer, ToolPhase
from app.gui.look import formats
from app.gui.look.language import is_english


def branch(chat: Chat, running: RunningAnswer | None, pool: NodeState) -> list[ShownMessage]:
    """Return the messages of the current branch in order."""
    versions, messages = tree.versions(chat), tree.path(chat)
    sent = {message.id for message in tree.prompt_messages(messages)}
    views = []
    for message in messages:
        own = running if running is not None and running.message == message.id else None
        newest = message
        if own is not None:
            details = {**message.details, **own.thought_details()}
            newest = replace(message, text=own.text, details=details)
        views.append(
            ShownMessage(
                newest,
                versions[message.id],
                is_last=message.id == messages[-1].id,
                is_busy=running is not None,
                state=state_of(own, pool) if own is not None else None,
                is_sent=message.id in sent,
                is_thinking=own is not None and own.is_thinking,
                thought_tokens=own.answer.thought_tokens if own is not None else None,
                decides=own is not None and own.tools is ToolPhase.CALLING,
            )
        )
    return views


def state_of(running: RunningAnswer, pool: NodeState) -> str:
    """Describe the current state of an answer in progress."""
    answer = running.answer
    if running.tools is ToolPhase.OPENING:
        return QCoreApplication.translate("Answer", "Starting the tool servers…")
    if running.tools is ToolPhase.CALLING and running.asks:
        return QCoreApplication.translate("Answer", "Waiting for your decision")
    if running.tools is ToolPhase.CALLING:
        return QCoreApplication.translate("Answer", "Waiting for tools…")
    if running.waits:
        return QCoreApplication.translate("Answer", "Waiting for the background service…")
    if answer.trouble:
        return " ".join((answer.trouble, *_reloading(pool.now.model(running.model))))
    if answer.progress is not None:
        return answer_stats.step(answer.progress)
    if answer.text or answer.thought:
        return answer_stats.caption(running.whole_stats(answer.stats()))
    counts = pool.now.answers
    for waiting in counts.line:
        if waiting.conversation == running.chat:
            return queue_position(waiting.place, waiting.seconds)
    if counts.waiting and counts.running:
        text = QCoreApplication.translate("Answer", "Waiting in line: %n answer(s) ahead", "", counts.running)
        return str(text)
    return QCoreApplication.translate("Answer", "Reading the question…")


def _reloading(loaded: LoadedModel | None) -> list[str]:
    """Return the progress of the slowest machine that is reloading layers, if any."""
    steps = loaded.progress.values() if loaded is not None else ()
    unfinished = [step for step in steps if step.done != step.total]
    slowest = min(unfinished, key=lambda step: step.done / step.total, default=None)
    return [answer_stats.step(slowest)] if slowest is not None else []


def queue_position(place: int, seconds: float | None) -> str:
    """Describe a position in the queue, such as `2nd in line, about 20 s`."""
    if place == 1:
        position = QCoreApplication.translate("Answer", "Next in line")
    else:
        position = QCoreApplication.translate("Answer", "{nth} in line").format(nth=_ordinal(place))
    if not seconds:
        return position
    text = QCoreApplication.translate("Answer", "{place}, about {time}")
    return text.format(place=position, time=formats.whole_seconds(max(1, seconds)))


def _ordinal(place: int) -> str:
    """Return an ordinal number: `2nd` in English, `2.` in other languages."""
    if not is_english():
        return f"{place}."
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{place}{'th' if place % 100 in (11, 12, 13) else endings.get(place % 10, 'th')}"


def last_message(chat: Chat) -> Message | None:
    """Return the last message of the current branch."""
    return chat.messages.get(chat.leaf) if chat.leaf is not None else None


def is_unanswered(chat: Chat) -> bool:
    """Return whether the last message is a question."""
    end = last_message(chat)
    return end is not None and end.role is Role.USER
