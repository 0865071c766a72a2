"""The branch of a chat that is shown, with what is under way in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.core import chat as tree
from app.core.chat import Chat, Message, Role
from app.gui.api.node_state import NodeState, under_way
from app.gui.chat.message import answer_stats
from app.gui.chat.message.message_view import Shown
from app.gui.chat.session import Running
from app.gui.look import formats
from app.gui.look.language import is_english

Json = dict[str, Any]


def branch(chat: Chat, running: Running | None, pool: NodeState) -> list[Shown]:
    """Its messages as they are now, the first one first."""
    versions, messages = tree.versions(chat), tree.path(chat)
    found, told = [], {one.id for one in tree.told(messages)}
    for place, message in enumerate(messages, 1):
        own = running if running is not None and running.message == message.id else None
        now = message
        if own is not None:
            details = {**message.details, **own.thoughts()}
            now = replace(message, text=own.text, details=details)
        state = state_of(own, pool) if own is not None else None
        is_last = place == len(messages)
        is_told, busy = message.id in told, running is not None
        thinks = own is not None and own.thinks
        tokens = own.answer.thought_tokens if own is not None else None
        found.append(Shown(now, versions[message.id], is_last, busy, state, is_told, thinks, tokens))
    return found


def state_of(running: Running, pool: NodeState) -> str:
    """What an answer under way does now, in one line."""
    answer = running.answer
    if running.waits:
        return QCoreApplication.translate("Answer", "Waiting for the background service…")
    if answer.trouble:
        return " ".join((answer.trouble, *_rebuilding(pool.asked(running.model))))
    if answer.progress is not None:
        return answer_stats.step(answer.progress)
    if answer.text or answer.thought:
        return answer_stats.caption(running.measured(answer.measured()))
    answers = pool.snapshot.get("answers") or {}
    own = next((one for one in answers.get("line") or () if one["conversation"] == running.chat), None)
    if own is not None:
        return in_line(int(own["place"]), own.get("seconds"))
    before = int(answers.get("running") or 0)
    if answers.get("waiting") and before:
        return QCoreApplication.translate("Answer", "Waiting for its turn: %n answer(s) before it", "", before)
    return QCoreApplication.translate("Answer", "Reading the question…")


def _rebuilding(loaded: Json | None) -> list[str]:
    """How far it is with the layers that are loaded again, on the machine that is behind."""
    steps = under_way(loaded).values()
    behind = min(steps, key=lambda one: one["done"] / one["total"], default=None)
    return [answer_stats.step(behind)] if behind is not None else []


def in_line(place: int, seconds: float | None) -> str:
    """`2nd in line, about 20 s`."""
    if place == 1:
        told = QCoreApplication.translate("Answer", "Next in line")
    else:
        told = QCoreApplication.translate("Answer", "{nth} in line").format(nth=_nth(place))
    if not seconds:
        return told
    about = QCoreApplication.translate("Answer", "{place}, about {time}")
    return about.format(place=told, time=formats.whole_seconds(max(1, seconds)))


def _nth(place: int) -> str:
    """`2nd`; in other languages `2.`"""
    if not is_english():
        return f"{place}."
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{place}{'th' if place % 100 in (11, 12, 13) else ends.get(place % 10, 'th')}"


def end_of(chat: Chat) -> Message | None:
    """The last message that is shown."""
    return chat.messages.get(chat.leaf) if chat.leaf is not None else None


def is_unanswered(chat: Chat) -> bool:
    """Whether a question stands at the end."""
    end = end_of(chat)
    return end is not None and end.role is Role.USER
