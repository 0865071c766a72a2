"""An exact search for the best split: which lenders take part, in which order, and how many layers each holds.

The cost of a placement depends on the number of layers on each machine. Which layers they are matters only for memory.
Each set of lenders therefore gets a lower bound. `LayerAllocation` examines the sets in ascending order of their
bounds, until a bound is no better than the best result. `arrange` then looks for an order of the lenders in which every
run fits. Because layers differ in size, a run of ten may fit at one position and not at another. `arrange` searches
over sets of lenders and stores the edges that a set can reach as the bits of one integer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import combinations
from typing import NamedTuple

from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.forecast import Rounds, cost
from app.core.planner.placement import Candidate, PlannedStage, Workload
from app.core.planner.stage_memory import Grid, fixed_bytes, host_starts, lender_starts, split_stages
from backends.contract import Role

BETTER = 1 - 1e-9  # a result must be better by more than this, so that rounding errors do not count
CLOSE = 0.99  # the search stops between limits whose ratio is closer to 1 than this

Blocks = tuple[int, ...]  # the number of blocks for each machine of the set
_State = tuple[float, float, int, int, tuple[tuple[int, int], ...], int]


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """The costs of one machine by number of blocks, with the names used in `LayerAllocation`. Index 0 is unused."""

    counts: tuple[int, ...]  # the numbers of blocks for which it has room somewhere, ascending
    starts: list[int]  # for each number of blocks, a mask of where such a run fits (app/core/planner/stage_memory.py)
    line: list[float]
    chunk: list[float]
    pace: list[float]
    work: list[float]
    breaks: tuple[int, ...] = ()  # numbers of blocks from which a further one costs more, ascending

    @property
    def least(self) -> int:
        return self.counts[0]

    @property
    def most(self) -> int:
        return self.counts[-1]


class _Piece(NamedTuple):
    """The blocks of one machine after `begin` up to `end`, each of which adds the same to a cost."""

    slope: float
    place: int
    begin: int
    end: int

    def blocks(self, least: int, most: int) -> int:
        """Return how many of these blocks are left between so few and so many blocks."""
        return max(0, min(self.end, most) - max(self.begin, least))


def _pieces(members: Mapping[int, MachineCosts], costs: Callable[[MachineCosts], list[float]]) -> list[_Piece]:
    """Return the pieces of a convex cost of all machines, cheapest first."""
    pieces = []
    for place, member in members.items():
        values, begin = costs(member), 1
        for end in (*member.breaks, len(values) - 1):
            pieces.append(_Piece(values[begin + 1] - values[begin], place, begin, end))
            begin = end
    return sorted(pieces, key=lambda piece: piece.slope)


class LayerAllocation:
    """An exact search for the number of blocks of layers on each machine of a given set.

    The cost of a request on these machines (app/core/planner/forecast.py) is the larger of two values:

        latency   line + more * pace. line: a sum over the machines, each convex in its count and linear in pieces,
                  because layers that a graphics card has no room for take longer; pace: the longest of
                  their periods, or a share of the sum of their times if that is longer; more: chunks after the first
        work      the most that one machine, or the link to it, has to do for a request, times the users

    A limit on pace and work gives a maximum count for each machine. The smallest line then results from filling the
    cheapest machines first. The limits are found by bisection, which drops a half if even its smallest line with its
    smallest pace is no better than the best result so far.

    more: chunks of the prompt after the first. shared: the fraction of the sum of all times that is a lower bound for
    the pace. paces: every period of every machine, ascending. fits: returns whether these counts fit in some order.
    possible: returns whether any counts might fit. spend: uses up effort and returns whether any is left.
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
        self._misses = 0  # counts that were tried and fit in no order
        self._hopeless = False  # whether no counts at all fit in any order
        by_place = dict(enumerate(members))
        self._cheapest = _pieces(by_place, lambda member: member.line)
        self._quickest = _pieces(by_place, lambda member: member.chunk)
        self._limit = 0.0  # the latency to beat
        self._found: Blocks | None = None
        self.visited = 0  # how many counts were tried

    def best(self, below: float) -> tuple[float, Blocks] | None:
        """Return the smallest cost below `below` and the counts that achieve it, or None if no cost is below it."""
        known, best, best_counts = 0.0, below * BETTER, None  # no result is below `known`, whatever the limit on work
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
        """Return the counts with the smallest latency below `below` and with less work than the limit, or None."""
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
        """Try counts that stay within the pace at index `high`.

        Return whether lower paces, down to index `low`, may be better.
        """
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
        """Return the index of the lowest pace at which the machines can hold all blocks."""
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

    def _filled(self, most: Sequence[int], pieces: Sequence[_Piece]) -> Blocks | None:
        """Return counts that fill the machines in this order, or None if all machines together are too small."""
        least = [member.least for member in self._members]
        left, counts = self._n_blocks - sum(least), list(least)
        if left < 0 or any(n > limit for n, limit in zip(least, most, strict=True)):
            return None
        for piece in pieces:
            more = piece.blocks(least[piece.place], most[piece.place])
            if more > left:
                more = left
            counts[piece.place] += more
            left -= more
        return tuple(counts) if left == 0 else None

    def _try(self, counts: Blocks) -> bool:
        """Record the counts if they are the best so far. Return whether they fit."""
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
        """Try the counts that fit in some order, cheapest first, until their line plus `slack` reaches the limit.

        This best-first search assigns runs to machines in the order of the layers. A state consists of the host's
        count, the set of machines that have a run, and the number of unassigned blocks. The edges at which the runs of
        a state may end are the bits of one integer.
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
                            break  # the cost is convex in n, so it only rises from here on
                    elif reached := (edges & member.starts[n]) << n:
                        run = (*runs, (place, n))
                        heappush(heap, (least, so_far, now, left - n, run, reached))
                    before = least


class _Rest:
    """The smallest possible `line` (see LayerAllocation) of the machines that have no run yet."""

    def __init__(self, members: Sequence[MachineCosts], cheapest: Sequence[_Piece], most: Sequence[int]) -> None:
        self._members, self._cheapest, self._most = members, cheapest, most
        self._known: dict[tuple[int, int], float] = {}

    def line(self, held: int, left: int) -> float:
        """Return the smallest `line` for `left` blocks on the machines outside `held`, or infinity if none fits."""
        key = (held, left)
        if key not in self._known:
            self._known[key] = self._line(held, left)
        return self._known[key]

    def _line(self, held: int, left: int) -> float:
        line = 0.0
        for place, member in enumerate(self._members):
            if not held >> place & 1:
                line += member.line[member.least]
                left -= member.least
        if left < 0:
            return float("inf")
        for piece in self._cheapest:
            if not held >> piece.place & 1:
                more = min(left, piece.blocks(self._members[piece.place].least, self._most[piece.place]))
                line += more * piece.slope
                left -= more
        return line if left == 0 else float("inf")


INFINITE = float("inf")
MAX_EFFORT = 400_000  # the limit on steps in the search for an order, which take about a second

MachineSet = tuple[int, ...]  # indexes of machines, always beginning with 0, the host


@dataclass(frozen=True, slots=True)
class Split:
    """A placement that is split over several machines."""

    stages: tuple[PlannedStage, ...]
    request_s: float


class SplitSearch:
    """The search for the best split of a model in a fully measured household. The model must have a legal cut."""

    def __init__(self, host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> None:
        self._machines = (host, *lenders)
        self._model, self._workload = model, workload
        self._grid = grid = Grid.of(model, workload)
        room = host.lends_bytes - sum(fixed_bytes(role, model, workload, host) for role in (Role.FIRST, Role.LAST))
        self._starts = [host_starts(grid, room)] + [
            lender_starts(grid, lender.lends_bytes - fixed_bytes(Role.MIDDLE, model, workload, lender))
            for lender in lenders
        ]
        self._counts = [tuple(n for n, mask in enumerate(masks) if mask) for masks in self._starts]
        self._fields: dict[int, _Costs] = {}
        self._arranged: dict[tuple[MachineSet, Blocks], Arrangement | None] = {}
        self.visited = 0  # how many counts were tried
        self._effort = MAX_EFFORT

    @property
    def exact(self) -> bool:
        """Return whether every split that could beat the result was searched.

        This is always true if layers are alike or memory is plentiful. If layers differ greatly in size and memory is
        tight, very many counts may not fit in any order. The result is then the best split found within the effort
        limit.
        """
        return self._effort > 0

    def all_sets(self) -> list[MachineSet]:
        """Return every set that consists of the host and some lenders that can each hold at least one layer."""
        usable = [n for n in range(1, len(self._machines)) if self._counts[n]]
        return [(0, *chosen) for n in range(1, len(usable) + 1) for chosen in combinations(usable, n)]

    def set_of(self, used: Container[MachineId]) -> MachineSet:
        """Return the set of these machines."""
        return tuple(n for n, machine in enumerate(self._machines) if machine.id in used)

    def best(self, sets: Iterable[MachineSet], below_s: float = INFINITE) -> Split | None:
        """Return the split with the shortest request over any of these sets of machines.

        Return None if no split takes less than `below_s`.
        """
        bounds = [
            (self._field(len(chosen)).bound(chosen), chosen)
            for chosen in sets
            if all(self._counts[number] for number in chosen)
        ]
        best_counts: tuple[MachineSet, Blocks] | None = None
        for bound, chosen in sorted(bounds, key=lambda bounded: (bounded[0], len(bounded[1]), bounded[1])):
            if bound >= below_s:
                break
            if (better := self._in_set(chosen, below_s)) is not None:
                below_s, best_counts = better[0], (chosen, better[1])
        return self._split(*best_counts, below_s) if best_counts is not None else None

    def _field(self, n_machines: int) -> _Costs:
        if n_machines not in self._fields:
            self._fields[n_machines] = _Costs(
                self._machines, self._starts, self._grid, n_machines, self._model, self._workload
            )
        return self._fields[n_machines]

    def _in_set(self, chosen: MachineSet, below_s: float) -> tuple[float, Blocks] | None:
        field = self._field(len(chosen))
        search = LayerAllocation(
            [field.members[number] for number in chosen],
            self._grid.n_blocks,
            field.rounds.chunks - 1,
            1 / (len(chosen) + 1),
            field.paces,
            partial(self._fits, chosen),
            partial(self._possible, chosen),
            self._spend,
        )
        better = search.best(below_s)
        self.visited += search.visited
        return better

    def _fits(self, chosen: MachineSet, counts: Blocks) -> bool:
        return self._arrangement(chosen, counts) is not None

    def _arrangement(self, chosen: MachineSet, counts: Blocks) -> Arrangement | None:
        key = (chosen, counts)
        if key not in self._arranged:
            starts = [self._starts[n][k] for n, k in zip(chosen[1:], counts[1:], strict=True)]
            self._arranged[key] = arrange(self._starts[0][counts[0]], starts, counts[1:])
        return self._arranged[key]

    def _possible(self, chosen: MachineSet) -> bool:
        """Return whether these machines might hold all layers in any distribution."""
        counts = [self._counts[number] for number in chosen]
        if not self._spend(sum(map(len, counts)) << len(chosen) - 4 if len(chosen) > 4 else 1):
            return False
        firsts = ends = 0
        for n in counts[0]:
            firsts |= self._starts[0][n]
            ends |= self._starts[0][n] << self._grid.n_blocks - n
        options = [[(n, self._starts[number][n]) for n in self._counts[number]] for number in chosen[1:]]
        return bool(reachable_ends(firsts, options) & ends)

    def _spend(self, effort: int) -> bool:
        self._effort -= effort
        return self._effort > 0

    def _split(self, chosen: MachineSet, counts: Blocks, request_s: float) -> Split:
        arranged = self._arrangement(chosen, counts)
        assert arranged is not None
        edges, holders = [0, arranged.first_run], [self._machines[0]]
        for place in arranged.order:
            edges.append(edges[-1] + counts[1 + place])
            holders.append(self._machines[chosen[1 + place]])
        layers = [self._grid.unit * edge for edge in (*edges, self._grid.n_blocks)]
        stages = split_stages([*holders, holders[0]], layers, self._model, self._workload)
        return Split(stages, request_s)


class _Costs:
    """The costs of all machines in placements on a given number of machines, and a lower bound for each set."""

    def __init__(
        self,
        machines: Sequence[Candidate],
        starts: Sequence[list[int]],
        grid: Grid,
        n_machines: int,
        model: Model,
        workload: Workload,
    ) -> None:
        self.rounds = Rounds.of(workload, n_machines)
        self._grid, self._model, self._workload = grid, model, workload
        self.members: dict[int, MachineCosts] = {}
        self._levels: dict[int, tuple[_LinearCost, _LinearCost]] = {}
        for number, machine in enumerate(machines):
            if any(starts[number]):
                self._add(number, machine, starts[number])
        self.paces = sorted({p for member in self.members.values() for p in member.pace[1:]})
        self._cheapest = _pieces(self.members, lambda member: member.line)

    def bound(self, chosen: MachineSet) -> float:
        """Return a lower bound on the time of a request for all placements on these machines."""
        members = self.members
        left = self._grid.n_blocks - sum(members[number].least for number in chosen)
        if left < 0:
            return INFINITE
        line = sum(members[number].line[members[number].least] for number in chosen)
        for piece in self._cheapest:
            if piece.place in chosen:
                member = members[piece.place]
                more = min(left, piece.blocks(member.least, member.most))
                line += more * piece.slope
                left -= more
        if left:
            return INFINITE
        pace = _level([self._levels[number][0] for number in chosen], self._grid.n_blocks)
        work = _level([self._levels[number][1] for number in chosen], self._grid.n_blocks)
        return max(line + (self.rounds.chunks - 1) * pace, work)

    def _add(self, number: int, machine: Candidate, starts: list[int]) -> None:
        rounds, unit = self.rounds, self._grid.unit
        role = Role.MIDDLE if number else Role.LAST
        chunk = cost(machine, rounds.chunk, self._model, self._workload, role)
        group = cost(machine, rounds.group, self._model, self._workload, role)
        assert machine.speed is not None
        head_s = 0.0 if number else machine.speed.head_s
        counts = tuple(n for n, mask in enumerate(starts) if mask)
        layers = [unit * n for n in range(max(3, counts[-1] + 1))]  # the slope needs two points
        paces = [chunk.period_s(n) for n in layers]
        chunks = [chunk.latency_s(n) for n in layers]
        tokens, rows = rounds.tokens, rounds.group.rows
        self.members[number] = MachineCosts(
            counts,
            starts,
            line=[
                head_s + chunk_s + tokens * rounds.crowd * group.latency_s(n)
                for chunk_s, n in zip(chunks, layers, strict=True)
            ],
            chunk=chunks,
            pace=paces,
            work=[
                rounds.users * (head_s + rounds.chunks * pace + tokens * group.period_s(n) / rows)
                for pace, n in zip(paces, layers, strict=True)
            ],
            breaks=_breaks(chunk.fast_layers, unit, len(layers) - 1),
        )
        fixed_s = rounds.chunks * chunk.fixed_s + head_s + tokens * group.fixed_s / rows
        layer_s = rounds.chunks * chunk.layer_s + tokens * group.layer_s / rows
        self._levels[number] = (
            _LinearCost(chunk.fixed_s, unit * chunk.layer_s),
            _LinearCost(rounds.users * fixed_s, rounds.users * unit * layer_s),
        )


def _breaks(fast_layers: int, unit: int, n_blocks: int) -> tuple[int, ...]:
    """Return the numbers of blocks after which a further block costs more.

    The graphics card may compute a part of one block.
    """
    whole = fast_layers // unit
    ends = {whole, whole + 1} if fast_layers % unit else {whole}
    return tuple(sorted(end for end in ends if 1 < end < n_blocks))


@dataclass(frozen=True, slots=True)
class _LinearCost:
    """A cost that is linear in the number of blocks."""

    fixed_s: float
    block_s: float


def _level(levels: Sequence[_LinearCost], n_blocks: int) -> float:
    """Return the smallest possible maximum of these costs if the blocks could be divided arbitrarily."""
    if not all(level.block_s > 0 for level in levels):
        return 0.0
    together = sum(level.fixed_s / level.block_s for level in levels)
    return (n_blocks + together) / sum(1 / level.block_s for level in levels)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An order in which the runs fit. `order` lists the indexes of the lenders from first to last."""

    first_run: int  # the number of blocks in the host's first run
    order: tuple[int, ...]


def arrange(firsts: int, starts: Sequence[int], lengths: Sequence[int]) -> Arrangement | None:
    """Place one run of each lender after the host's first run. Return None if no order fits.

    firsts: bit n is set if the first run may have n blocks. starts: for each lender, bit n is set if its run may begin
    at edge n. lengths: the blocks of each lender's run. The length of the host's last run follows from their sum.
    """
    as_given = tuple(range(len(lengths)))
    if (edges := _walk(firsts, starts, lengths, as_given)) is not None:
        return Arrangement(edges, as_given)
    options = [((length, mask),) for length, mask in zip(lengths, starts, strict=True)]
    reached = _reached(firsts, options)
    if not reached[-1]:
        return None
    order, left, edge = [], len(reached) - 1, _lowest(reached[-1])
    while left:
        for lender in range(len(lengths)):
            before = left & ~(1 << lender)
            begin = edge - lengths[lender]
            if before != left and (reached[before] & starts[lender]) >> begin & 1:
                order.append(lender)
                left, edge = before, begin
                break
    return Arrangement(edge, tuple(reversed(order)))


def reachable_ends(firsts: int, options: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Return a mask of the edges at which the runs of all lenders can end: bit n for edge n, or 0 if nothing fits.

    options: for each lender, its possible lengths, each with a mask of the edges at which such a run may begin.
    """
    return _reached(firsts, options)[-1]


def _reached(firsts: int, options: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    """Return masks of the edges at which the runs of each set of lenders can end.

    Bit n of the index stands for lender n.
    """
    reached = [0] * (1 << len(options))
    reached[0] = firsts
    for held, edges in enumerate(reached):
        if not edges:
            continue
        for lender, runs in enumerate(options):
            if not held >> lender & 1:
                for length, mask in runs:
                    reached[held | 1 << lender] |= (edges & mask) << length
    return reached


def _walk(firsts: int, starts: Sequence[int], lengths: Sequence[int], order: Sequence[int]) -> int | None:
    """Return the length of the shortest first run for which this order fits, or None."""
    reach, total = firsts, 0
    for lender in order:
        reach = (reach & starts[lender]) << lengths[lender]
        total += lengths[lender]
    return _lowest(reach) - total if reach else None


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
