"""The JSON between a node and its clients: lines, lone surrogates, errors, and merge patches (RFC 7396)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from app.core.errors import KINDS, AppError, Fact, Reason
from app.core.reasons import has_sentence


class LineTooLong(ValueError):
    """A line longer than the limit."""


class LineSplitter:
    """An incremental line splitter that reads each byte only once. Lines may not be longer than `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Add received bytes, and return the lines completed by them, without newlines. Raises LineTooLong."""
        head, end, tail = piece.rpartition(b"\n")
        if end:
            self._held += head
            lines = bytes(self._held).split(b"\n")
            self._held = bytearray(tail)
        else:
            self._held += tail
            lines = []
        if len(self._held) > self._most_bytes or any(len(line) > self._most_bytes for line in lines):
            raise LineTooLong
        return lines


_MAY_BE = re.compile(rb"\\u[dD][89a-fA-F]")
# Two backslashes are one escaped backslash, so a `u` after them begins no escape.
_ESCAPE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_REPLACEMENT = rb"\ufffd"
_HALF_BYTES = len(_REPLACEMENT)


def replace_lone_surrogates(data: bytes) -> bytes:
    """Return the JSON text with U+FFFD in place of each lone surrogate."""
    if not _MAY_BE.search(data):
        return data
    return _ESCAPE.sub(lambda match: _whole(match[0]), data)


def _whole(escape: bytes) -> bytes:
    return _REPLACEMENT if len(escape) == _HALF_BYTES else escape


class WireError(msgspec.Struct, frozen=True):
    """An error as the node sends it."""

    kind: str
    code: str = ""
    facts: dict[str, Fact] = {}
    message: str = ""


def error_of(payload: object) -> AppError:
    """Return the error that a node sent, as an instance of its original class.

    If this version has no sentence for the error, use the sentence that the node sent.
    """
    try:
        sent = msgspec.convert(payload, WireError)
    except msgspec.ValidationError:
        return AppError("node_fault", detail=Reason("answer_not_understood"))
    facts = {name: fact for name, fact in sent.facts.items() if name not in ("self", "code")}
    kind = KINDS.get(sent.kind, AppError)
    error = kind(sent.code, **facts)
    if has_sentence(error.reason):
        return error
    if sent.message:
        return kind("said_by_node", sentence=sent.message)
    return AppError("node_fault", detail=sent.code or sent.kind)


Json = dict[str, Any]


def merge_patch(old: Json, new: Json) -> Json:
    """Return the smallest merge patch that turns `old` into `new`, or {} if they are equal.

    Because None in a patch removes a key, snapshots never omit a key and use None for a missing value.
    """
    patch: Json = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if key not in old or before != value:
            both = isinstance(before, dict) and isinstance(value, dict)
            patch[key] = merge_patch(before, value) if both else value  # type: ignore[arg-type]
    return patch


def apply_merge_patch(old: Json, patch: Json) -> Json:
    """Return a copy of `old` with the merge patch applied."""
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            before = new.get(key)
            new[key] = apply_merge_patch(before if isinstance(before, dict) else {}, value)
        else:
            new[key] = value
    return new
