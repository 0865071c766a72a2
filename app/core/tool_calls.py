"""How models call tools: found in what they write, and made to by a grammar. Pure.

Styles are those of chat templates: "hermes" (also Qwen) writes <tool_call>{…}</tool_call>, "mistral" [TOOL_CALLS][…],
"llama3" nothing but {"name": …, "parameters": {…}}, several of them after "; ".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.json_grammar import Rules, literal

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MISTRAL, PYTHON = "[TOOL_CALLS]", "<|python_tag|>"
ARGUMENTS = {"hermes": "arguments", "mistral": "arguments", "llama3": "parameters"}
SIGNS = {"hermes": OPEN, "mistral": MISTRAL, "llama3": PYTHON}
MAY_BE_CONTROL = {"hermes": (OPEN, CLOSE), "mistral": (MISTRAL,), "llama3": (PYTHON,)}
BETWEEN = " \t\r\n;"
JSON_BEGINS = ("{", "[")  # a call, or a list of calls
MAX_CALLS = 8  # of one answer, where a grammar makes them

Message = Mapping[str, Any]  # as chat templates read it


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `arguments` is a JSON object as text."""

    name: str
    arguments: str


def calls_grammar(style: str, tools: Mapping[str, Any], many: bool) -> str:
    """Calls of these tools (name -> schema of its arguments), and nothing else. Raises BadInput."""
    rules = Rules()
    options = []
    for name, schema in tools.items():
        head = literal(f'{{"name": {json.dumps(name, ensure_ascii=False)}, "{ARGUMENTS[style]}": ')
        options.append(f'{head} {rules.add(schema or {"type": "object"})} "}}"')
    call = f"({' | '.join(options)})"
    more = f"{{0,{MAX_CALLS - 1 if many else 0}}}"
    match style:
        case "hermes":
            one = f"{literal(OPEN + chr(10))} {call} {literal(chr(10) + CLOSE)}"
            return rules.grammar(f'{one} ("\\n" {one}){more}')
        case "mistral":
            return rules.grammar(f'{literal(MISTRAL + "[")} {call} (", " {call}){more} "]"')
        case _:
            return rules.grammar(f'{call} ("; " {call}){more}')


class CallFinder:
    """Parts what a model writes into text and calls. What is no call of a tool that is there stays text."""

    def __init__(self, style: str, names: Sequence[str]) -> None:
        self._style, self._names = style, frozenset(names)
        self._held = ""  # not told yet: it may be part of a call, or blanks before one
        self._inside = False
        self._begun = False  # something but blanks has come

    def push(self, text: str) -> tuple[str, list[Call]]:
        """The text that can be told now, and the calls that are whole."""
        self._held += text
        if self._style == "hermes":
            return self._hermes()
        return self._to_the_end(), []

    def flush(self) -> tuple[str, list[Call]]:
        """What is left at the end of the answer."""
        rest, self._held = self._held, ""
        if not self._inside:
            return rest, []
        calls = self._read(rest.strip().removeprefix(SIGNS[self._style]).removesuffix(CLOSE))
        return ("", calls) if calls else (rest, [])

    def _hermes(self) -> tuple[str, list[Call]]:
        told, calls = "", list[Call]()
        while True:
            behind = self._held.find(OPEN) + len(OPEN)
            if self._inside and self._held[behind:].lstrip()[:1] not in ("", *JSON_BEGINS):
                told, self._held = told + self._held[:behind], self._held[behind:]  # but spoken of
                self._inside = False
            if self._inside:
                end = self._held.find(CLOSE)
                if end < 0:
                    return told, calls
                whole, self._held = self._held[: end + len(CLOSE)], self._held[end + len(CLOSE) :]
                before, found = self._closed(whole)
                told += before
                calls += found
                self._inside = False
            start = self._held.find(OPEN)
            if start < 0:
                return told + self._sure(OPEN), calls
            text = self._held[:start].rstrip()
            told, self._held = told + text, self._held[len(text) :]
            self._inside = True

    def _closed(self, whole: str) -> tuple[str, list[Call]]:
        """What stands between two signs; behind the last opening one, if the first was but begun and left."""
        for start in (whole.find(OPEN), whole.rfind(OPEN)):
            if found := self._read(whole[start:].removeprefix(OPEN).removesuffix(CLOSE)):
                return whole[:start].rstrip(), found
        return whole, []

    def _to_the_end(self) -> str:
        """Mistral's and Llama's calls are the rest of the answer, once they have begun."""
        if self._inside:
            return ""
        sign = SIGNS[self._style]
        start = self._held.find(sign)
        if self._style == "llama3" and not self._begun and self._held.lstrip().startswith("{"):
            start = 0
        if start < 0:
            return self._sure(sign)
        told, self._held = self._held[:start].rstrip(), self._held[start:]
        self._inside = True
        return told

    def _sure(self, sign: str) -> str:
        """All but blanks at the end, and what may be the beginning of the sign."""
        kept = next(
            (n for n in range(min(len(sign) - 1, len(self._held)), 0, -1) if self._held.endswith(sign[:n])), 0
        )  # fmt: skip
        sure = self._held[: len(self._held) - kept].rstrip()
        self._held = self._held[len(sure) :]
        self._begun = self._begun or bool(sure)
        return sure

    def _read(self, text: str) -> list[Call]:
        """All calls of a text, or none when any of it is something else."""
        try:
            given = _values(text)
        except (ValueError, RecursionError):
            return []
        calls = []
        for one in given:
            call = _call(one)
            if call is None or call.name not in self._names:
                return []
            calls.append(call)
        return calls


def _values(text: str) -> list[Any]:
    """A list's values, or all values that stand one after another, parted by blanks or semicolons.
    Raises ValueError for anything else."""
    text = text.lstrip()
    found, at, decoder = list[Any](), 0, json.JSONDecoder()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        while at < len(text) and text[at] in BETWEEN:
            at += 1
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def one_by_one(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Llama 3's templates refuse a message with several calls: each call as a message of its own, and what
    came of it behind it."""
    told: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []  # calls whose results have not come
    for message in messages:
        calls = message.get("tool_calls", ())
        if len(calls) > 1:
            told += left
            left = [{**message, "tool_calls": [call]} | ({"content": ""} if at else {})
                    for at, call in enumerate(calls)]  # fmt: skip
            continue
        if left and message["role"] == "tool":
            told.append(left.pop(_answered(left, message)))
        else:
            told, left = told + left, []
        told.append(message)
    return told + left


def _answered(left: Sequence[Message], result: Message) -> int:
    """Which of these calls the result belongs to: the one of its id, else the first."""
    ids = [message["tool_calls"][0].get("id") for message in left]
    given = result.get("tool_call_id")
    return ids.index(given) if given and given in ids else 0


def _call(one: object) -> Call | None:
    if not isinstance(one, dict):
        return None
    name, arguments = one.get("name"), one.get("arguments", one.get("parameters"))
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))
