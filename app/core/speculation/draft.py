"""Draft, the source of guesses that lets a small model of the same vocabulary write ahead of the large one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.core.speculation.acceptance import Score

GRADES = (0.3, 0.5, 0.7, 0.85, 0.95)  # upper limits of the grades: the draft's own probability of a token
FIRST_CHANCES = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)  # the assumed probability that the large model agrees, by grade
KEEP = 0.95  # the weight of the usual acceptance, compared with the latest token
FIRST_ACCEPTANCE = 0.65  # the assumed one
EASE = 0.003  # how far the usual acceptance returns to it with each token for which nothing was written


@dataclass(frozen=True, slots=True)
class DraftToken:
    """A token that the draft proposes, and its own probability of it."""

    token: int
    probability: float

    @property
    def grade(self) -> int:
        return bisect_right(GRADES, self.probability)


@dataclass(slots=True)
class DraftText:
    """The tokens that a draft has written after those that are known."""

    written: list[DraftToken] = field(default_factory=list)
    score: Score = field(default_factory=lambda: Score(FIRST_CHANCES))
    acceptance: float = FIRST_ACCEPTANCE  # the probability that a token is right if all before it are
    n_turns: int = 0  # how often the large model wrote something else

    def follow(self, tokens: Sequence[int]) -> None:
        """Compare the draft with what the large model has written since."""
        for token in tokens:
            if not self.written:  # it may have become better meanwhile
                self.acceptance += EASE * (FIRST_ACCEPTANCE - self.acceptance)
                continue
            guess = self.written.pop(0)
            self.score = self.score.after(guess, token)
            right = guess.token == token
            self.acceptance = KEEP * self.acceptance + (1 - KEEP) * right
            if not right:
                self.clear()

    def after(self, guesses: Sequence[int]) -> list[DraftToken]:
        """Return what is written after these guesses, or nothing if the draft wrote other tokens in their place."""
        if [draft.token for draft in self.written[: len(guesses)]] != list(guesses):
            return []
        return self.written[len(guesses) :]

    def usual_chances(self, n: int) -> list[float]:
        """Return for each of `n` tokens to write the probability that it and all before it will be right."""
        return [self.acceptance**place for place in range(1, n + 1)]

    def clear(self) -> None:
        """Forget what was written, because it no longer follows what is known."""
        self.written.clear()
        self.n_turns += 1
