"""The choice of a stage's thread count, made by experiment during normal computation.

The best count cannot be known in advance. Other programs, slow cores, hyperthreads and quotas determine whether another
thread helps or hurts, and they change over time. Occasionally, a few steps are therefore computed with another count,
and the faster count is adopted. Such trials may take only a fixed share of the computing time. They start earlier if
steps suddenly become slower: other programs are then probably using the cores, and fewer threads spend less time
waiting for each other.

The results of some steps depend on the thread count. From 512 cells on, llama.cpp's flash attention splits the keys of
a single row among threads. Logits then differ by up to 1.1, about as much as the engine's own rounding errors. Such a
step is called `tied`. To keep answers reproducible, tied steps use the best count known so far, and a trial starts only
if these steps have clearly slowed down. The new count is dropped as soon as the previous one is faster again, because
any other count looks better after the computer has stalled for a few steps.

Where results must be the same on all computers, tied steps begin with EXACT_THREADS instead, or with the best count if
that is lower, because the computer has no more threads to spare.

This module does no I/O and uses only the standard library.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

TRIED_SHARE = 0.015  # share of computing time that may be lost to trials of slower numbers
BETTER = 0.95  # a number is adopted if it takes at most this share of the usual time
CHANGED = 1.4  # factor by which steps must slow down or speed up to start a trial at once
FOLLOWS = 0.02  # how fast the usual time adapts, because steps take longer as contexts grow
LEAST_STEPS, MOST_STEPS = 3, 8  # steps of a trial
LEAST_S, LONG_S = 0.03, 0.25  # minimum duration of a trial; a single step of LONG_S suffices
HOPELESS = 2.0  # a trial ends early if steps take this many times as long
N_RECENT = 6
EXACT_THREADS = 4  # of tied steps in an exact stage: most computers have as many, and single rows gain little from more
GRANT_STEPS = 2.0  # allowed cost, in steps, of a trial of an untested number
EXACT_ROWS = 16  # up to here the weights dominate a step's time, so only steps with equal row counts are compared


@dataclass(slots=True)
class _Kind:
    """The timing record of steps with similar row counts, whose durations are comparable."""

    threads: int
    direction: int
    halvings: int = 1  # a trial changes the number by `threads >> halvings`, but at least by 1
    credit_s: float = 0.0  # remaining budget for trials
    granted_steps: float = 0.0  # addition to it, in steps, once their time is known
    usual_s: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=N_RECENT))
    urgent: bool = False  # the current trial started because steps became slower
    tried: int = 0  # threads of the current trial; 0: none
    trial: list[float] = field(default_factory=list)
    spent_s: float = 0.0  # total time of the current trial
    costs_s: dict[int, float] = field(default_factory=dict)  # cost of the latest trial of each number
    flipped: bool = False  # the opposite direction was tried from here, too
    home: int = 0  # the best number under undisturbed conditions
    home_s: float = 0.0  # the usual time with it

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
    """The choice of a thread count for each step.

    Call `next`, compute the step, then report its duration with `took`.
    """

    def __init__(self, most: int, start: int = 0, *, exact: bool = False) -> None:
        """Start with `start` threads. If `start` is 0, always use `most` threads and run no trials.

        exact: whether tied steps should have the same results on all computers, whatever other steps have found to be
        best.
        """
        self._fixed, self._exact = start <= 0, exact
        self._limit = self._most = max(1, most)
        self._start = min(max(1, start), self._most)
        self._kinds: dict[int, _Kind] = {}
        self._exact_kinds: dict[int, _Kind] = {}  # of tied steps in an exact stage
        self._kind: _Kind | None = None  # of the current step
        self._scale = 1.0
        self._tied = False

    @property
    def used(self) -> int:
        """Return the best thread count for the latest kind of step, or the initial count before the first step."""
        if self._fixed:
            return self._limit
        return self._kind.threads if self._kind else min(self._start, self._limit)

    def limit(self, most: int) -> None:
        """Use at most `most` threads from now on, within the maximum set at the start."""
        before, self._limit = self._limit, min(max(1, most), self._most)
        for kind in (*self._kinds.values(), *self._exact_kinds.values()):
            if max(kind.threads, kind.tried) > self._limit:
                kind.stop_trying()
            if kind.threads > self._limit:
                kind.settle(self._limit, 0.0)
            elif self._limit > before:
                kind.direction, kind.granted_steps, kind.costs_s = 1, GRANT_STEPS, {}
        for kind in self._exact_kinds.values():
            if before < kind.home <= self._limit:  # again as on other computers, even if fewer are as fast
                kind.stop_trying()
                kind.settle(kind.home, kind.home_s)

    def next(self, n_rows: int, *, tied: bool = False) -> int:
        """Return the thread count for a step of `n_rows` rows. tied: whether the step's result depends on the count."""
        is_exact = tied and self._exact
        if self._fixed:
            return min(EXACT_THREADS, self._limit) if is_exact else self._limit
        self._scale = 1.0 if n_rows <= EXACT_ROWS else 1.0 / n_rows
        kind = self._kind = self._exact_kind(n_rows) if is_exact else self._kind_of(n_rows)
        self._tied = tied
        if tied and not kind.urgent:
            kind.stop_trying()
        return kind.now()

    def _kind_of(self, n_rows: int) -> _Kind:
        key = n_rows if n_rows <= EXACT_ROWS else EXACT_ROWS + n_rows.bit_length()
        if key not in self._kinds:
            self._kinds[key] = self._new(key)
        return self._kinds[key]

    def _exact_kind(self, n_rows: int) -> _Kind:
        if n_rows not in self._exact_kinds:
            best = self._kind_of(n_rows).home
            self._exact_kinds[n_rows] = _Kind(min(EXACT_THREADS, best, self._limit), -1)
        return self._exact_kinds[n_rows]

    def took(self, seconds: float) -> None:
        """Record the duration of the step for which `next` was last called."""
        kind, self_s = self._kind, seconds * self._scale
        if kind is None or self._fixed or self._most == 1:
            return
        if kind.tried:
            self._tried(kind, self_s, is_long=seconds >= LONG_S, least_s=LEAST_S * self._scale)
        else:
            self._computed(kind, self_s, is_long=seconds >= LONG_S)

    def _new(self, key: int) -> _Kind:
        """Return a new record, initialized from the existing one with the most similar row count.

        The first record for few rows and the first for many have no such predecessor, so they may start a trial
        immediately.
        """
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
        """Return the thread count to try next, or 0 if there is no other. Reverses the direction at either limit."""
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
            kind.trial.append(-1.0)  # threads start or stop during the first step, so it is not counted
            return
        kind.trial.append(seconds)
        counted = [measured for measured in kind.trial if measured >= 0]
        hopeless = min(counted) > HOPELESS * usual_s
        enough = len(counted) >= LEAST_STEPS and sum(counted) >= least_s
        if not (is_long or hopeless or enough or len(counted) >= MOST_STEPS):
            return
        self._judge(kind, _mean(counted), usual_s)

    def _judge(self, kind: _Kind, found_s: float, usual_s: float) -> None:
        """Adopt the tried count if it was faster. Otherwise reverse the direction of the search."""
        tried, cost_s = kind.tried, kind.spent_s - len(kind.trial) * usual_s
        is_disturbed = kind.urgent and tried != kind.home
        kind.stop_trying()
        kind.credit_s -= max(0.0, cost_s)
        if found_s < BETTER * usual_s:
            kind.costs_s.pop(tried, None)
            kind.settle(tried, found_s)
            if not is_disturbed:
                kind.home, kind.home_s = tried, found_s
            # so that the next trial in this direction can start at once
            kind.credit_s = max(kind.credit_s, GRANT_STEPS * found_s)
            return
        kind.costs_s[tried] = max(GRANT_STEPS * usual_s, cost_s)
        kind.direction = -kind.direction
        if kind.flipped and kind.threads >> kind.halvings:
            kind.halvings += 1
        kind.flipped = not kind.flipped


def _mean(seconds: Sequence[float] | deque[float]) -> float:
    """Return the mean duration, excluding the longest if there are enough values, because it may be an outlier."""
    most = sorted(seconds)[: len(seconds) - (len(seconds) > LEAST_STEPS - 1)]
    return sum(most) / len(most)
