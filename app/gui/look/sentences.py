"""Sentences for reasons, in the language of the window and the number format of its country.

Some English sentences differ from those in the terminal, which refer to the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale

from app.core import reasons
from app.core.errors import AppError, Fact, Reason

GUIDE = "guide"  # the name of the built-in model
LAST_WORDS = "words"  # the fact that holds a worker's last output
_DEATHS = ("worker_died", "worker_crashed", "engine_gave_up", "worker_memory_short")


def said(reason_or_error: Reason | AppError | None) -> str:
    """Return the sentence of a reason, or "" for None. An engine's own output is only in the details."""
    if reason_or_error is None:
        return ""
    reason = reason_or_error.reason if isinstance(reason_or_error, AppError) else reason_or_error
    if last_words(reason):
        reason = Reason(reason.code, {**reason.facts, LAST_WORDS: Reason("worker_log")})
    return reasons.said(reason, face())


def told(answer: Mapping[str, Any], name: str = "reason") -> str:
    """Return the sentence of the reason in a field of an answer, or "" if there is none."""
    facts = answer.get(f"{name}_facts")
    return said(Reason.from_json(facts)) if facts else ""


def fact_text(fact: Fact) -> str:
    """Return a fact in the format of the window."""
    return said(fact) if isinstance(fact, Reason) else str(fact)


def last_words(reason: Reason | None) -> str:
    """Return the last output of an engine before it ended, or "" for any other reason."""
    words = reason.facts.get(LAST_WORDS) if reason is not None and reason.code in _DEATHS else ""
    return words if isinstance(words, str) else ""


def model_name(name: str) -> str:
    """Return the display name of a model."""
    return QCoreApplication.translate("Answer", "Guide") if name == GUIDE else name


def face() -> reasons.Face:
    """Return the current language and number format of the window."""
    window = QLocale()
    language = window.name()[:2]
    if language not in reasons.LANGUAGES:
        language = reasons.ENGLISH
    signs = window if window.language() == QLocale(language).language() else QLocale(language)
    names = {GUIDE: model_name(GUIDE)}
    return reasons.Face(language, True, signs.decimalPoint(), signs.groupSeparator(), names)
