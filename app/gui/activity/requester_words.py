"""Whom an answer is for, in words; never what it says."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.core.scheduler.requester import Requester


def whom(whose: Requester | None) -> str:
    """A cell of the table of answers."""
    if whose is None:
        return _tr("not noted")
    words = {
        "owner": _tr("you"),
        "program": _tr("program {name}") if whose.name else _tr("program without a key"),
        "guest": _tr("guest {name}"),
    }.get(whose.kind, "{name}")
    return words.format(name=whose.name)


def reads(model: str, whose: Requester) -> str:
    """A line of what runs, before the first token."""
    words = {
        "owner": _tr("{model} reads a question of yours"),
        "program": _tr("{model} reads a question of the program {name}")
        if whose.name
        else _tr("{model} reads a question of a program without a key"),
        "guest": _tr("{model} reads a question of the guest {name}"),
    }.get(whose.kind) or _tr("{model} reads a question of {name}")
    return words.format(model=model, name=whose.name)


def writes(model: str, whose: Requester) -> str:
    """The same after it."""
    words = {
        "owner": _tr("{model} writes an answer for you"),
        "program": _tr("{model} writes an answer for the program {name}")
        if whose.name
        else _tr("{model} writes an answer for a program without a key"),
        "guest": _tr("{model} writes an answer for the guest {name}"),
    }.get(whose.kind) or _tr("{model} writes an answer for {name}")
    return words.format(model=model, name=whose.name)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Whom", text)
