"""Makes the sentence that a person reads from a reason: what happened, why, and one action.

The texts are data, one file per language in `sentences/`. `sentences` has one for each code, `in_window` those that are
worded differently in the window, and `phrases` those that only stand inside another sentence. English is complete;
another language may lack a text, which is then said in English. A fact has the same name in each language.
"""

from __future__ import annotations

import errno
import json
import pkgutil
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from app.core.errors import AppError, Fact, Reason

TIB, GIB, MIB, KIB = 1 << 40, 1 << 30, 1 << 20, 1 << 10
ENGLISH = "en"
LANGUAGES = (ENGLISH, "de")
TIMES = "times"  # the format of a number that a language may write as one word, such as `einmal`
_GROUPED = frozenset(("asked", "characters", "context", "least", "mbit", "most", "tokens"))
# Facts that an engine or an operating system may have worded. They are quoted if the language differs from theirs.
_QUOTED = frozenset(("cause", "detail", "error", "how", "what", "why", "words"))


# Read with json: `poolhouse --help` must be fast, so msgspec is not loaded for it.
@dataclass(frozen=True)
class Language:
    """The texts of one language by code."""

    sentences: dict[str, str]
    in_window: dict[str, str] = field(default_factory=dict)
    phrases: dict[str, str] = field(default_factory=dict)
    times: tuple[str, ...] = ("{count}",)  # once, twice, …; the last one is for all greater numbers
    quotes: str = "{}"

    def text(self, code: str, in_window: bool) -> str | None:
        """Return the template for a code, or None if the language has none."""
        own = self.in_window.get(code) if in_window else None
        return own or self.sentences.get(code) or self.phrases.get(code)


@dataclass(frozen=True, slots=True)
class Face:
    """One face of the app and its wording. `names` are the models that it shows under other names."""

    language: str = ENGLISH
    in_window: bool = False
    decimal_point: str = "."
    group_separator: str = ","
    names: Mapping[str, str] = field(default_factory=dict)


TERMINAL = Face()


@cache
def language(name: str) -> Language:
    """Return the texts of a language, empty if it has no file."""
    if name not in LANGUAGES:
        return Language({})
    content = pkgutil.get_data("app.core", f"sentences/{name}.json")
    assert content is not None  # the file is part of this package
    return Language(**json.loads(content))


SENTENCES: dict[str, str] = language(ENGLISH).sentences
PHRASES: dict[str, str] = language(ENGLISH).phrases


def said(reason_or_error: Reason | AppError, face: Face = TERMINAL) -> str:
    """Return the sentence for a reason. Facts named `…_bytes` are written in GiB, MiB or KiB.

    Raises KeyError for a code without a sentence or a sentence without its facts: a bug that a test detects.
    """
    reason = reason_or_error.reason if isinstance(reason_or_error, AppError) else reason_or_error
    parts: list[str] = []
    for words, name, form, _ in string.Formatter().parse(_template(reason.code, face)):
        parts.append(words)
        if name is not None:
            fact = reason.facts[name]
            shown = _shown(reason.code, name, fact, form or "", face)
            is_first = isinstance(fact, Reason) and not "".join(parts)
            parts.append(shown[:1].upper() + shown[1:] if is_first else shown)
    return "".join(parts)


def in_words(code: str, **facts: Fact) -> str:
    """Return the sentence of a code that is no error."""
    return said(Reason(code, facts))


def in_sequence(reasons: Sequence[Reason]) -> Reason:
    """Return several reasons, at least one, as a single reason."""
    first, *rest = reasons
    return Reason("sentences", {"first": first, "second": in_sequence(rest)}) if rest else first


def can_be_said(reason: Reason) -> bool:
    """Return whether this version has a sentence for the reason, and the reason has the facts for it."""
    try:
        said(reason)
    except (LookupError, ValueError, TypeError, ArithmeticError):
        return False
    return True


def fact_text(fact: Fact) -> str:
    """Return a fact in English, as a log has it."""
    return said(fact) if isinstance(fact, Reason) else str(fact)


def os_cause(error: OSError) -> Fact:
    """Return why the system refused something: a phrase for the usual causes, else the system's own words."""
    code = f"os_{errno.errorcode.get(error.errno or 0, '').lower()}"
    return Reason(code) if code in PHRASES else error.strerror or str(error)


def sentence(reason: Reason | None) -> str | None:
    """Return the English sentence of a reason, if there is one."""
    return said(reason) if reason else None


def with_reason(name: str, reason: Reason | None) -> dict[str, Any]:
    """Return the members of a JSON object that describe a reason: its sentence, and its code and facts."""
    if reason is None:
        return {name: None, f"{name}_facts": None}
    return {name: said(reason), f"{name}_facts": reason.to_json()}


def with_reasons(name: str, reasons: Iterable[Reason]) -> dict[str, Any]:
    """Return the same for several reasons: a list of sentences, and a list of codes and facts in the same order."""
    members = [with_reason(name, reason) for reason in reasons]
    return {key: [member[key] for member in members] for key in (name, f"{name}_facts")}


def size(n_bytes: int, face: Face = TERMINAL) -> str:
    """Return a number of bytes as people read it: `1.5 TiB`, `12.0 MiB`, `3.2 KiB`, `7 bytes`."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f}".replace(".", face.decimal_point) + f" {name}"
    return said(Reason("one_byte") if n_bytes == 1 else Reason("bytes", {"count": n_bytes}), face)


def _template(code: str, face: Face) -> str:
    own = language(face.language).text(code, face.in_window)
    template = own or language(ENGLISH).text(code, face.in_window)
    if template is None:
        raise KeyError(code)
    return template


def _shown(code: str, name: str, fact: Fact, form: str, face: Face) -> str:
    if isinstance(fact, Reason):
        return said(fact, face)
    if isinstance(fact, str):
        if form:
            raise ValueError(f"{name} of {code} is no number")
        return _words(code, name, fact, face)
    if form == TIMES:
        words = language(face.language).times
        return words[min(int(fact), len(words)) - 1].format(count=fact)
    if name.endswith("_bytes"):
        return size(int(fact), face)
    if isinstance(fact, int) and name in _GROUPED:
        return f"{fact:,}".replace(",", face.group_separator)
    shown = format(fact, form)
    return shown.replace(".", face.decimal_point) if isinstance(fact, float) or form else shown


def _words(code: str, name: str, fact: str, face: Face) -> str:
    if name == "model" or (name == "name" and code.startswith("model_")):
        return face.names.get(fact, fact)
    if name in _QUOTED and " " in fact:
        return language(face.language).quotes.format(fact)
    return fact
