"""Guessed tokens of one answer, whose positions are computed before the real tokens are known."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.core.scheduler.speculative_lookup import Gain, Lookup, Score, TokenMatch, TokenOrigin
from app.inference.stages.stage_client import StageClient, Step, forget


class Wrong(Exception):
    """A guess was wrong, so the positions computed for it are useless."""


@dataclass(slots=True)
class Guess:
    """A position with a guessed token. It waits before the last run, which receives only right guesses."""

    token: int
    pos: int
    chance: float  # probability that this guess and all before it are right
    n_reached: int = 0  # number of runs it was sent to
    first_s: float = 0.0  # how long the first run took for it
    _verdict: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def enters(self) -> None:
        """Check that the guess may still be right before it is sent to its next run. Raises Wrong otherwise."""
        if self._verdict.done() and not self.right:
            raise Wrong
        self.n_reached += 1

    @property
    def right(self) -> bool:
        """Return whether the guess has proved right."""
        return self._verdict.done() and self._verdict.result()

    async def proved(self) -> None:
        """Wait for the real token. Raises Wrong if the guess was wrong."""
        if not await self._verdict:
            raise Wrong

    def judge(self, right: bool) -> None:
        self._verdict.set_result(right)


@dataclass(slots=True)
class Guesses:
    """The guesses of one sequence about its own tokens. Only the pipeline's tasks change them."""

    n_made: int = 0
    n_right: int = 0
    pending: deque[Guess] = field(default_factory=deque)  # oldest first
    wrong: list[Guess] = field(default_factory=list)  # wrong guesses that the runs have not forgotten yet
    _lookup: Lookup = field(default_factory=Lookup)
    _score: Score = field(default_factory=Score)
    _found: TokenMatch | None = None  # the match for the next token, whether or not it was used for a guess
    _way: TokenOrigin | None = None  # how the next token comes about; None if it was not timed from its start
    _followed: bool = False  # whether the first run had computed the current position when the previous token arrived

    def next(self, tokens: array[int], gain: Gain) -> Guess | None:
        """Return a worthwhile guess for the position after all those in flight, or None."""
        chance, match = 1.0, self._found
        if self.pending:
            chance = self.pending[-1].chance
            match = self._lookup.find(tokens, [guess.token for guess in self.pending])
        if match is None:
            return None
        chance *= self._score.chance(match)
        if not gain.pays(chance):
            return None
        guess = Guess(match.token, len(tokens) + len(self.pending), chance)
        self.pending.append(guess)
        self.n_made += 1
        if self._way is TokenOrigin.PLAIN:
            self._way = TokenOrigin.OPENED
        return guess

    def came(self, tokens: array[int], seconds: float, followed: bool, gain: Gain) -> Gain:
        """Judge the guesses for the last of `tokens`, which came `seconds` after its predecessor. Return the updated
        gain.

        followed: the first run computed the next position within the same time.
        """
        token, way = tokens[-1], self._way
        # +1 if the first run's part of this token was done earlier, -1 if this time includes that of the next one
        begun = self._followed - followed
        self._followed = followed
        if self.pending and self.pending[0].first_s:
            gain = gain.first_took(self.pending[0].first_s)
        if way is not None:
            gain = gain.after(way, max(0.0, seconds + begun * gain.first_s))
        if self._found is not None:
            self._score = self._score.after(self._found, token)
        self._lookup.read(tokens)
        self._found = self._lookup.find(tokens)
        self._way = TokenOrigin.PLAIN
        if self.pending:
            right = self.pending[0].token == token
            self._way = TokenOrigin.RIGHT if right else TokenOrigin.WRONG
            if right:
                self.n_right += 1
                self.pending.popleft().judge(True)
            else:
                self.drop()
        return gain

    def drop(self) -> None:
        """Drop all pending guesses."""
        for guess in self.pending:
            guess.judge(False)
        self.wrong += self.pending
        self.pending.clear()

    def clear(self) -> None:
        """Forget all guesses, because no run holds them any longer."""
        self.pending.clear()
        self.wrong.clear()
        self._way = None


async def go_ahead(guess: Guess, step: Step, stages: Sequence[StageClient]) -> Step | None:
    """Compute a guessed step up to the last run and wait for its token. Return None if the guess was wrong."""
    try:
        sent_at = time.monotonic()
        for stage in stages:
            step = await stage.forward(step, guess.enters)
            guess.first_s = guess.first_s or time.monotonic() - sent_at
        await guess.proved()
    except Wrong:
        return None
    return step


async def take_back(guesses: Guesses, slot: int, stages: Sequence[StageClient]) -> int:
    """Make every run that received a wrong guess forget it. Return how many positions remain."""
    keep = guesses.wrong[0].pos
    if n_reached := max(guess.n_reached for guess in guesses.wrong):
        await forget(stages[:n_reached], slot, keep)
    guesses.wrong.clear()
    return keep
