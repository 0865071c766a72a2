"""The cost of a trip through the pipeline by its number of rows, and the number of guesses that it should check.

A trip computes the next position of each answer. It may also compute guessed positions after it: the last run samples
row after row and stops at the first wrong guess. All right guesses then cost one trip in place of one each. Whether
that pays depends on how much longer a trip of more rows takes. Where round trips or reading the weights take most of
the time, it is hardly longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

FIRST_SLOPE = 0.5  # the assumed cost of a further row until it is measured, as a fraction of a plain trip
KEEP = 0.9  # the weight of the known time of a plain trip, compared with a new measurement
KEEP_SHARE = 0.7  # the same for the cost of rows, which may be far off at first
OUTLIER = 2.0  # a slower trip counts as this many times what was expected
LEAST_PLAIN = 4  # plain trips to measure before the first check
REMEASURED = 64  # after this many checks in a row, a plain trip shows what it takes now
# per plain trip, shares return this slowly to the assumed ones, so that checks are tried again after a bad measurement
RELAX = 0.995
LEAST_SPEEDUP = 1.03  # a smaller expected gain is not worth the power of the rows that are computed in vain
LEAST_CHANCE = 0.05  # less likely guesses are never checked
FIRST_TRIES, TRIED_CHANCE = 3, 0.25  # so many guesses are checked only to learn what a row costs, if this likely


@dataclass(frozen=True, slots=True)
class TripCosts:
    """The measured times of trips with equally many rows for each of a certain number of answers.

    `shares` maps the rows of each answer to the time of such a trip, relative to a plain one.
    """

    plain_s: float = 0.0
    n_plain: int = 0
    n_checked: int = 0  # trips with guesses since the last plain one
    n_tried: int = 0  # all trips with guesses
    shares: dict[int, float] = field(default_factory=dict)
    # the guesses of each first trip: more than one if the source takes a while for any, which several then share
    first_depth: int = 1

    def after(self, rows: int, seconds: float) -> TripCosts:
        """Return the costs after a trip with this many rows for each answer took this many seconds."""
        if rows <= 1:
            counted = min(seconds, OUTLIER * self.plain_s) if self.n_plain else seconds
            plain_s = KEEP * self.plain_s + (1 - KEEP) * counted if self.n_plain else counted
            eased = {rows: RELAX * share + (1 - RELAX) * _assumed(rows) for rows, share in self.shares.items()}
            return replace(self, plain_s=plain_s, n_plain=self.n_plain + 1, n_checked=0, shares=eased)
        if self.plain_s <= 0:
            return self
        known = self.share(rows)
        share = min(seconds / self.plain_s, OUTLIER * known)
        kept = KEEP_SHARE if rows in self.shares else 0.0
        return replace(
            self,
            n_checked=self.n_checked + 1,
            n_tried=self.n_tried + 1,
            shares=self.shares | {rows: kept * known + (1 - kept) * max(1.0, share)},
        )

    def share(self, rows: int) -> float:
        """Return the expected time of a trip with this many rows for each answer, relative to a plain one."""
        if rows <= 1 or rows in self.shares:
            return self.shares.get(rows, 1.0)
        known = {1: 1.0} | self.shares
        below = max(n for n in known if n < rows)
        above = min((n for n in known if n > rows), default=None)
        if above is not None:
            return known[below] + (known[above] - known[below]) * (rows - below) / (above - below)
        slope = (known[below] - 1) / (below - 1) if below > 1 else FIRST_SLOPE
        return known[below] + slope * (rows - below)

    @property
    def most_rows(self) -> int:
        """Return the most rows for each answer to try next, at most about twice as many as were measured."""
        return 1 + 2 * max(self.shares, default=(1 + self.first_depth) // 2)

    def speedup(
        self, chances: Sequence[Sequence[float]], depth: int, overlap: Callable[[float], float] = lambda _chance: 1.0
    ) -> float:
        """Return how many times as fast the answers are if the next trip checks so many guesses (see `depth`)."""
        tokens = 1 + sum(_mean(chances, place) for place in range(depth))
        return tokens / self.share(1 + depth) * overlap(_mean(chances, depth))

    def depth(
        self, chances: Sequence[Sequence[float]], most: int, overlap: Callable[[float], float] = lambda _chance: 1.0
    ) -> int:
        """Return how many guesses to check for each answer in the next trip. 0: none.

        chances: for each answer, the probability of each guess that it and all before it are right. overlap: returns
        how many times as fast the trip is because another machine goes on meanwhile, given the probability that all
        that is in flight is right.
        """
        if self.n_plain < LEAST_PLAIN or self.n_checked >= REMEASURED or not chances:
            return 0
        best, best_speedup = 0, LEAST_SPEEDUP * self.speedup(chances, 0, overlap)
        most = min(most, self.most_rows - 1, *map(len, chances))
        for depth in range(1, most + 1):
            if _mean(chances, depth - 1) < LEAST_CHANCE:
                break
            speedup = self.speedup(chances, depth, overlap)
            if speedup > best_speedup:
                best, best_speedup = depth, speedup
        if most and self.n_tried < FIRST_TRIES and _mean(chances, 0) >= TRIED_CHANCE:
            return max(best, min(most, self.first_depth))
        return best


def _mean(chances: Sequence[Sequence[float]], index: int) -> float:
    """Return the mean probability of the guesses at an index. Beyond the last guess, the last one counts."""
    return sum(some[min(index, len(some) - 1)] if some else 0.0 for some in chances) / len(chances)


def _assumed(rows: int) -> float:
    return 1 + FIRST_SLOPE * (rows - 1)
