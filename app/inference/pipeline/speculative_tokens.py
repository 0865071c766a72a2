"""Speculative tokens: guesses of an answer's next tokens, computed before the real tokens are known.

A step of known positions may check guesses: it also computes the guessed positions after them, and the last run samples
up to the first wrong guess. While such a step is on its way, an idle machine may already compute the run of guesses
after it. That step waits before the last run until its first token is known to be right.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.core.speculation.lookup import Lookup, Score, TokenMatch
from app.core.speculation.overlap import SpeculationGain, TokenOrigin
from app.core.speculation.trip_costs import TripCosts
from app.inference.stages.stage_client import StageClient, Step


class WrongGuess(Exception):
    """A wrong guess, whose computed positions are useless."""


@dataclass(slots=True)
class Guess:
    """A run of guessed tokens and the position of the first.

    Its step waits before the last run, which receives it only if the first token is right. The others are then checked.
    """

    matches: tuple[TokenMatch, ...]
    pos: int
    chance: float  # probability that its first token and all before it are right
    first_s: float = 0.0  # time that the first run took for it
    _is_right: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(match.token for match in self.matches)

    @property
    def is_wrong(self) -> bool:
        """Return whether the guess is known to be wrong."""
        return self._is_right.done() and not self._is_right.result()

    def before_send(self) -> None:
        """Raise WrongGuess if the guess, which is about to be sent to the next run, is known to be wrong."""
        if self.is_wrong:
            raise WrongGuess

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
    # the guesses at the end of the step in flight whose first token is known, which the last run checks
    checked: tuple[TokenMatch, ...] = ()
    pending: deque[Guess] = field(default_factory=deque)  # runs of guesses after that step, oldest first
    trip_s: float | None = None  # what the latest trip took by itself, without overlap, if that is known
    trip_rows: int = 1
    n_dropped: int = 0  # wrong runs of guesses that their sequence still counts as in flight
    _lookup: Lookup = field(default_factory=Lookup)
    _score: Score = field(default_factory=Score)
    _matches: tuple[TokenMatch, ...] = ()  # what lookup expects next, whether or not it was used for guesses
    # how the next token is computed; None if its time is not measured from its start
    _origin: TokenOrigin | None = None
    _followed: bool = False  # whether the first run had computed the current position when the previous token arrived

    def proposal(self, tokens: array[int], most: int) -> list[TokenMatch]:
        """Return up to `most` tokens that are likely to come next. No step may be in flight."""
        first = [match for match in self._matches[:1] if match.is_token][:most]
        return first and first + self._lookup.find_run(tokens, [first[0].token], most - 1)

    def chances(self, run: Sequence[TokenMatch], before: float = 1.0) -> list[float]:
        """Return for each guess of a run the probability that it and all before it are right."""
        return self._score.chances(run, before)

    def check(self, run: Sequence[TokenMatch]) -> None:
        """Record that the step about to be sent checks these guesses."""
        self.checked = self._matches = tuple(run)
        self.n_made += len(run)

    def expects_check(self, tokens: array[int], costs: TripCosts) -> bool:
        """Return whether the step after the one in flight is likely to check guesses.

        Then the first run should not begin it with a single row in the meantime.
        """
        if len(self._matches) != 1 or not self._matches[0].is_token:
            return False
        chance = self._score.chance(self._matches[0])
        run = self._lookup.find_run(tokens, [self._matches[0].token], costs.most_rows) if chance >= 0.5 else []
        return costs.depth([self.chances(run)] if run else [], len(run)) > 0

    @property
    def is_wrong(self) -> bool:
        """Return whether the runs hold positions after the latest token that were computed from wrong guesses."""
        return self._origin is TokenOrigin.WRONG

    @property
    def in_flight(self) -> list[int]:
        """Return all guessed tokens in flight."""
        return [match.token for match in self.checked] + [token for guess in self.pending for token in guess.tokens]

    def next(
        self, tokens: array[int], gain: SpeculationGain, costs: TripCosts, most: int, *, checks: bool
    ) -> Guess | None:
        """Return a run of at most `most` guesses after all positions in flight, or None if no guess is worthwhile.

        checks: whether the run may have several tokens, all but the first of which are checked in one step.
        """
        before = self.in_flight
        chance = self.chances(self.checked)[-1] if self.checked else 1.0
        if self.pending:
            last = self.pending[-1]
            chance = self.chances(last.matches[1:], last.chance)[-1] if len(last.matches) > 1 else last.chance
        if before:
            run = self._lookup.find_run(tokens, before, min(most, costs.most_rows) if checks else 1)
        else:
            run = self.proposal(tokens, min(most, costs.most_rows) if checks else 1)
        if not run:
            return None
        chance *= self._score.chance(run[0])
        if not gain.pays(chance):
            return None
        depth = costs.depth([self.chances(run[1:])], len(run) - 1, gain.speedup) if len(run) > 1 else 0
        guess = Guess(tuple(run[: 1 + depth]), len(tokens) + len(before), chance)
        self.pending.append(guess)
        self.n_made += len(guess.matches)
        if self._origin is TokenOrigin.PLAIN:
            self._origin = TokenOrigin.OPENED
        return guess

    def judge(
        self, tokens: array[int], n_new: int, seconds: float, followed: bool, gain: SpeculationGain, costs: TripCosts
    ) -> SpeculationGain:
        """Compare the guesses with the last `n_new` of `tokens`, and return the updated gain.

        seconds: the time between these tokens and the previous one. followed: whether the first run computed the next
        position within the same time.
        """
        n_checked, origin = len(self.checked), self._origin
        # +1 if the first run computed this token's position earlier, -1 if this time includes the next position
        begun = self._followed - followed
        self._followed = followed
        if self.pending and self.pending[0].first_s and len(self.pending[0].matches) == 1:
            gain = gain.after_first_run(self.pending[0].first_s)
        self.trip_s, self.trip_rows = None, 1 + n_checked
        if origin is not None:
            took = max(0.0, seconds + begun * gain.first_s)
            if origin is TokenOrigin.PLAIN and (not begun or gain.first_s):
                self.trip_s = took
            # A trip that overlaps shows what overlap is worth or, if no trip had so many rows, what the rows cost.
            if origin is not TokenOrigin.PLAIN and n_checked and self.trip_rows not in costs.shares:
                self.trip_s = took / gain.shares[origin]
            elif origin is not TokenOrigin.PLAIN or not n_checked:
                gain = gain.after(origin, took / costs.share(self.trip_rows))
        for match, token in zip(self._matches, tokens[len(tokens) - n_new :], strict=False):
            self._score = self._score.after(match, token)
        self._lookup.read(tokens)
        self.checked, self._origin = (), TokenOrigin.PLAIN
        if self.pending:
            guess = self.pending[0]
            right = guess.pos == len(tokens) - 1 and guess.matches[0].token == tokens[-1]
            self._origin = TokenOrigin.RIGHT if right else TokenOrigin.WRONG
            if right:
                self.n_right += 1
                self.checked = self.pending.popleft().matches[1:]
                guess.judge(True)
            else:
                self.drop()
        coming = self._lookup.find(tokens) if not self.checked else None
        self._matches = self.checked or ((coming,) if coming is not None else ())
        return gain

    def drop(self) -> None:
        """Mark all pending guesses as wrong."""
        for guess in self.pending:
            guess.judge(False)
        self.n_dropped += len(self.pending)
        self.pending.clear()
        self.checked = ()

    def take_dropped(self) -> int:
        """Return how many runs of guesses turned out to be wrong since the last call."""
        n, self.n_dropped = self.n_dropped, 0
        return n

    def clear(self) -> None:
        """Discard all guesses, because no run has their positions in its KV cache."""
        self.pending.clear()
        self.checked, self.n_dropped, self._origin = (), 0, None


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
