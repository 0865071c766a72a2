"""The core's and the node's sentences in the window's language, as far as resources hold them; else in English.

In English those are other words that would send somebody at the window to the command line.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale

from app.core import reasons
from app.core.errors import AppError, Reason

ENGLISH = "en"
GUIDE = "guide"  # the name of the model that comes with the app
MODEL = "{model}"
LAST_WORDS = "words"  # of a worker, among the facts of its end
MOST_CHARACTERS = 1_000  # of a sentence that is looked up; no template is as long
_DEATHS = ("worker_died", "worker_crashed", "engine_gave_up", "worker_memory_short")
_TOLD = frozenset(("why", "cause", "what", "how", "detail", "where", "worker"))  # names of facts that are words
_OF_OTHERS = (_TOLD - {"where", "worker"}) | {"error", "words"}  # may be an engine's, or a system's
_COUNTED = re.compile(r"\{(\w+):(times)\}")  # a number, and a word that a language may join to it
_FIRST = re.compile(r"\{(\w+)\}")  # of a template that begins with a fact
_MEASURED = re.compile(r"seconds|milliseconds|megabits|ms|\w+_m?s|\w+_bytes")  # names of such facts
_DECIMAL = re.compile(r"([0-9]+)\.([0-9]+(?: \w+)?)")
_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")
_BETWEEN = re.compile(r"(?<=[.?!…]) ")  # of two sentences
Known = tuple[tuple[re.Pattern[str], str], ...]


def said(what: Reason | AppError) -> str:
    """As app/core/reasons.py says it, for whoever looks at the window: an engine's own words stand in its details."""
    reason = what.reason if isinstance(what, AppError) else what
    if last_words(reason):
        reason = Reason(reason.code, {**reason.facts, LAST_WORDS: Reason("worker_log")})
    return reasons.said(reason, face())


def face() -> reasons.Face:
    """Return how the window speaks: in its language, with its country's signs."""
    language = _language()
    figures = _figures(language)
    names = {GUIDE: model_name(GUIDE)}
    return reasons.Face(language, True, figures.decimalPoint(), figures.groupSeparator(), names)


def last_words(reason: Reason) -> str:
    """Of an engine that ended, as it wrote them; empty for anything else."""
    words = reason.facts.get(LAST_WORDS) if reason.code in _DEATHS else ""
    return words if isinstance(words, str) else ""


def reason_of(told: dict[str, Any]) -> Reason:
    """Why what is loaded is lost, as a node tells it."""
    return Reason.from_json(told.get("reason_facts") or {"code": "", "facts": {}})


def trouble(told: dict[str, Any]) -> str:
    """The same in a sentence; empty where nothing is wrong."""
    reason = reason_of(told)
    return said(reason) if last_words(reason) else here(str(told.get("reason") or ""))


def here(sentence: str) -> str:
    """A sentence that was made in English, here or in the node."""
    return in_language(sentence, _language())


def fact_here(name: str, fact: str) -> str:
    """A fact of a sentence that the window makes itself."""
    return _fact(name, fact, _language())


def _language() -> str:
    """The window's, where there are sentences in it."""
    language = QLocale().name()[:2]
    return language if _known(language) else ENGLISH


def in_language(sentence: str, language: str) -> str:
    """The sentence, or several, with its facts, which may be sentences themselves; itself where it is not known."""
    return _in_language(sentence, language, _figures(language).name())


@lru_cache(maxsize=1_024)
def _in_language(sentence: str, language: str, _country: str) -> str:
    if not sentence.strip() or len(sentence) > MOST_CHARACTERS:
        return sentence
    own = _own(sentence, language)
    return own if own is not None else _one_by_one(sentence, language)


def _one_by_one(sentences: str, language: str) -> str:
    """As many at a time as one template holds; those that are not known stay."""
    ends = [found.start() for found in _BETWEEN.finditer(sentences)]
    for end in reversed(ends):
        if own := _own(sentences[:end], language):
            return f"{own} {in_language(sentences[end + 1 :], language)}"
    if not ends:
        return sentences
    return f"{sentences[: ends[0]]} {in_language(sentences[ends[0] + 1 :], language)}"


def _own(sentence: str, language: str) -> str | None:
    for pattern, own in _known(language):
        if found := pattern.fullmatch(sentence):
            facts = found.groupdict()
            told = {name: _fact(name, fact, language) for name, fact in facts.items()}
            sentence, first = _filled(own, told, language), _FIRST.match(own)
            if first and told[first[1]] != facts[first[1]]:  # a word of ours, and no name
                sentence = sentence[:1].upper() + sentence[1:]
            return sentence
    return None


def _filled(template: str, told: Mapping[str, str], language: str) -> str:
    """`{tries:times}` is a number with a word behind it: of 2 “2 times”, as the language has it."""

    def counted(found: re.Match[str]) -> str:
        words = _fact("", f"{told[found[1]]} {found[2]}", language)
        return words.replace("{", "{{").replace("}", "}}")

    return _COUNTED.sub(counted, template).format(**told)


def model_name(name: str) -> str:
    """What a model is called on the screen."""
    return QCoreApplication.translate("Answer", "Guide") if name == GUIDE else name


def _fact(name: str, fact: str, language: str) -> str:
    """Sentences, measured numbers, and words that the app or the system gave; names stay as they are.

    What an engine says in its own language is quoted.
    """
    if name == "model" and fact == GUIDE:
        return model_name(fact)
    if language == ENGLISH:
        return in_language(fact, language) if fact.endswith(".") else fact
    is_ours = name != "words" or fact in reasons.SENTENCES.values()  # else a worker's last ones
    if fact.endswith(".") and is_ours:
        own = in_language(fact, language)
        return _quoted(name, fact) if own == fact else own
    if _MEASURED.fullmatch(name) and (number := _DECIMAL.fullmatch(fact)):
        return f"{number[1]}{_figures(language).decimalPoint()}{number[2]}"
    if _GROUPED.fullmatch(fact):
        return fact.replace(",", _figures(language).groupSeparator())
    if name in _TOLD or " " in fact:  # a machine may well have one of our words for its name
        for pattern, own in _words(language):
            if found := pattern.fullmatch(fact) or pattern.fullmatch(fact[:1].lower() + fact[1:]):
                told = found.groupdict().items()
                return own.format(**{name: _fact(name, fact, language) for name, fact in told})
    return _quoted(name, fact)


def _figures(language: str) -> QLocale:
    """The window's own, with its country's signs, where it speaks the language."""
    window, asked = QLocale(), QLocale(language)
    return window if window.language() == asked.language() else asked


def _quoted(name: str, fact: str) -> str:
    return f"„{fact}“" if name in _OF_OTHERS and " " in fact else fact


@lru_cache(maxsize=4)
def _known(language: str) -> Known:
    texts = reasons.language(language)
    known = texts.in_window if language == ENGLISH else texts.sentences
    if language == ENGLISH:  # others only name the Guide as the window does
        named = ((code, _named(code, words)) for code, words in reasons.SENTENCES.items())
        known = {code: words for code, words in named if MODEL in words} | known
    return _patterns(
        (_named(code, reasons.SENTENCES[code]), re.sub(r"\{(\w+):(?!times)[^}]*\}", r"{\1}", _named(code, own)))
        for code, own in known.items()
        if code in reasons.SENTENCES
    )


def _named(code: str, words: str) -> str:
    """What is said of a model calls it so also where its name is just a name."""
    return words.replace("{name}", MODEL) if code.startswith("model_") else words


@lru_cache(maxsize=4)
def _words(language: str) -> Known:
    own = reasons.language(language)
    counted = [(f"{count} times", words) for count, words in enumerate(own.times[:-1], 1)]
    phrases = ((reasons.PHRASES[code], words) for code, words in own.phrases.items() if code != "sentences")
    return _patterns([*phrases, *counted, ("{count} times", own.times[-1])] if own.phrases else ())


def _patterns(pairs: Iterable[tuple[str, str]]) -> Known:
    """Those with the most words of their own first: a shorter one may end in any text."""
    longest = sorted(pairs, key=lambda pair: -len(re.sub(r"\{.*?\}", "", pair[0])))
    return tuple((_pattern(english), own) for english, own in longest)


def _pattern(template: str) -> re.Pattern[str]:
    """What the template has become.

    Facts hold no full stop, but for those that are sentences: at its end, or where a new sentence follows at once.
    """
    parts, seen = [], set[str]()
    for words, name, _, _ in string.Formatter().parse(template):
        parts.append(re.escape(words))
        if name is not None:
            is_sentences = re.search(rf"\{{{name}\}}($| [A-Z][a-z]+ )", template)
            any_text = ".*" if is_sentences else r"(?:(?!\. ).)+?"
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>{any_text})")
            seen.add(name)
    return re.compile("".join(parts), re.DOTALL)
