"""The exact search for how many blocks of layers each machine of a given set should hold. Pure.

The cost of a request (app/core/planner/forecast.py) is, for a given set of machines, the larger of

    latency   line + more * pace. line: a sum over the machines, each linear in its count; pace: the longest of
              their periods, or a share of the sum of their times if that is longer; more: chunks after the first
    work      the most that one machine, or the link to it, has to do for a request, times the users

A limit on pace and on work is a largest count for each machine; the smallest line then follows from filling the
cheapest machine first. The limits are searched by halving; a half is dropped when even its smallest line with its
smallest pace is no better than the best found so far.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

BETTER = 1 - 1e-9  # by less than this a placement is not better, only rounded otherwise
CLOSE = 0.99  # so near to each other, halving gains nothing over the next smaller value

Blocks = tuple[int, ...]  # a count for each machine of the set
_State = tuple[float, float, int, int, tuple[tuple[int, int], ...], int]


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """A machine among so many others: what it costs by its number of blocks (place 0: unused)."""

    counts: tuple[int, ...]  # that it can hold somewhere, growing
    starts: list[int]  # for each count, where such a run fits (app/core/planner/stage_memory.py)
    line: list[float]
    chunk: list[float]
    pace: list[float]
    work: list[float]

    @property
    def least(self) -> int:
        return self.counts[0]

    @property
    def most(self) -> int:
        return self.counts[-1]

    @property
    def slope(self) -> float:
        return self.line[2] - self.line[1]


class LayerAllocation:
    """The search in one set of machines.

    more: chunks of the prompt after the first. shared: the part of the sum of all times that pace cannot be below.
    paces: every period of every member, growing. fits: whether these counts fit in some order; possible: whether
    any might. spend: some effort, if there is any left.
    """

    def __init__(
        self,
        members: Sequence[MachineCosts],
        n_blocks: int,
        more: int,
        shared: float,
        paces: Sequence[float],
        fits: Callable[[Blocks], bool],
        possible: Callable[[], bool],
        spend: Callable[[int], bool],
    ) -> None:
        self._members, self._n_blocks, self._paces = members, n_blocks, paces
        self._more, self._shared = more, shared
        self._fits, self._possible, self._spend = fits, possible, spend
        self._misses = 0  # counts that fit in no order
        self._hopeless = False  # no counts fit in any order
        places = range(len(members))
        self._cheapest = sorted(places, key=lambda place: members[place].slope)
        self._quickest = sorted(places, key=lambda p: members[p].chunk[2] - members[p].chunk[1])
        self._limit = 0.0  # latency must be below
        self._found: Blocks | None = None
        self.visited = 0  # counts that were looked at

    def best(self, below: float) -> tuple[float, Blocks] | None:
        """The counts with the smallest cost, and that cost, if it is below this."""
        known, best, best_counts = 0.0, below * BETTER, None  # nothing better has less work than `known`
        work_limit = best
        while known < best and not self._hopeless:
            counts = self._least_latency(work_limit, best)
            if counts is None:
                known = work_limit
            else:
                latency, work = self._latency(counts), self._work(counts)
                if max(latency, work) < best:
                    best, best_counts = max(latency, work), counts
                if work <= latency:
                    known = work_limit
            work_limit = best if known > CLOSE * best else (known + best) / 2
        return (best, best_counts) if best_counts is not None else None

    def _latency(self, counts: Blocks) -> float:
        line = chunk = pace = 0.0
        for member, n in zip(self._members, counts, strict=True):
            line += member.line[n]
            chunk += member.chunk[n]
            pace = max(pace, member.pace[n])
        return line + self._more * max(pace, self._shared * chunk)

    def _work(self, counts: Blocks) -> float:
        return max(member.work[n] for member, n in zip(self._members, counts, strict=True))

    def _least_latency(self, work_limit: float, below: float) -> Blocks | None:
        """The counts with the smallest latency below `below`, among those with less work than the limit."""
        most = [bisect_left(member.work, work_limit, 1, member.most + 1) - 1 for member in self._members]
        self._limit, self._found = below, None
        if self._filled(most, self._cheapest) is None:
            return None
        slowest = max(member.pace[n] for member, n in zip(self._members, most, strict=True))
        high = bisect_left(self._paces, slowest)
        halves = [(self._lowest_pace(most, high), high)]
        while halves:
            low, high = halves.pop()
            if low <= high and self._look(most, low, high):
                middle = (low + high) // 2
                halves += [(low, middle - 1), (middle, high - 1)]
        return self._found

    def _look(self, most: Sequence[int], low: int, high: int) -> bool:
        """Try the counts within the pace number `high`; return whether lower paces down to `low` may be better."""
        within = self._within(most, self._paces[high])
        filled = self._filled(within, self._cheapest)
        if filled is None:
            return False
        line = sum(member.line[n] for member, n in zip(self._members, filled, strict=True))
        if line + self._more * self._paces[low] >= self._limit:
            return False
        slack = self._more * self._paces[high]
        if not self._try(filled) or self._latency(filled) > line + slack:
            quickest = self._filled(within, self._quickest)
            assert quickest is not None
            chunk = sum(member.chunk[n] for member, n in zip(self._members, quickest, strict=True))
            if line + self._more * self._shared * chunk >= self._limit:
                return False
            self._walk(within, slack)
        return not self._hopeless

    def _lowest_pace(self, most: Sequence[int], high: int) -> int:
        """The first pace within which the machines can hold everything."""
        low = 0
        while low < high:
            middle = (low + high) // 2
            if self._filled(self._within(most, self._paces[middle]), self._cheapest) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _within(self, most: Sequence[int], pace: float) -> list[int]:
        return [bisect_right(member.pace, pace, 1, n + 1) - 1 for member, n in zip(self._members, most, strict=True)]

    def _filled(self, most: Sequence[int], order: Sequence[int]) -> Blocks | None:
        """Return all blocks, as many as possible on the first machines of the order; None when they hold too little."""
        counts = [member.least for member in self._members]
        left = self._n_blocks - sum(counts)
        if left < 0:
            return None
        for place in order:
            more = most[place] - counts[place]
            if more < 0:
                return None
            if more > left:
                more = left
            counts[place] += more
            left -= more
        return tuple(counts) if left == 0 else None

    def _try(self, counts: Blocks) -> bool:
        """Keep the counts if they are the best so far; return whether they can be used at all."""
        self.visited += 1
        members = self._members
        if any(n not in member.counts for member, n in zip(members, counts, strict=True)):
            return False
        latency = self._latency(counts)
        if latency >= self._limit:
            return True
        if not self._fits(counts):
            self._misses += 1
            if self._misses == 1:
                self._hopeless = not self._possible()
            return False
        self._limit, self._found = latency * BETTER, counts
        return True

    def _walk(self, most: Sequence[int], slack: float) -> None:
        """Try the counts that fit in some order, cheapest first, while their line is this slack below the limit.

        It is a best-first search: machines get their runs in the order in which they stand. A state is the host's
        count, the set of machines and the number of blocks left; its edges are the bits of one integer.
        """
        members, seen = self._members, dict[tuple[int, int, int], int]()
        rest = _Rest(members, self._cheapest, most)
        heap: list[_State] = []
        for n in members[0].counts[: bisect_right(members[0].counts, most[0])]:
            line, left = members[0].line[n], self._n_blocks - n
            if line + rest.line(1, left) + slack < self._limit:
                least = line + rest.line(1, left)
                heappush(heap, (least, line, 1, left, ((0, n),), members[0].starts[n]))
        while heap and heap[0][0] + slack < self._limit:
            _, line, held, left, runs, edges = heappop(heap)
            key = (runs[0][1], held, left)
            edges &= ~seen.get(key, 0)
            seen[key] = seen.get(key, 0) | edges
            if not edges:
                continue
            if left == 0 and held + 1 == 1 << len(members):
                self._try(tuple(n for _, n in sorted(runs)))
                continue
            for place in range(1, len(members)):
                if held >> place & 1:
                    continue
                member, now, before = members[place], held | 1 << place, 0.0
                fitting = bisect_right(member.counts, min(most[place], left))
                for n in reversed(member.counts[:fitting]):
                    so_far = line + member.line[n]
                    least = so_far + rest.line(now, left - n)
                    if not self._spend(1):
                        return
                    if least + slack >= self._limit:
                        if least > before > 0.0:
                            break  # it is convex in n: it only rises from here on
                    elif reached := (edges & member.starts[n]) << n:
                        run = (*runs, (place, n))
                        heappush(heap, (least, so_far, now, left - n, run, reached))
                    before = least


class _Rest:
    """The smallest line of the machines that have nothing yet."""

    def __init__(self, members: Sequence[MachineCosts], cheapest: Sequence[int], most: Sequence[int]) -> None:
        self._members, self._cheapest, self._most = members, cheapest, most
        self._known: dict[tuple[int, int], float] = {}

    def line(self, held: int, left: int) -> float:
        """Return the line once the machines with a bit in `held` have theirs and `left` blocks remain; infinite if
        impossible."""
        key = (held, left)
        if key not in self._known:
            self._known[key] = self._line(held, left)
        return self._known[key]

    def _line(self, held: int, left: int) -> float:
        line = 0.0
        unassigned = [place for place in self._cheapest if not held >> place & 1]
        for place in unassigned:
            member = self._members[place]
            line += member.line[member.least]
            left -= member.least
        if left < 0:
            return float("inf")
        for place in unassigned:
            member = self._members[place]
            more = min(self._most[place] - member.least, left)
            line += more * member.slope
            left -= more
        return line if left == 0 else float("inf")
