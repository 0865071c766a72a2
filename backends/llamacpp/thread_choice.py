"""The number of threads that compute a stage's steps, found by experiment while computing. Pure, standard library only.

The best number is not known in advance: other programs, slow cores, hyperthreads and quotas make each further thread
help or harm, and today's answer is not tomorrow's. So now and then a few steps are computed with another number, and
the faster one stays. The cost of trials is bounded by a share of all computing, and trials come sooner when steps
suddenly take longer: then something else computes, and fewer threads wait less for each other.

Some steps have other results with another number: llama.cpp's flash attention splits the keys of a single row by
threads from 512 cells on, and logits then differ by up to 1.1 (as much as by the engine's own rounding). Such a step is
`tied`: it is computed with the number found so far, and another is tried only when steps really got slower. So answers
repeat. A number adopted then is given up again for the earlier one as soon as that is faster: a computer that stood
still for some steps makes any other number look better.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

TRIED_SHARE = 0.015  # of the time computed, for numbers that turn out to be slower
BETTER = 0.95  # so much of the time a number may take at most to be taken over
CHANGED = 1.4  # steps so many times as long or as short as they were: try anew at once
FOLLOWS = 0.02  # how fast what is usual follows: contexts grow, and steps with them
LEAST_STEPS, MOST_STEPS = 3, 8  # of a try
LEAST_S, LONG_S = 0.03, 0.25  # of a try; a step so long says enough alone
HOPELESS = 2.0  # so many times as long: the try ends early
N_RECENT = 6
GRANT_STEPS = 2.0  # what a try may cost where nothing is known of its number
EXACT_ROWS = 16  # up to here a step's time says most of its weights: steps are compared at equal rows


@dataclass(slots=True)
class _Kind:
    """Steps of about as many rows, which are compared with each other."""

    threads: int
    direction: int
    halvings: int = 1  # a try is as many threads away as these halvings of the number leave
    credit_s: float = 0.0  # what tries may still cost
    granted_steps: float = 0.0  # and so many steps' time, once it is known
    usual_s: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=N_RECENT))
    urgent: bool = False  # the try under way began because steps got slower
    tried: int = 0  # threads of the try under way; 0: none
    trial: list[float] = field(default_factory=list)
    spent_s: float = 0.0  # by the try under way, all of it
    costs_s: dict[int, float] = field(default_factory=dict)  # what a try with so many cost last
    flipped: bool = False  # the other direction was tried from here, too
    home: int = 0  # the number that was found while nothing disturbed
    home_s: float = 0.0  # what steps took with it

    def __post_init__(self) -> None:
        self.home = self.home or self.threads

    def now(self) -> int:
        return self.tried or self.threads

    def settle(self, threads: int, usual_s: float) -> None:
        self.threads, self.usual_s, self.flipped = threads, usual_s, False
        self.recent.clear()

    def stop_trying(self) -> None:
        self.tried, self.spent_s, self.urgent = 0, 0.0, False
        self.trial.clear()


class ThreadChoice:
    """The number of threads for each step: call `next`, compute, and report how long it `took`."""

    def __init__(self, most: int, start: int = 0) -> None:
        """start: where to begin; 0: always `most`, and nothing is tried."""
        self._fixed = start <= 0
        self._limit = self._most = max(1, most)
        self._start = min(max(1, start), self._most)
        self._kinds: dict[int, _Kind] = {}
        self._kind: _Kind | None = None  # of the step under way
        self._scale = 1.0
        self._tied = False

    @property
    def used(self) -> int:
        """Return the threads of the latest step's kind, as far as found; before the first step, the start value."""
        if self._fixed:
            return self._limit
        return self._kind.threads if self._kind else min(self._start, self._limit)

    def limit(self, most: int) -> None:
        """Use at most so many threads from now on, and never more than at first."""
        before, self._limit = self._limit, min(max(1, most), self._most)
        for kind in self._kinds.values():
            if max(kind.threads, kind.tried) > self._limit:
                kind.stop_trying()
            if kind.threads > self._limit:
                kind.settle(self._limit, 0.0)
            elif self._limit > before:
                kind.direction, kind.granted_steps, kind.costs_s = 1, GRANT_STEPS, {}

    def next(self, n_rows: int, *, tied: bool = False) -> int:
        """Return the threads for a step of so many rows. tied: the result depends on their number."""
        if self._fixed:
            return self._limit
        key = n_rows if n_rows <= EXACT_ROWS else EXACT_ROWS + n_rows.bit_length()
        self._scale = 1.0 if n_rows <= EXACT_ROWS else 1.0 / n_rows
        self._kind = self._kinds.get(key)
        if self._kind is None:
            self._kind = self._kinds[key] = self._new(key)
        self._tied = tied
        if tied and not self._kind.urgent:
            self._kind.stop_trying()
        return self._kind.now()

    def took(self, seconds: float) -> None:
        """Record how long the step took for which `next` was called."""
        kind, self_s = self._kind, seconds * self._scale
        if kind is None or self._fixed or self._most == 1:
            return
        if kind.tried:
            self._tried(kind, self_s, is_long=seconds >= LONG_S, least_s=LEAST_S * self._scale)
        else:
            self._computed(kind, self_s, is_long=seconds >= LONG_S)

    def _new(self, key: int) -> _Kind:
        """Return a kind that begins where its neighbor is; the first short and the first long one may try at once."""
        near = [known for known in self._kinds if (known > EXACT_ROWS) == (key > EXACT_ROWS)]
        if near:
            like = self._kinds[min(near, key=lambda known: abs(known - key))]
            return _Kind(like.threads, like.direction, like.halvings, home=like.home)
        threads = min(self._start, self._limit)
        direction = 1 if threads < self._limit else -1
        return _Kind(threads, direction, granted_steps=GRANT_STEPS)

    def _computed(self, kind: _Kind, seconds: float, *, is_long: bool) -> None:
        kind.recent.append(seconds)
        if len(kind.recent) < LEAST_STEPS and not is_long:
            return
        now_s = _mean(kind.recent)
        kind.usual_s = kind.usual_s or now_s
        kind.credit_s += TRIED_SHARE * seconds
        if kind.granted_steps:
            kind.credit_s += kind.granted_steps * now_s
            kind.granted_steps = 0.0
        middle_s = median(kind.recent)
        is_slow, is_quick = (middle_s > CHANGED * kind.usual_s, middle_s < kind.usual_s / CHANGED)
        if (is_slow or is_quick) and len(kind.recent) >= LEAST_STEPS:
            kind.usual_s, kind.costs_s, kind.flipped = now_s, {}, False
            kind.credit_s = max(kind.credit_s, GRANT_STEPS * now_s)
            kind.direction = -1 if is_slow else 1
            kind.halvings = 1
        elif kind.threads == kind.home:
            kind.home_s = kind.usual_s
        kind.usual_s += FOLLOWS * (now_s - kind.usual_s)
        candidate = self._candidate(kind)
        may = not self._tied or (is_slow and len(kind.recent) >= LEAST_STEPS)
        if self._tied and kind.threads != kind.home <= self._limit and now_s > kind.home_s / BETTER:
            candidate, may = kind.home, True
        if may and candidate and kind.credit_s >= kind.costs_s.get(candidate, GRANT_STEPS * now_s):
            kind.tried, kind.urgent = candidate, self._tied

    def _candidate(self, kind: _Kind) -> int:
        """Return the number to try next; 0: there is no other. Turns around where a direction ends."""
        for _ in range(2):
            away = max(1, kind.threads >> kind.halvings)
            threads = min(max(1, kind.threads + kind.direction * away), self._limit)
            if threads != kind.threads:
                return threads
            kind.direction = -kind.direction
        return 0

    def _tried(self, kind: _Kind, seconds: float, *, is_long: bool, least_s: float) -> None:
        is_first, kind.spent_s = not kind.spent_s, kind.spent_s + seconds
        usual_s = _mean(kind.recent)
        if is_first and not is_long:
            kind.trial.append(-1.0)  # threads begin or end in the first: it says nothing
            return
        kind.trial.append(seconds)
        counted = [measured for measured in kind.trial if measured >= 0]
        hopeless = min(counted) > HOPELESS * usual_s
        enough = len(counted) >= LEAST_STEPS and sum(counted) >= least_s
        if not (is_long or hopeless or enough or len(counted) >= MOST_STEPS):
            return
        self._judge(kind, _mean(counted), usual_s)

    def _judge(self, kind: _Kind, found_s: float, usual_s: float) -> None:
        """Adopt the tried number, or look the other way."""
        tried, cost_s = kind.tried, kind.spent_s - len(kind.trial) * usual_s
        is_disturbed = kind.urgent and tried != kind.home
        kind.stop_trying()
        kind.credit_s -= max(0.0, cost_s)
        if found_s < BETTER * usual_s:
            kind.costs_s.pop(tried, None)
            kind.settle(tried, found_s)
            if not is_disturbed:
                kind.home, kind.home_s = tried, found_s
            kind.credit_s = max(kind.credit_s, GRANT_STEPS * found_s)  # it goes on that way at once
            return
        kind.costs_s[tried] = max(GRANT_STEPS * usual_s, cost_s)
        kind.direction = -kind.direction
        if kind.flipped and kind.threads >> kind.halvings:
            kind.halvings += 1
        kind.flipped = not kind.flipped


def _mean(seconds: Sequence[float] | deque[float]) -> float:
    """Return the mean without the longest value, if there are enough: one hiccup of the system says nothing."""
    most = sorted(seconds)[: len(seconds) - (len(seconds) > LEAST_STEPS - 1)]
    return sum(most) / len(most)
