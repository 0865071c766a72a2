"""Reason code -> the sentence a person reads: what happened, why, one action.

The sentences are data, one file a language: `sentences/en.json` has one of every code, and those that are other words
in the window; `sentences/de.json` has those whose sentence has words of its own. A fact keeps its name in each.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from app.core.errors import AppError, Fact, Reason

TIB, GIB, MIB, KIB = 1 << 40, 1 << 30, 1 << 20, 1 << 10
ENGLISH = "en"
LANGUAGES = (ENGLISH, "de")
# How a running node is stopped, as the sentences say it.
STOPPED_BY = "(Ctrl-C in its terminal, or Quit in the menu of Poolhouse's tray icon)"


# Read by json: msgspec is not loaded for `poolhouse --help`, which shall come at once.
@dataclass(frozen=True)
class Language:
    """The sentences of one language, by code, and its words for facts that are words."""

    sentences: dict[str, str]
    # for codes whose sentence would send to the command line
    in_window: dict[str, str] = field(default_factory=dict)
    # English words that are facts -> the language's
    words: dict[str, str] = field(default_factory=dict)


@cache
def language(name: str) -> Language:
    """Return the texts of a language; without any sentence where there is no file of it."""
    if name not in LANGUAGES:
        return Language({})
    content = pkgutil.get_data("app.core", f"sentences/{name}.json")
    assert content is not None  # a part of this package
    return Language(**json.loads(content))


SENTENCES: dict[str, str] = language(ENGLISH).sentences

_COUNTED = frozenset(("asked", "characters", "context", "least", "mbit", "most", "tokens"))


def said(what: Reason | AppError) -> str:
    """The sentence for a reason. Facts named `…_bytes` are written in GiB, MiB or KiB.

    Raises KeyError for a code without a sentence: a bug that a test looks for.
    """
    reason = what.reason if isinstance(what, AppError) else what
    facts = {name: _shown(name, fact) for name, fact in reason.facts.items()}
    return SENTENCES[reason.code].format(**facts)


def in_words(code: str, **facts: Fact) -> str:
    """The sentence of what is only told, and is nobody's error."""
    return said(Reason(code, facts))


def with_reason(name: str, reason: Reason | None) -> dict[str, Any]:
    """Return the members of a JSON object that tell a reason: its sentence, and its code and facts beside it."""
    if reason is None:
        return {name: None, f"{name}_facts": None}
    facts = {"code": reason.code, "facts": dict(reason.facts)}
    return {name: said(reason), f"{name}_facts": facts}


def with_reasons(name: str, reasons: Iterable[Reason]) -> dict[str, Any]:
    """The same for several reasons: a list of sentences, and a list of codes and facts in the same order."""
    told = [with_reason(name, reason) for reason in reasons]
    return {key: [one[key] for one in told] for key in (name, f"{name}_facts")}


def _shown(name: str, fact: Fact) -> Fact:
    if isinstance(fact, str):
        return fact
    if name.endswith("_bytes"):
        return size(int(fact))
    return f"{fact:,}" if name in _COUNTED and isinstance(fact, int) else fact


def size(n_bytes: int) -> str:
    """A number of bytes as people read it: `1.5 TiB`, `12.0 MiB`, `3.2 KiB`, `7 bytes`."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return "1 byte" if n_bytes == 1 else f"{n_bytes} bytes"
