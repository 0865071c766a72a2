"""The memory that runs of layers need, which runs fit where, and whether recurrent states are worth keeping. Pure.

Recurrent layers cannot be cut back by position. The next turn usually continues from the end of what was computed.
Only if the previous answer comes back in a different form is a state from the end of its prompt needed. If it was
kept, it is restored; otherwise all tokens since the last kept state are read again. A state is stored after every
prompt but used after few, so it is kept if USES stores and one restore take no longer than reading the prompt once
more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, gcd

from app.core.ids import MachineId
from app.core.model import ANY_RUN, Model
from app.core.planner.placement import Candidate, Plan, PlannedStage, Workload
from backends.contract import KEPT_STATES, Keep, Layers, Role

STAGE_HEADER_BYTES = 1 << 20  # metadata and tensor names in a stage's file, with some to spare
WORK_FLOOR_BYTES = 64 << 20  # an engine's own buffers and code, measured on small models
WORK_ROW_VALUES = 24  # float32 values per unit of a layer's width that exist at once for each row of a step
TOKEN_BYTES = 256  # per token of the vocabulary, with its text and table entries


def work_bytes(width: int, batch_rows: int) -> int:
    """Return the bytes that an engine needs besides weights and KV cache to compute steps of `batch_rows` rows."""
    return WORK_FLOOR_BYTES + 4 * batch_rows * width * WORK_ROW_VALUES


def reading_bytes(width: int, n_vocab: int, context: int) -> int:
    """Return the working memory needed to embed a text of `context` tokens in one pass.

    llama.cpp keeps a score for each token of the vocabulary in each row, although the scores are not used. The
    number of heads does not matter. Measured with widths of 32 to 1,024 and 300 to 60,000 tokens.
    """
    return WORK_FLOOR_BYTES + n_vocab * TOKEN_BYTES + 4 * context * (n_vocab + width * WORK_ROW_VALUES)


def planned_stage(machine: Candidate, role: Role, layers: Layers, model: Model, workload: Workload) -> PlannedStage:
    """Return a run of layers on a machine, with all the memory that it needs there."""
    cells = workload.context * workload.users
    header = STAGE_HEADER_BYTES
    logits = workload.slots * model.n_vocab if role in (Role.LAST, Role.WHOLE) else 0
    return PlannedStage(
        machine.id,
        machine.name,
        role,
        layers,
        weight_bytes=model.stage_bytes(layers, role) + header,
        kv_bytes=model.kv_bytes(layers, cells, workload.slots, workload.kv),
        work_bytes=work_bytes(model.width, workload.batch_rows) + 4 * logits,
    )


def split_stages(
    holders: Sequence[Candidate], edges: Sequence[int], model: Model, workload: Workload
) -> tuple[PlannedStage, ...]:
    """Return the stages of host, lenders, host. Stage n holds the layers from edges[n] to edges[n + 1]."""
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(holders) - 2), Role.LAST]
    if len(holders) == 1:
        roles = [Role.WHOLE]
    return tuple(
        planned_stage(holder, role, Layers(edges[n], edges[n + 1]), model, workload)
        for n, (holder, role) in enumerate(zip(holders, roles, strict=True))
    )


def layer_bytes_to(model: Model, workload: Workload) -> tuple[int, ...]:
    """Return the bytes of weights and KV cache of the layers before each layer: n_layers + 1 numbers."""
    cells = workload.context * workload.users
    layers = zip(model.weights.layer_bytes, model.layer_kv(cells, workload.slots, workload.kv), strict=True)
    return (0, *accumulate(weights + kv for weights, kv in layers))


@dataclass(frozen=True, slots=True)
class Grid:
    """A model's layers in blocks that are never cut, with the bytes up to each edge between them."""

    unit: int  # layers per block
    n_blocks: int
    bytes_to: tuple[int, ...]  # bytes of weights and KV cache before each of the n_blocks + 1 edges
    legal: int  # bit n: the model may be cut before block n
    runs: tuple[int, ...]  # for each number of blocks, bit n: an engine can hold that many from block n on

    @classmethod
    def of(cls, model: Model, workload: Workload) -> Grid:
        """Return the grid of a model that can be cut somewhere."""
        unit = gcd(model.n_layers, *model.cuts.boundaries)
        to = layer_bytes_to(model, workload)
        legal = sum(1 << edge // unit for edge in model.cuts.boundaries)
        n_blocks = model.n_layers // unit
        runs = tuple(_allowed(model, unit, n, n_blocks) for n in range(n_blocks + 1))
        return cls(unit, n_blocks, to[::unit], legal, runs)

    @property
    def edges(self) -> list[int]:
        return [edge for edge in range(1, self.n_blocks) if self.legal >> edge & 1]

    @property
    def firsts(self) -> list[int]:
        """Return the edges at which the first run may end."""
        return [edge for edge in self.edges if self.runs[edge] & 1]

    @property
    def lasts(self) -> int:
        """Return, as bit n, whether the last run may begin before block n."""
        n = self.n_blocks
        return sum(1 << edge for edge in self.edges if self.runs[n - edge] >> edge & 1)


def _allowed(model: Model, unit: int, n_blocks: int, all_blocks: int) -> int:
    """Return where runs of this many blocks may begin according to the model's rules: bit n for block n."""
    starts = range(all_blocks - n_blocks + 1) if n_blocks else ()
    if model.cuts.rules == ANY_RUN:
        return (1 << len(starts)) - 1
    return sum(
        1 << start for start in starts if model.cuts.rules.allow(Layers(unit * start, unit * (start + n_blocks)))
    )


def beside_layers(role: Role, model: Model, workload: Workload) -> int:
    """Return the bytes that a stage of this role needs regardless of its layers."""
    nobody = Candidate(MachineId(""), "", 0)
    probe = planned_stage(nobody, role, Layers(0, 1), model, workload)
    cells = workload.context * workload.users
    kv = model.layer_kv(cells, workload.slots, workload.kv)
    return probe.total_bytes - model.weights.layer_bytes[0] - kv[0]


def lender_starts(grid: Grid, room_bytes: int) -> list[int]:
    """Return, for each number of blocks, where a run of that length fits: bit n for a start at edge n."""
    by_span = [0] * (grid.n_blocks + 1)
    for start in grid.edges:
        furthest = bisect_right(grid.bytes_to, grid.bytes_to[start] + room_bytes) - 1
        by_span[max(0, furthest - start)] |= 1 << start
    starts, fitting = [0] * (grid.n_blocks + 1), 0
    for n_blocks in range(grid.n_blocks, 0, -1):
        fitting |= by_span[n_blocks]
        starts[n_blocks] = fitting & grid.legal & grid.legal >> n_blocks & grid.runs[n_blocks]
    return starts


def host_starts(grid: Grid, room_bytes: int) -> list[int]:
    """Return, for each total of blocks in the host's two runs, which first runs fit: bit n for n blocks."""
    starts, whole, lasts = [0] * (grid.n_blocks + 1), grid.bytes_to[-1], grid.lasts
    for first in grid.firsts:
        left = room_bytes - grid.bytes_to[first]
        begin = max(bisect_left(grid.bytes_to, whole - left), first + 1)
        for last_begins in range(begin, grid.n_blocks):
            if lasts >> last_begins & 1:
                starts[first + grid.n_blocks - last_begins] |= 1 << first
    return starts


USES = 4  # stored states per state that is used again: an estimate


MOST_ROWS = 1 << 20  # longer than any prompt


@dataclass(frozen=True, slots=True)
class StateCosts:
    """The costs of keeping states in a placement."""

    state_bytes: int  # of one conversation, on all machines
    byte_s: float  # measured time to copy one byte of it
    row_s: float | None  # time to read a token of a prompt again; None if not measured
    room: int  # states per conversation that fit in memory in addition to the current ones

    @property
    def copy_s(self) -> float:
        """Return the seconds to save or restore a state."""
        return self.state_bytes * self.byte_s

    @property
    def least_rows(self) -> int:
        """Return the length of the shortest prompt after which keeping the state is worthwhile."""
        if not self.row_s:
            return 1
        return min(MOST_ROWS, max(1, ceil((USES + 1) * self.copy_s / self.row_s)))


def keep_rule(costs: StateCosts) -> Keep:
    """Return how many states of a conversation to keep, and the minimum length of the prompts after which to keep
    them."""
    return Keep(max(0, min(KEPT_STATES, costs.room)), costs.least_rows)


def states_held(plan: Plan, state_bytes: tuple[int, ...]) -> dict[MachineId, int]:
    """Return the bytes of one conversation's current state on each machine of a plan that holds any."""
    held: dict[MachineId, int] = {}
    for stage in plan.stages:
        n_bytes = _of(state_bytes, stage.layers)
        if n_bytes:
            held[stage.machine] = held.get(stage.machine, 0) + n_bytes
    return held


def room_for_states(plan: Plan, state_bytes: tuple[int, ...]) -> int:
    """Return how many states of each conversation fit on every machine in addition to its other needs."""
    slots, rooms = plan.workload.slots, []
    lends = {machine.id: machine.lends_bytes for machine in plan.machines}
    for machine, state in states_held(plan, state_bytes).items():
        needs = sum(stage.total_bytes for stage in plan.stages if stage.machine == machine)
        free = lends[machine] - needs + KEPT_STATES * slots * state  # the plan has already counted kept states
        rooms.append(free // (slots * state))
    return min(rooms, default=0)


def _of(state_bytes: tuple[int, ...], layers: Layers) -> int:
    return sum(state_bytes[layers.first : layers.last])
