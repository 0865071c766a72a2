"""Sentences for reason codes, in the language of the window and with numbers in the format of the user's country.

Some English sentences differ from those of the command line, which mention its commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale

from app.core import reasons
from app.core.errors import AppError, Fact, Reason

GUIDE = "guide"  # the name of the built-in model
LAST_WORDS = "words"  # the fact that contains the last output of a worker
_DEATHS = ("worker_died", "worker_crashed", "engine_gave_up", "worker_memory_short")


def said(reason_or_error: Reason | AppError | None) -> str:
    """Return the sentence for a reason, or "" for None.

    The output of an engine is left out of the sentence and shown only in the details.
    """
    if reason_or_error is None:
        return ""
    reason = reason_or_error.reason if isinstance(reason_or_error, AppError) else reason_or_error
    if last_words(reason):
        reason = Reason(reason.code, {**reason.facts, LAST_WORDS: Reason("worker_log")})
    return reasons.said(reason, face())


def told(answer: Mapping[str, Any], name: str = "reason") -> str:
    """Return the sentence for the reason in a field of an answer, or "" if the field is empty."""
    facts = answer.get(f"{name}_facts")
    return said(Reason.from_json(facts)) if facts else ""


def fact_text(fact: Fact) -> str:
    """Return a fact as text. A fact that is itself a reason becomes its sentence."""
    return said(fact) if isinstance(fact, Reason) else str(fact)


def last_words(reason: Reason | None) -> str:
    """Return the last output of an engine that ended unexpectedly, or "" for any other reason."""
    words = reason.facts.get(LAST_WORDS) if reason is not None and reason.code in _DEATHS else ""
    return words if isinstance(words, str) else ""


def model_name(name: str) -> str:
    """Return the display name of a model. Only the built-in model has one that differs from its name."""
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
