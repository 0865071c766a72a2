"""Speculation, which looks up the likely next token in earlier text and decides whether to compute it early.

While machines wait for each other to compute a single answer, one of them may compute the next position with a guessed
token. Guesses are often right only if a text repeats itself or its prompt. Each answer therefore scores the guesses
that it would have made, which costs nothing, and the pipeline measures the time that right and wrong guesses take.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

RUNS = (4, 2)  # lengths of the runs of tokens that are looked up, longest first
MOST_ALIKE = 16  # the maximum number of tokens before a match that are compared with the latest ones
READ_AT_ONCE = 512  # positions to index per call, so that a long prompt does not delay work in flight
GRADES = (3, 4, 6, 9, MOST_ALIKE)  # upper limits of the grades: matches of similar length are scored together
# the assumed probability for each grade, from fewer than 3 matching tokens upward
FIRST_CHANCES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8)
FIRST_WEIGHT = 3.0  # the assumed probabilities count like this many guesses
FADE = 0.96  # the decay of a guess's weight with each later guess, so that about the last 25 count


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


def _alike(tokens: array[int], place: int, tail: array[int]) -> int:
    most = min(MOST_ALIKE, place, len(tail))
    for n in range(most):
        if tokens[place - 1 - n] != tail[-1 - n]:
            return n
    return most


@dataclass(frozen=True, slots=True)
class Score:
    """The number of an answer's guesses, and of those that were right, by match length. Older guesses count less."""

    right: tuple[float, ...] = (0.0,) * len(FIRST_CHANCES)
    made: tuple[float, ...] = (0.0,) * len(FIRST_CHANCES)

    def chance(self, guess: TokenMatch) -> float:
        """Return the probability that the guess is right."""
        grade = guess.grade
        right = self.right[grade] + FIRST_CHANCES[grade] * FIRST_WEIGHT
        return right / (self.made[grade] + FIRST_WEIGHT)

    def after(self, guess: TokenMatch, token: int) -> Score:
        """Return the score after the actual token is known."""
        grade = guess.grade
        return Score(_faded(self.right, grade, float(guess.token == token)), _faded(self.made, grade, 1.0))


def _faded(counts: tuple[float, ...], grade: int, more: float) -> tuple[float, ...]:
    return (*counts[:grade], counts[grade] * FADE + more, *counts[grade + 1 :])


class TokenOrigin(Enum):
    """The part that speculation played in producing a token."""

    PLAIN = auto()  # nothing was guessed
    OPENED = auto()  # the token after it was guessed while it was computed
    RIGHT = auto()  # it was guessed correctly, so its position was in flight before the token was known
    WRONG = auto()  # it was guessed wrongly, so its position was computed for another token and rolled back


KEEP = 0.9  # the weight of the known time of plain tokens, compared with a new measurement
KEEP_SHARE = 0.8  # the same for the cost of guesses, which may be far off at first
OUTLIER = 2.0  # a slower token counts as this many times a plain one
# per plain token, shares return this slowly to their first values, so that guesses are tried again after a bad
# measurement
RELAX = 0.995
LEAST_PLAIN = 4  # the number of plain tokens to measure before the first guess
FIRST_SHARES = {TokenOrigin.OPENED: 1.0, TokenOrigin.RIGHT: 0.65, TokenOrigin.WRONG: 1.15}
LEAST_CHANCE = 0.1  # a wrong guess costs power even if it costs no time
LEAST_GAIN = 0.01  # the minimum expected gain of a guess, as a fraction of a plain token's time


@dataclass(frozen=True, slots=True)
class SpeculationGain:
    """The measured time per token in a pipeline with one answer. `shares` compare other tokens with plain ones.

    The shares start with values for two equal machines and are updated by measurements. Only the time of a plain token
    includes computing the next position on the first run, in one trip with the last run. `first_s`, the time to compute
    a guessed position on the first run, makes the times comparable.
    """

    first_s: float = 0.0
    plain_s: float = 0.0
    n_plain: int = 0
    shares: dict[TokenOrigin, float] = field(default_factory=lambda: FIRST_SHARES)

    def after(self, origin: TokenOrigin, seconds: float) -> SpeculationGain:
        """Return the measurements after a token of this origin took this many seconds."""
        if origin is TokenOrigin.PLAIN:
            known = self.n_plain > 0
            counted = min(seconds, OUTLIER * self.plain_s) if known else seconds
            usual = KEEP * self.plain_s + (1 - KEEP) * counted if known else counted
            eased = {w: RELAX * s + (1 - RELAX) * FIRST_SHARES[w] for w, s in self.shares.items()}
            return SpeculationGain(self.first_s, usual, self.n_plain + 1, eased)
        if self.plain_s <= 0:
            return self
        share = min(OUTLIER, seconds / self.plain_s)
        before = self.shares[origin]
        return replace(self, shares=self.shares | {origin: KEEP_SHARE * before + (1 - KEEP_SHARE) * share})

    def after_first_run(self, seconds: float) -> SpeculationGain:
        """Return the measurements after the first run took this many seconds to compute a guessed position."""
        counted = min(seconds, OUTLIER * self.first_s) if self.first_s else seconds
        first_s = KEEP * self.first_s + (1 - KEEP) * counted if self.first_s else counted
        return replace(self, first_s=first_s)

    def pays(self, chance: float) -> bool:
        """Return whether a guess that is right with probability `chance` is likely to speed up the answer."""
        if self.n_plain < LEAST_PLAIN or chance < LEAST_CHANCE:
            return False
        gain = 1 - self.shares[TokenOrigin.RIGHT]
        loss = max(0.0, self.shares[TokenOrigin.WRONG] - 1)
        opening = max(0.0, self.shares[TokenOrigin.OPENED] - 1)
        return chance * gain - (1 - chance) * loss - opening > LEAST_GAIN
