"""Speculative tokens: guesses of an answer's next tokens, computed before the real tokens are known.

A step with known positions may check guesses: it also computes the guessed positions after them, and the last run
samples up to the first wrong guess. While such a step is in flight, an idle machine may already compute a step with the
guesses that follow. That step waits before the last run until its first token is known to be right.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from app.core.speculation.acceptance import GradedToken, Score
from app.core.speculation.draft import DraftText
from app.core.speculation.lookup import FIRST_CHANCES, Lookup, TokenMatch
from app.core.speculation.overlap import SpeculationGain, TokenOrigin
from app.core.speculation.trip_costs import LEAST_PLAIN, TripCosts
from app.inference.stages.stage_client import StageClient, Step


class Source(StrEnum):
    """A source of guesses."""

    LOOKUP = "lookup"  # earlier text of the conversation
    DRAFT = "draft"  # a small model


CostsOf = Callable[[Source], TripCosts]


class WrongGuess(Exception):
    """Error for a wrong guess, whose computed positions are useless."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Tokens that may come next.

    chances: for each token, the probability that it and all tokens before it are right.
    """

    source: Source = Source.LOOKUP
    graded: tuple[GradedToken, ...] = ()
    chances: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.graded)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(guess.token for guess in self.graded)

    def first(self, n: int) -> Proposal:
        return Proposal(self.source, self.graded[:n], self.chances[:n])

    def after(self, n: int) -> Proposal:
        return Proposal(self.source, self.graded[n:], self.chances[n:])


NOTHING = Proposal()


@dataclass(slots=True)
class Guess:
    """A run of guessed tokens, and the position of the first one.

    The step with these tokens waits before the last run, which receives it only if the first token is right. The last
    run then checks the other tokens.
    """

    run: Proposal
    pos: int
    first_s: float = 0.0  # time that the first run took for it
    _is_right: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.run.tokens

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
    n_runs: int = 0  # runs of guesses that were made; n_made counts their tokens
    n_trips: int = 0  # trips with guesses
    sources: Counter[Source] = field(default_factory=Counter)  # right guesses, by source
    # the guesses at the end of the step in flight whose first token is known, which the last run checks
    checked: Proposal = NOTHING
    pending: deque[Guess] = field(default_factory=deque)  # runs of guesses after that step, oldest first
    draft: DraftText | None = None  # what a draft model has written, if there is one
    trip_s: float | None = None  # what the latest trip took by itself, without overlap, if that is known
    trip_rows: int = 1
    trip_source: Source = Source.LOOKUP
    took_s: float = 0.0  # the time of this sequence's tokens while the time of a plain trip was known
    plain_s: float = 0.0  # what these tokens would have taken without guesses
    n_dropped: int = 0  # wrong runs of guesses that their sequence still counts as in flight
    _lookup: Lookup = field(default_factory=Lookup)
    _score: Score = field(default_factory=lambda: Score(FIRST_CHANCES))
    _matches: tuple[GradedToken, ...] = ()  # what lookup expects next, whether or not it was used for guesses
    # how the next token is computed; None if its time is not measured from its start
    _origin: TokenOrigin | None = None
    _followed: bool = False  # whether the first run had computed the current position when the previous token arrived

    def proposals(self, tokens: array[int], most: int) -> list[Proposal]:
        """Return the next tokens that each source proposes, at most `most` per source. No step may be in flight."""
        proposed = []
        if most > 0 and self._matches and self._matches[0].token >= 0:  # else a row of a picture
            first = self._matches[0]
            run = (first, *self._lookup.find_run(tokens, [first.token], most - 1))
            proposed.append(Proposal(Source.LOOKUP, run, tuple(self._score.chances(run))))
        if most > 0 and self.draft is not None and self.draft.written:
            proposed.append(self._drafted(self.draft.written[:most], 1.0))
        return proposed

    def check(self, run: Proposal) -> None:
        """Record that the step about to be sent checks these guesses."""
        self.checked = run
        if run.source is Source.LOOKUP:
            self._matches = run.graded
        self.n_made += len(run)
        self.n_runs += 1
        self.n_trips += 1

    def expects_check(self, tokens: array[int], costs_of: CostsOf) -> bool:
        """Return whether the step after the one in flight is likely to check guesses.

        If so, the first run should not start that step early with only a single row.
        """
        if self.wanted_draft(costs_of) > 0:
            return True
        if len(self._matches) != 1 or self._matches[0].token < 0:
            return False
        chance, costs = self._score.chance(self._matches[0]), costs_of(Source.LOOKUP)
        run = self._lookup.find_run(tokens, [self._matches[0].token], costs.most_rows) if chance >= 0.5 else []
        return costs.depth([self._score.chances(run)] if run else [], len(run)) > 0

    def wanted_draft(self, costs_of: CostsOf) -> int:
        """Return how many tokens the draft model should guess for the next step, or 0 if this is not worth the
        time.
        """
        if self.draft is None:
            return 0
        costs = costs_of(Source.DRAFT)
        return costs.depth([self.draft.usual_chances(costs.most_rows)], costs.most_rows)

    @property
    def is_wrong(self) -> bool:
        """Return whether the KV caches of the runs contain positions computed from wrong guesses after the latest
        token.
        """
        return self._origin is TokenOrigin.WRONG

    @property
    def in_flight(self) -> list[int]:
        """Return all guessed tokens in flight."""
        return [*self.checked.tokens, *(token for guess in self.pending for token in guess.tokens)]

    def next(
        self, tokens: array[int], gain: SpeculationGain, costs_of: CostsOf, most: int, *, checks: bool
    ) -> Guess | None:
        """Return a run of at most `most` guesses after all positions in flight, or None if no guess is worthwhile.

        checks: whether the run may have more than one token. All tokens but the first are checked together in one step.
        """
        before = self.in_flight
        latest = self.pending[-1].run if self.pending else self.checked
        chance = latest.chances[-1] if latest else 1.0
        best: Proposal | None = None
        for run in self._following(
            tokens, before, min(most, costs_of(Source.LOOKUP).most_rows) if checks else 1, chance
        ):
            if run and (best is None or run.chances[0] > best.chances[0]):
                best = run
        if best is None or not gain.pays(best.chances[0]):
            return None
        depth = 0
        if len(best) > 1:
            chances = [chance / best.chances[0] for chance in best.chances[1:]]
            depth = costs_of(best.source).depth([chances], len(chances), gain.speedup)
        guess = Guess(best.first(1 + depth), len(tokens) + len(before))
        self.pending.append(guess)
        self.n_made += len(guess.run)
        self.n_runs += 1
        if self._origin is TokenOrigin.PLAIN:
            self._origin = TokenOrigin.OPENED
        return guess

    def judge(
        self, tokens: array[int], n_new: int, seconds: float, followed: bool, gain: SpeculationGain, costs_of: CostsOf
    ) -> SpeculationGain:
        """Compare the guesses with the last `n_new` of `tokens`, and return the updated gain.

        seconds: the time between these tokens and the previous one.
        followed: whether the first run also computed the next position during this time.
        """
        n_checked, origin, usual = len(self.checked), self._origin, costs_of(Source.LOOKUP)
        if origin is not None and usual.n_plain >= LEAST_PLAIN:  # no origin: the first token, after the prompt
            self.took_s += seconds
            self.plain_s += n_new * usual.plain_s
        costs = costs_of(self.checked.source)
        # +1 if the first run computed this token's position earlier, -1 if this time includes the next position
        begun = self._followed - followed
        self._followed = followed
        if self.pending and self.pending[0].first_s and len(self.pending[0].run) == 1:
            gain = gain.after_first_run(self.pending[0].first_s)
        self.trip_s, self.trip_rows, self.trip_source = None, 1 + n_checked, self.checked.source
        if origin is not None:
            took = max(0.0, seconds + begun * gain.first_s)
            if origin is TokenOrigin.PLAIN and (not begun or gain.first_s):
                self.trip_s = took
            # A trip that overlaps shows what overlap is worth or, if no trip had so many rows, what the rows cost.
            if origin is not TokenOrigin.PLAIN and n_checked and self.trip_rows not in costs.shares:
                self.trip_s = took / gain.shares[origin]
            elif origin is not TokenOrigin.PLAIN or not n_checked:
                gain = gain.after(origin, took / costs.share(self.trip_rows))
        new = tokens[len(tokens) - n_new :]
        for match, token in zip(self._matches, new, strict=False):
            self._score = self._score.after(match, token)
        if self.draft is not None:
            self.draft.follow(new)
        self._lookup.read(tokens)
        self.checked, self._origin = NOTHING, TokenOrigin.PLAIN
        if self.pending:
            guess = self.pending[0]
            right = guess.pos == len(tokens) - 1 and guess.tokens[0] == tokens[-1]
            self._origin = TokenOrigin.RIGHT if right else TokenOrigin.WRONG
            if right:
                self.pending.popleft()
                self.count_right(guess.run.source, 1)
                known = guess.run.chances[0]
                rest = guess.run.after(1)
                self.checked = Proposal(rest.source, rest.graded, tuple(chance / known for chance in rest.chances))
                self.n_trips += bool(rest)
                guess.judge(True)
            else:
                self.drop()
        if self.checked and self.checked.source is Source.LOOKUP:
            self._matches = self.checked.graded
        else:
            coming = self._lookup.find(tokens)
            self._matches = (coming,) if coming is not None else ()
        return gain

    def count_right(self, source: Source, n: int) -> None:
        """Count `n` correct guesses from this source."""
        self.n_right += n
        self.sources[source] += n

    def drop(self) -> None:
        """Mark all pending guesses as wrong."""
        for guess in self.pending:
            guess.judge(False)
        self.n_dropped += len(self.pending)
        self.pending.clear()
        self.checked = NOTHING

    def take_dropped(self) -> int:
        """Return how many runs of guesses have turned out to be wrong since the last call."""
        n, self.n_dropped = self.n_dropped, 0
        return n

    def clear(self) -> None:
        """Discard all guesses, because no run has their positions in its KV cache."""
        self.pending.clear()
        self.checked, self.n_dropped, self._origin = NOTHING, 0, None

    def _following(self, tokens: array[int], before: Sequence[int], most: int, chance: float) -> list[Proposal]:
        """Return the tokens that each source proposes after the guesses in flight."""
        if not before:
            return self.proposals(tokens, most)
        run: list[TokenMatch] = self._lookup.find_run(tokens, before, most)
        proposed = [Proposal(Source.LOOKUP, tuple(run), tuple(self._score.chances(run, chance)))]
        if self.draft is not None and (drafted := self.draft.after(before)[:most]):
            proposed.append(self._drafted(drafted, chance))
        return proposed

    def _drafted(self, run: Sequence[GradedToken], chance: float) -> Proposal:
        assert self.draft is not None
        return Proposal(Source.DRAFT, tuple(run), tuple(self.draft.score.chances(run, chance)))


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
