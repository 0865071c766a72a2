"""The removal of control tokens such as `<|im_end|>` from ordinary text. Only a chat template may write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

BREAK = "\N{ZERO WIDTH SPACE}"


class ControlTokenBreaker:
    """A filter that alters text so that the model does not read any of it as a control token.

    Messages, documents, file names and tool results may come from anybody. Without the filter, such a text could end
    its own message and begin another that seems to come from somebody else.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        """Create a filter. markers: the texts that the model reads as control tokens."""
        self._markers = frozenset(marker for marker in markers if len(marker) > 1)
        self._lengths = sorted({len(marker) for marker in self._markers})
        seconds: dict[str, set[str]] = {}  # by the first character of a marker
        for marker in self._markers:
            seconds.setdefault(marker[0], set()).add(marker[1])
        # a plain first character, because the search for it is many times as fast as a look at each position
        pairs = (
            f"{re.escape(first)}(?=[{''.join(map(re.escape, sorted(second)))}])" for first, second in seconds.items()
        )
        self._beginnings = re.compile("|".join(sorted(pairs)) or r"(?!)")

    def except_for(self, kept: Iterable[str]) -> ControlTokenBreaker:
        """Return a filter that leaves the markers in `kept` unchanged."""
        left = self._markers.difference(kept)
        return self if left == self._markers else ControlTokenBreaker(left)

    def text(self, text: str) -> str:
        """Return the text with a zero-width space inserted into each marker."""

        def broken(start: re.Match[str]) -> str:
            at = start.start()
            is_marker = any(text[at : at + length] in self._markers for length in self._lengths)
            return start[0] + BREAK if is_marker else start[0]

        return self._beginnings.sub(broken, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with the filter applied to all its strings and keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(inner) for key, inner in value.items()}
        return [self.value(inner) for inner in value] if isinstance(value, list | tuple) else value
