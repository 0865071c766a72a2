"""Acceptance: how often the guesses of an answer are right, by how sure their source was of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

N_GRADES = 6
FIRST_WEIGHT = 3.0  # the assumed probabilities count like this many guesses
FADE = 0.96  # the decay of a guess's weight with each later guess, so that about the last 25 count


class GradedToken(Protocol):
    """A guessed token. Guesses of which its source is about equally sure have the same grade."""

    @property
    def token(self) -> int: ...
    @property
    def grade(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Score:
    """The number of an answer's guesses, and of those that were right, by grade. Older guesses count less.

    first: the assumed probability for each grade.
    """

    first: tuple[float, ...]
    right: tuple[float, ...] = (0.0,) * N_GRADES
    made: tuple[float, ...] = (0.0,) * N_GRADES

    def chance(self, guess: GradedToken) -> float:
        """Return the probability that the guess is right."""
        grade = guess.grade
        right = self.right[grade] + self.first[grade] * FIRST_WEIGHT
        return right / (self.made[grade] + FIRST_WEIGHT)

    def chances(self, run: Sequence[GradedToken], before: float = 1.0) -> list[float]:
        """Return for each of these guesses the probability that it and all before it are right.

        before: the probability that all before the first of them are right.
        """
        result = []
        for guess in run:
            before *= self.chance(guess)
            result.append(before)
        return result

    def after(self, guess: GradedToken, token: int) -> Score:
        """Return the score after the actual token is known."""
        grade = guess.grade
        right, made = _faded(self.right, grade, float(guess.token == token)), _faded(self.made, grade, 1.0)
        return Score(self.first, right, made)


def _faded(counts: tuple[float, ...], grade: int, more: float) -> tuple[float, ...]:
    return (*counts[:grade], counts[grade] * FADE + more, *counts[grade + 1 :])
