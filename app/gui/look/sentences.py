"""Sentences for reason codes, in the window's language and the user's number format.

Some English sentences differ from those of the command line, which mention commands to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale

from app.core import reasons
from app.core.errors import AppError, Fact, Reason

GUIDE = "guide"  # the name of the built-in model
LAST_WORDS = "words"  # the fact that contains the last output of a worker
_DEATHS = ("worker_died", "worker_crashed", "engine_gave_up", "worker_memory_short", "worker_card_short")


def said(reason_or_error: Reason | AppError | None) -> str:
    """Return the sentence for a reason or an error, or "" for None.

    The sentence omits the output of a crashed engine, which is shown only in the technical details.
    """
    if reason_or_error is None:
        return ""
    reason = reason_or_error.reason if isinstance(reason_or_error, AppError) else reason_or_error
    if last_words(reason):
        reason = Reason(reason.code, {**reason.facts, LAST_WORDS: Reason("worker_log")})
    return reasons.said(reason, face())


def told(answer: Mapping[str, Any], name: str = "reason") -> str:
    """Return the sentence for the reason in the field `name` of a response, or "" if the field is empty."""
    facts = answer.get(f"{name}_facts")
    return said(Reason.from_json(facts)) if facts else ""


def fact_text(fact: Fact) -> str:
    """Return a fact as text, or its sentence if the fact is itself a reason."""
    return said(fact) if isinstance(fact, Reason) else str(fact)


def last_words(reason: Reason | None) -> str:
    """Return the last output of an engine that crashed, or "" if the reason is not a crash."""
    words = reason.facts.get(LAST_WORDS) if reason is not None and reason.code in _DEATHS else ""
    return words if isinstance(words, str) else ""


def model_name(name: str) -> str:
    """Return the display name of a model.

    It differs from `name` for the built-in model and for references to a model of another machine.
    """
    model, separator, machine = name.partition("@")
    if separator and model:
        words = QCoreApplication.translate("Answer", "{model} on {machine}")
        return words.format(model=model_name(model), machine=machine)
    return QCoreApplication.translate("Answer", "Guide") if name == GUIDE else name


def face() -> reasons.Locale:
    """Return the language, number format and model names for sentences shown in the window."""
    window = QLocale()
    language = window.name()[:2]
    if language not in reasons.LANGUAGES:
        language = reasons.ENGLISH
    signs = window if window.language() == QLocale(language).language() else QLocale(language)
    names = {GUIDE: model_name(GUIDE)}
    return reasons.Locale(language, True, signs.decimalPoint(), signs.groupSeparator(), names)
