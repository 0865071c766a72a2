"""Lookup, the source of guesses that takes the likely next tokens from earlier text of the same conversation.

Such guesses are often right only if a text repeats itself or its prompt. Each answer therefore scores the guesses that
it would have made, which costs nothing.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

RUNS = (4, 2)  # lengths of the runs of tokens that are looked up, longest first
MOST_ALIKE = 16  # the maximum number of tokens before a match that are compared with the latest ones
READ_AT_ONCE = 512  # positions to index per call, so that a long prompt does not delay work in flight
GRADES = (3, 4, 6, 9, MOST_ALIKE)  # upper limits of the grades: matches of similar length are scored together
# the assumed probability for each grade, from fewer than 3 matching tokens upward
FIRST_CHANCES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8)


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """A likely next token, and the number of tokens before it that match."""

    token: int
    n_alike: int

    @property
    def grade(self) -> int:
        return bisect_right(GRADES, self.n_alike)


class Lookup:
    """An index of the latest position of each short run of tokens in a text, used to predict the next token."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}  # maps a run of tokens to the position after it
        self._read = 1  # positions below this are indexed

    def read(self, tokens: array[int]) -> None:
        """Index the new tokens. If there are many, each call indexes only some of them."""
        end = min(len(tokens), self._read + READ_AT_ONCE)
        for position in range(self._read, end):
            for n in RUNS:
                if n <= position:
                    self._places[tokens[position - n : position].tobytes()] = position
        self._read = max(end, self._read)

    def find(self, tokens: array[int], pending: Sequence[int] = ()) -> TokenMatch | None:
        """Return the token likely to follow `tokens` and `pending`, or None.

        The `pending` tokens are guesses themselves.
        """
        tail = tokens[-MOST_ALIKE:] + array("i", pending)
        for n in RUNS:
            if n <= len(tail) and (place := self._places.get(tail[-n:].tobytes())):
                return TokenMatch(tokens[place], _alike(tokens, place, tail))
        return None

    def find_run(self, tokens: array[int], pending: Sequence[int], most: int) -> list[TokenMatch]:
        """Return up to `most` tokens that are likely to follow `tokens` and `pending`, one after another."""
        run: list[TokenMatch] = []
        while len(run) < most and (match := self.find(tokens, [*pending, *(known.token for known in run)])) is not None:
            if match.token < 0:  # a row of a picture, which no model generates
                break
            run.append(match)
        return run


def _alike(tokens: array[int], place: int, tail: array[int]) -> int:
    most = min(MOST_ALIKE, place, len(tail))
    for n in range(most):
        if tokens[place - 1 - n] != tail[-1 - n]:
            return n
    return most
