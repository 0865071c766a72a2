"""Tokens become text piece by piece: no character is split, and no stop string leaks. No I/O."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence


class Detokenizer:
    """Bytes of tokens to text. A character that is not whole yet is held back."""

    def __init__(self, pieces: Sequence[bytes], signs: Mapping[int, bytes] | None = None) -> None:
        """signs: what control tokens, which have no text of their own, are told as."""
        self._pieces, self._signs = pieces, signs or {}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that this token completes; a token beyond the vocabulary has none."""
        piece = self._pieces[token] if 0 <= token < len(self._pieces) else b""
        return self._decoder.decode(piece or self._signs.get(token, b""))

    def flush(self) -> str:
        """What is left of a character that never became whole."""
        return self._decoder.decode(b"", final=True)


class StopFinder:
    """Looks for stop strings in text that comes in parts."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""  # may be the beginning of a stop string
        self.match: str | None = None  # what was found

    @property
    def found(self) -> bool:
        """Whether one of them has come."""
        return self.match is not None

    def push(self, text: str) -> str:
        """What can be shown now. After `found` nothing more comes."""
        if self.found or not self._stops:
            return "" if self.found else text
        text = self._held + text
        places = [(place, stop) for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            (place, self.match), self._held = min(places), ""
            return text[:place]
        keep = max(_tail(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """What was held back, now that no more text comes."""
        held, self._held = self._held, ""
        return held


def _tail(text: str, stop: str) -> int:
    """Length of the longest end of `text` with which `stop` begins."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
