"""Log lines: their facts, their readable form, and the removal of private data.

A private name is replaced by the same word everywhere, so that the log can still be followed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec


class _Line(msgspec.Struct, frozen=True):
    """The fields of a JSON log line that appear in its readable form."""

    time: str
    level: str
    logger: str
    message: str
    error: str | None = None


_DECODER = msgspec.json.Decoder(_Line)
Facts = Mapping[str, str | int | float | bool | None]


def log_extra(request: str, **facts: str | int | float | bool | None) -> dict[str, Any]:
    """Return the `extra` argument of a logging call: the request that the line is about, and its facts.

    Never pass the text of a chat.
    """
    return {"request": request, "facts": facts}


def readable_line(line: str) -> str:
    """Return a JSON log line in readable form. Any other text is returned unchanged."""
    try:
        entry = _DECODER.decode(line)
    except (ValueError, RecursionError):  # every error of msgspec is a ValueError
        return line
    moment = entry.time.replace("T", " ").removesuffix("Z")
    text = f"{moment} {entry.level} {entry.logger}: {entry.message}"
    return text + ("" if entry.error is None else f"\n{entry.error}")


_IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:.]{2,45}(?:%\w{1,16})?")
_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_ID = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{16,}(?![0-9A-Za-z])")
_SECRET = re.compile(r"(?<![0-9A-Za-z])hf_[0-9A-Za-z]{6,}|(?<=Bearer )\S+", re.IGNORECASE)
MOST_CHARACTERS = 20_000  # per line: matching longer lines would take too long, and nobody reads them
_WORD = r"[^\s\"'/\\]+"
_IN_HOME = re.compile(  # folder names may contain spaces, and JSON doubles backslashes
    rf"~(?:[/\\]+{_WORD}(?: +{_WORD})*)+([/\\]+{_WORD})"
)


@dataclass(frozen=True, slots=True)
class PrivateNames:
    """The names known to be private: names of machines, of people, and of the user's folders."""

    machines: Sequence[str] = ()
    people: Sequence[str] = ()
    folders: Sequence[str] = ()


def redact(texts: Mapping[str, str], known: PrivateNames) -> dict[str, str]:
    """Return the texts without private data. `texts` must be in reading order."""
    words = _Words()
    return {
        key: "".join(_redacted_text(_cut(line), known, words) for line in text.splitlines(keepends=True))
        for key, text in texts.items()
    }


class _Words:
    """The words that replace private names, numbered by first occurrence."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def __call__(self, kind: str, text: str) -> str:
        many = sum(1 for other, _ in self._given if other == kind)
        return self._given.setdefault((kind, text.casefold()), f"{kind}-{many + 1}")


def _redacted_text(text: str, known: PrivateNames, words: _Words) -> str:
    for folder in sorted(filter(None, known.folders), key=len, reverse=True):
        text = text.replace(folder, "~")
        text = text.replace(folder.replace("\\", "\\\\"), "~")  # JSON doubles backslashes
    text = _IN_HOME.sub(r"~/…\1", text)
    text = _SECRET.sub("secret", text)
    text = _MAIL.sub(lambda match: words("mail", match[0]), text)
    for kind, names in (("machine", known.machines), ("person", known.people)):
        text = _without(names, text, _numbered(words, kind))
    text = _MAC.sub(lambda match: words("address", match[0]), text)
    text = _ID.sub(lambda match: words("id", match[0]), text)
    for pattern in (_IPV6, _IPV4):
        text = pattern.sub(lambda match: _address(match[0], words), text)
    return text


def _cut(line: str) -> str:
    if len(line) <= MOST_CHARACTERS:
        return line
    return f"{line[:MOST_CHARACTERS]}… ({len(line) - MOST_CHARACTERS} characters left out)\n"


def _numbered(words: _Words, kind: str) -> Callable[[re.Match[str]], str]:
    return lambda match: words(kind, match[0])


def _without(names: Sequence[str], text: str, word: Callable[[re.Match[str]], str]) -> str:
    """Replace all names in a single pass, longest first, so that no replacement is replaced again."""
    nonempty = sorted({name for name in names if name.strip()}, key=lambda name: (-len(name), name))
    if not nonempty:
        return text
    either = "|".join(map(re.escape, nonempty))
    return re.sub(rf"(?<![^\W_])(?:{either})(?![^\W_])", word, text, flags=re.IGNORECASE)


def _address(text: str, words: _Words) -> str:
    """Return the replacement for an address.

    Loopback addresses and text that is not an address are returned unchanged.
    """
    trimmed = text.rstrip(":.")
    rest = text[len(trimmed) :]
    for candidate, behind in ((text, ""), (trimmed, rest)):
        try:
            address = ipaddress.ip_address(candidate.partition("%")[0])
        except ValueError:
            continue
        if address.is_loopback or address.is_unspecified:
            return text
        return words("address", candidate.partition("%")[0]) + behind
    return text
