"""Speculative tokens: guesses of an answer's next tokens, computed before the real tokens are known."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.core.scheduler.speculative_lookup import Lookup, Score, SpeculationGain, TokenMatch, TokenOrigin
from app.inference.stages.stage_client import StageClient, Step, forget


class WrongGuess(Exception):
    """A wrong guess, whose computed positions are useless."""


@dataclass(slots=True)
class Guess:
    """A guessed token and its position. Its step waits before the last run, which receives only correct guesses."""

    token: int
    pos: int
    chance: float  # probability that this guess and all previous ones are right
    n_reached: int = 0  # number of runs that it was sent to
    first_s: float = 0.0  # time that the first run took for it
    _is_right: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def before_send(self) -> None:
        """Record that the guess is about to be sent to the next run. Raises WrongGuess if it is known to be wrong."""
        if self._is_right.done() and not self.right:
            raise WrongGuess
        self.n_reached += 1

    @property
    def right(self) -> bool:
        """Return whether the guess is known to be correct."""
        return self._is_right.done() and self._is_right.result()

    async def wait_verified(self) -> None:
        """Wait until the real token is known. Raises WrongGuess if the guess was wrong."""
        if not await self._is_right:
            raise WrongGuess

    def judge(self, right: bool) -> None:
        self._is_right.set_result(right)


@dataclass(slots=True)
class Guesses:
    """The guesses for one sequence. Only the pipeline's tasks may change them."""

    n_made: int = 0
    n_right: int = 0
    pending: deque[Guess] = field(default_factory=deque)  # oldest first
    wrong: list[Guess] = field(default_factory=list)  # wrong guesses whose positions the runs have not forgotten yet
    _lookup: Lookup = field(default_factory=Lookup)
    _score: Score = field(default_factory=Score)
    _match: TokenMatch | None = None  # the match for the next token, whether or not it was used for a guess
    # how the next token is computed; None if its time is not measured from its start
    _origin: TokenOrigin | None = None
    _followed: bool = False  # whether the first run had computed the current position when the previous token arrived

    def next(self, tokens: array[int], gain: SpeculationGain) -> Guess | None:
        """Return a guess for the position after all positions in flight, or None if no guess is worthwhile."""
        chance, match = 1.0, self._match
        if self.pending:
            chance = self.pending[-1].chance
            match = self._lookup.find(tokens, [guess.token for guess in self.pending])
        if match is None or match.token < 0:  # a row of a picture, which no model generates
            return None
        chance *= self._score.chance(match)
        if not gain.pays(chance):
            return None
        guess = Guess(match.token, len(tokens) + len(self.pending), chance)
        self.pending.append(guess)
        self.n_made += 1
        if self._origin is TokenOrigin.PLAIN:
            self._origin = TokenOrigin.OPENED
        return guess

    def check(self, tokens: array[int], seconds: float, followed: bool, gain: SpeculationGain) -> SpeculationGain:
        """Check the guesses against the last of `tokens`, and return the updated gain.

        seconds: the time between this token and the previous one. followed: whether the first run computed the next
        position within the same time.
        """
        token, origin = tokens[-1], self._origin
        # +1 if the first run computed this token's position earlier, -1 if this time includes the next position
        begun = self._followed - followed
        self._followed = followed
        if self.pending and self.pending[0].first_s:
            gain = gain.after_first_run(self.pending[0].first_s)
        if origin is not None:
            gain = gain.after(origin, max(0.0, seconds + begun * gain.first_s))
        if self._match is not None:
            self._score = self._score.after(self._match, token)
        self._lookup.read(tokens)
        self._match = self._lookup.find(tokens)
        self._origin = TokenOrigin.PLAIN
        if self.pending:
            right = self.pending[0].token == token
            self._origin = TokenOrigin.RIGHT if right else TokenOrigin.WRONG
            if right:
                self.n_right += 1
                self.pending.popleft().judge(True)
            else:
                self.drop()
        return gain

    def drop(self) -> None:
        """Mark all pending guesses as wrong."""
        for guess in self.pending:
            guess.judge(False)
        self.wrong += self.pending
        self.pending.clear()

    def clear(self) -> None:
        """Discard all guesses, because no run has their positions in its KV cache."""
        self.pending.clear()
        self.wrong.clear()
        self._origin = None


async def compute_ahead(guess: Guess, step: Step, stages: Sequence[StageClient]) -> Step | None:
    """Compute a guessed step on these stages, then wait for the real token. Return None if the guess was wrong."""
    try:
        sent_at = time.monotonic()
        for stage in stages:
            step = await stage.forward(step, guess.before_send)
            guess.first_s = guess.first_s or time.monotonic() - sent_at
        await guess.wait_verified()
    except WrongGuess:
        return None
    return step


async def roll_back_guesses(guesses: Guesses, slot: int, stages: Sequence[StageClient]) -> int:
    """Make every run that received a wrong guess forget it. Return the number of remaining positions."""
    keep = guesses.wrong[0].pos
    if n_reached := max(guess.n_reached for guess in guesses.wrong):
        await forget(stages[:n_reached], slot, keep)
    guesses.wrong.clear()
    return keep
