"""The conversion of reasons to sentences that say what happened, why, and what to do.

The texts are data, with one file per language in `sentences/`. In each file, `sentences` contains a text for each code,
`in_window` the texts that the window words differently, and `phrases` the texts that occur only within another
sentence. English is complete. A text that is missing in another language is shown in English. Facts have the same names
in all languages.
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
TIMES = "times"  # the format of a number that a language may express in one word, such as `once`
_GROUPED = frozenset(("asked", "characters", "context", "least", "mbit", "most", "tokens"))
# Facts whose words may come from an engine or an operating system. A language in which these would stand out quotes
# them.
_QUOTED = frozenset(("cause", "detail", "error", "how", "what", "why", "words"))


# This is not a msgspec type, because `poolhouse --help` must be fast and does not load msgspec.
@dataclass(frozen=True)
class Language:
    """The texts in one language, by code."""

    sentences: dict[str, str]
    in_window: dict[str, str] = field(default_factory=dict)
    phrases: dict[str, str] = field(default_factory=dict)
    times: tuple[str, ...] = ("{count}",)  # for 1, 2 and so on; the last entry is for all larger numbers
    quotes: str = "{}"

    def text(self, code: str, in_window: bool) -> str | None:
        """Return the template for a code, or None if this language has none."""
        own = self.in_window.get(code) if in_window else None
        return own or self.sentences.get(code) or self.phrases.get(code)


@dataclass(frozen=True, slots=True)
class Locale:
    """The language and the number format of one user interface. `names` maps models to their display names."""

    language: str = ENGLISH
    in_window: bool = False
    decimal_point: str = "."
    group_separator: str = ","
    names: Mapping[str, str] = field(default_factory=dict)


TERMINAL_LOCALE = Locale()


@cache
def language(name: str) -> Language:
    """Return the texts in a language. They are empty if the language has no file."""
    if name not in LANGUAGES:
        return Language({})
    content = pkgutil.get_data("app.core", f"sentences/{name}.json")
    assert content is not None  # the file is part of this package
    return Language(**json.loads(content))


SENTENCES: dict[str, str] = language(ENGLISH).sentences
PHRASES: dict[str, str] = language(ENGLISH).phrases


def said(reason_or_error: Reason | AppError, locale: Locale = TERMINAL_LOCALE) -> str:
    """Return the sentence for a reason. Facts named `…_bytes` are formatted as sizes, such as `1.5 GiB`.

    Raises KeyError if the code has no sentence or the sentence lacks a fact. Either is a bug that a test detects.
    """
    reason = reason_or_error.reason if isinstance(reason_or_error, AppError) else reason_or_error
    parts: list[str] = []
    for words, name, form, _ in string.Formatter().parse(_template(reason.code, locale)):
        parts.append(words)
        if name is not None:
            fact = reason.facts[name]
            shown = _shown(reason.code, name, fact, form or "", locale)
            is_first = isinstance(fact, Reason) and not "".join(parts)
            parts.append(shown[:1].upper() + shown[1:] if is_first else shown)
    return "".join(parts)


def sentence_for(code: str, **facts: Fact) -> str:
    """Return the sentence for a code that is not an error."""
    return said(Reason(code, facts))


def combined_reason(reasons: Sequence[Reason]) -> Reason:
    """Combine one or more reasons into a single reason."""
    first, *rest = reasons
    return Reason("sentences", {"first": first, "second": combined_reason(rest)}) if rest else first


def has_sentence(reason: Reason) -> bool:
    """Return whether this version has a sentence for the reason, and the reason has all the facts that it needs."""
    try:
        said(reason)
    except (LookupError, ValueError, TypeError, ArithmeticError):
        return False
    return True


def fact_text(fact: Fact) -> str:
    """Return a fact as English text for the log."""
    return said(fact) if isinstance(fact, Reason) else str(fact)


def os_cause(error: OSError) -> Fact:
    """Return why the operating system refused something.

    The result is a phrase for common causes, otherwise the system's own message.
    """
    code = f"os_{errno.errorcode.get(error.errno or 0, '').lower()}"
    return Reason(code) if code in PHRASES else error.strerror or str(error)


def sentence(reason: Reason | None) -> str | None:
    """Return the English sentence for a reason, or None for None."""
    return said(reason) if reason else None


def reason_fields(name: str, reason: Reason | None) -> dict[str, Any]:
    """Return the fields of a JSON object that describe a reason: its sentence, its code and its facts."""
    if reason is None:
        return {name: None, f"{name}_facts": None}
    return {name: said(reason), f"{name}_facts": reason.to_json()}


def reasons_fields(name: str, reasons: Iterable[Reason]) -> dict[str, Any]:
    """Return the fields of a JSON object that describe several reasons.

    They are a list of sentences, and a list of codes and facts in the same order.
    """
    members = [reason_fields(name, reason) for reason in reasons]
    return {key: [member[key] for member in members] for key in (name, f"{name}_facts")}


def size(n_bytes: int, locale: Locale = TERMINAL_LOCALE) -> str:
    """Return a number of bytes in readable form, such as `1.5 TiB`, `12.0 MiB`, `3.2 KiB` or `7 bytes`."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f}".replace(".", locale.decimal_point) + f" {name}"
    return said(Reason("one_byte") if n_bytes == 1 else Reason("bytes", {"count": n_bytes}), locale)


def _template(code: str, locale: Locale) -> str:
    own = language(locale.language).text(code, locale.in_window)
    template = own or language(ENGLISH).text(code, locale.in_window)
    if template is None:
        raise KeyError(code)
    return template


def _shown(code: str, name: str, fact: Fact, form: str, locale: Locale) -> str:
    if isinstance(fact, Reason):
        return said(fact, locale)
    if isinstance(fact, str):
        if form:
            raise ValueError(f"{name} of {code} is no number")
        return _words(code, name, fact, locale)
    if form == TIMES:
        words = language(locale.language).times
        return words[min(int(fact), len(words)) - 1].format(count=fact)
    if name.endswith("_bytes"):
        return size(int(fact), locale)
    if isinstance(fact, int) and name in _GROUPED:
        return f"{fact:,}".replace(",", locale.group_separator)
    shown = format(fact, form)
    return shown.replace(".", locale.decimal_point) if isinstance(fact, float) or form else shown


def _words(code: str, name: str, fact: str, locale: Locale) -> str:
    if name == "model" or (name == "name" and code.startswith("model_")):
        return locale.names.get(fact, fact)
    if name in _QUOTED and " " in fact:
        return language(locale.language).quotes.format(fact)
    return fact
