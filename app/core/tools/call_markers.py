"""The markers of a call format in the form that parsers search for, without whitespace that models may omit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from backends.contract import (
    CALL_ID_PLACEHOLDER,
    CALL_NUMBER_PLACEHOLDER,
    TOOL_NAME_PLACEHOLDER,
    CallFormat,
    CallSyntax,
)

SLOT = re.compile(f"[{CALL_ID_PLACEHOLDER}{CALL_NUMBER_PLACEHOLDER}]")
TOKEN = re.compile(r"<[^<>]*>?|\[[^\[\]]*\]|[^<\[\s]+|\[")
BEFORE_SIGN = re.compile(r"\s+(?=[<\[\]])")
JSON_HEAD = re.compile(r"\s*\[?\s*$")
TO = "to=functions."
MESSAGE, CHANNEL, START, CALL_END = "<|message|>", "<|channel|>", "<|start|>assistant", "<|call|>"
MISTRAL, MISTRAL_ID, MISTRAL_ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
KIMI = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")  # Kimi models write either of these
KIMI_TOO = ("<|tool_call_section_begin|>", "<|tool_call_section_end|>")
HARMONY = (
    *(f"{START}{CHANNEL}{name} {TO}" for name in ("commentary", "analysis")),
    *(f"{CHANNEL}{name} {TO}" for name in ("commentary", "analysis")),
    f"{START} {TO}",
    f"{START}{TO}",
    TO,
)


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers that the parser of a call format searches for."""

    begins: tuple[str, ...]  # markers with which a call may begin
    is_spoken: bool  # whether `last` followed by a tool's name also begins a call
    outer: tuple[str, ...]  # optional markers before `last`, in order
    last: str  # the marker directly before the name, or before the text that precedes the name
    inner: str  # the text between `last` and the name
    behind_name: str  # the literal text after the name, if known
    arguments: str  # for NAMED: the marker before the arguments
    ends: tuple[str, ...]  # end markers of one call
    closes: tuple[str, ...]  # end markers of all calls together, in order
    key: str
    value_end: str
    wrap: tuple[str, str]  # whitespace around each value
    # The markers between key and value, in order, and the types of value that they indicate.
    keyed: tuple[tuple[tuple[str, ...], frozenset[str]], ...]
    opening: str  # for OBJECTS
    closing: str
    address: str = ""  # if each call is a message to its tool: the text before the name in its header
    joined: str = ""  # the text between two such messages

    @property
    def all(self) -> tuple[str, ...]:
        """Return all markers that may be control tokens of the model.

        The engine must pass these tokens on to parsers.
        """
        texts = (*self.begins, *self.outer, self.last, self.inner, self.behind_name, self.arguments, *self.ends,
               *self.closes, self.joined, self.key, self.value_end, self.opening, self.closing,
               *(token for tokens, _ in self.keyed for token in tokens))  # fmt: skip
        if MISTRAL in (self.last, self.opening):
            texts = (*texts, MISTRAL_ID, MISTRAL_ARGUMENTS)
        markers = dict.fromkeys(
            token for text in texts for token in (text, *TOKEN.findall(SLOT.sub(" ", text))) if token
        )
        return tuple(marker for marker in markers if not marker.isalnum() and len(marker) > 1)


@lru_cache(maxsize=64)
def markers_of(form: CallFormat) -> Markers:
    address, _, behind = form.lead.rpartition(TOOL_NAME_PLACEHOLDER)
    lasts = _parts(behind)
    outer: tuple[str, ...] = _parts(form.section)
    if form.payload is CallSyntax.OBJECTS:
        opening = JSON_HEAD.sub("", form.section + form.lead).strip()
        closing = (form.trail + form.section_end).strip().removeprefix("]").strip()
        begins: tuple[str, ...] = (opening, *form.other_begins) if opening else form.other_begins
        return Markers(begins, False, (), "", "", "", "", (), (), "", "", ("", ""), (), opening, closing)
    if form.payload is CallSyntax.HARMONY:
        ends: tuple[str, ...] = (CALL_END,)
        return Markers(HARMONY, False, (), "", "", "", MESSAGE, ends, (), "", "", ("", ""), (), "", "")
    if form.payload is CallSyntax.PYTHON:
        begin, end = (form.section.strip().removesuffix("["), form.section_end.strip().removeprefix("]"))
        return Markers((begin,), False, (), begin, "", "", "", (), (end,), "", "", ("", ""), (), "", "")
    if form.payload is CallSyntax.NESTED:
        begin, ends = form.section.strip(), (form.trail.strip(),)
        return Markers((begin,), False, (), begin, form.lead, form.named, "", ends, (form.section_end,), form.key,
                     form.value_end, ("", ""), (), "", "")  # fmt: skip
    last = lasts[-1] if lasts else ""
    outer = (*outer, *lasts[:-1])
    inner = ""
    arguments = ""
    if form.payload is CallSyntax.NAMED:
        tokens = TOKEN.findall(SLOT.split(last)[0])
        first = tokens[0] if tokens else last
        last, inner = first, last[len(first) :]
        literals = [part for part in SLOT.split(form.named) if part]
        arguments = _last_token(literals[-1]) if literals else ""
    is_tagged = form.payload is CallSyntax.TAGGED
    ends = _parts(form.trail) if is_tagged else tuple(TOKEN.findall(form.trail))
    closes = _parts(form.section_end) if is_tagged else tuple(TOKEN.findall(form.section_end))
    if form.section == KIMI[0]:
        outer += KIMI_TOO[:1]
        closes += KIMI_TOO[1:]
    begins = (*outer, *([] if form.payload is CallSyntax.TAGGED and outer else [last]), *form.other_begins)
    keyed: dict[tuple[str, ...], set[str]] = {}
    for kind, text in form.keyed:
        keyed.setdefault(tuple(TOKEN.findall(text)), set()).add(kind)
    after = next((text for _, text in form.keyed), "")
    wrap = (after[len(after.rstrip()) :], form.value_end[: len(form.value_end) - len(form.value_end.lstrip())])
    return Markers(
        begins, is_tagged and bool(outer), outer, last, inner, SLOT.split(form.named)[0].strip(), arguments,
        ends, closes, form.key.strip(), form.value_end.strip(), wrap,
        tuple((tokens, frozenset(kinds)) for tokens, kinds in keyed.items() if tokens), "", "",
        address, form.between if address else "",
    )  # fmt: skip


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in BEFORE_SIGN.split(text.strip()) if part)


def _last_token(text: str) -> str:
    tokens = TOKEN.findall(text)
    return tokens[-1] if tokens else text


def marker_start_length(text: str, markers: Iterable[str]) -> int:
    """Return how many trailing characters of `text` may be the beginning of one of these markers."""
    return max((_begun(text, marker) for marker in markers), default=0)


def _begun(text: str, marker: str) -> int:
    most = min(len(marker) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(marker[:n])), 0)
