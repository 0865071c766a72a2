"""The memory that runs of layers need, where runs fit, and whether saving recurrent states is worthwhile.

Recurrent layers cannot be rolled back to an earlier position. The next turn of a chat usually continues from the last
computed position. The state at the end of the last prompt is needed only if the client sends the previous answer back
in a different form. If that state was saved, it is restored. Otherwise, all tokens after the last saved state are read
again. Because a saved state is rarely used, states are saved only if SAVES_PER_RESTORE saves and one restore take no
longer than reading the prompt again.
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
from backends.contract import MAX_CHECKPOINTS, CheckpointRule, Layers, Role, can_separate_slots, scored_rows

STAGE_HEADER_BYTES = 1 << 20  # metadata and tensor names in the file of a stage, with a margin
WORK_FLOOR_BYTES = 64 << 20  # an engine's own buffers and code, measured on small models
WORK_ROW_VALUES = 24  # float32 values per unit of width that each row of a step needs at the same time
# For each row of a step and each cell that it may read: a mask in f16, a second one for sliding windows, and the scores
# of an indexer. On the software device, llama needed 2, gemma3 4, and deepseek-v32 6 to 10.
WORK_CELL_BYTES = 10
NOBODY = Candidate(MachineId(""), "", 0)  # a machine of which nothing is known
TOKEN_BYTES = 256  # per token of the vocabulary, including its text and table entries


def work_bytes(width: int, batch_rows: int, cells: int = 0) -> int:
    """Return the memory that an engine needs for steps of `batch_rows` rows, in addition to weights and KV cache.

    cells: of the KV cache that each row may read (`cells_read`).
    """
    return WORK_FLOOR_BYTES + 4 * batch_rows * width * WORK_ROW_VALUES + batch_rows * cells * WORK_CELL_BYTES


def cells_read(slots: int, kv_cells: int, context: int) -> int:
    """Return how many cells of the KV cache a row may read: those of its slot if each slot has its own."""
    return kv_cells // slots if can_separate_slots(slots, kv_cells, context) else kv_cells


def workload_rows(model: Model, workload: Workload) -> int:
    """Return for how many rows of a step stages have room. The rows of a picture may see each other."""
    projector = model.projector
    rows = projector.picture_rows if projector is not None and projector.is_usable else 0
    return max(workload.batch_rows, rows)


def workload_cells(model: Model, workload: Workload) -> int:
    """Return the cells of the KV cache, which have room for at least one full step."""
    return max(workload.context * workload.users, workload_rows(model, workload))


def embedding_work_bytes(width: int, n_vocab: int, context: int) -> int:
    """Return the working memory needed to embed a text of `context` tokens in one pass.

    llama.cpp allocates a score for each token of the vocabulary in each row, although these scores are never used. The
    number of heads does not matter. Measured with widths from 32 to 1,024 and vocabularies from 300 to 60,000 tokens.
    """
    return WORK_FLOOR_BYTES + n_vocab * TOKEN_BYTES + 4 * context * (n_vocab + width * WORK_ROW_VALUES)


def planned_stage(
    machine: Candidate, role: Role, layers: Layers, model: Model, workload: Workload, *, is_host: bool = True
) -> PlannedStage:
    """Return a stage with these layers on a machine, including all the memory that it needs there.

    is_host: whether a stage with the head is on the host, which alone looks at pictures. A whole replica is elsewhere.
    """
    cells = workload.context * workload.users
    header = STAGE_HEADER_BYTES
    logits = scored_rows(workload.slots) * model.n_vocab if role.has_head else 0
    rows, vision_bytes = workload_rows(model, workload), 0
    if (projector := model.projector) is not None and projector.is_usable:
        # the host samples, unless another machine holds a whole replica, which is sent the rows of pictures
        vision_bytes = projector.memory_bytes if role.has_head and is_host else 0
    return PlannedStage(
        machine.id,
        machine.name,
        role,
        layers,
        weight_bytes=model.stage_bytes(layers, role) + header,
        kv_bytes=model.kv_bytes(layers, cells, workload.slots, workload.kv),
        work_bytes=(
            machine.work_on_cards(role)
            or work_bytes(model.width, rows, cells_read(workload.slots, cells, workload.context))
        )
        + 4 * logits
        + vision_bytes,
        vision_bytes=vision_bytes,
    )


def split_stages(
    holders: Sequence[Candidate], edges: Sequence[int], model: Model, workload: Workload
) -> tuple[PlannedStage, ...]:
    """Return the stages of a split, or one whole stage if there is a single holder.

    Stage n holds the layers from edges[n] up to but not including edges[n + 1].
    """
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(holders) - 2), Role.LAST]
    if len(holders) == 1:
        roles = [Role.WHOLE]
    return tuple(
        planned_stage(holder, role, Layers(edges[n], edges[n + 1]), model, workload)
        for n, (holder, role) in enumerate(zip(holders, roles, strict=True))
    )


def layer_bytes_to(model: Model, workload: Workload) -> tuple[int, ...]:
    """Return the cumulative bytes of weights and KV cache before each layer and after the last."""
    cells = workload.context * workload.users
    layers = zip(model.weights.layer_bytes, model.layer_kv(cells, workload.slots, workload.kv), strict=True)
    return (0, *accumulate(weights + kv for weights, kv in layers))


@dataclass(frozen=True, slots=True)
class Grid:
    """The layers of a model, grouped into blocks that are never cut, and the bytes before each edge between blocks."""

    unit: int  # layers per block
    n_blocks: int
    bytes_to: tuple[int, ...]  # bytes of weights and KV cache before each of the n_blocks + 1 edges
    legal: int  # bit n: the model may be cut before block n
    runs: tuple[int, ...]  # for each number of blocks, bit n: an engine can hold a run of this length from block n on

    @classmethod
    def of(cls, model: Model, workload: Workload) -> Grid:
        """Return the grid of a model that can be cut legally."""
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
        """Return a mask of the blocks at which the last run may begin."""
        n = self.n_blocks
        return sum(1 << edge for edge in self.edges if self.runs[n - edge] >> edge & 1)


def _allowed(model: Model, unit: int, n_blocks: int, all_blocks: int) -> int:
    """Return a mask of the blocks at which a run of this many blocks may begin according to the model's rules."""
    starts = range(all_blocks - n_blocks + 1) if n_blocks else ()
    if model.cuts.rules == ANY_RUN:
        return (1 << len(starts)) - 1
    return sum(
        1 << start for start in starts if model.cuts.rules.allow(Layers(unit * start, unit * (start + n_blocks)))
    )


def fixed_bytes(role: Role, model: Model, workload: Workload, machine: Candidate = NOBODY) -> int:
    """Return the bytes that a stage of this role needs on a machine in addition to its layers."""
    probe = planned_stage(machine, role, Layers(0, 1), model, workload)
    cells = workload.context * workload.users
    kv = model.layer_kv(cells, workload.slots, workload.kv)
    return probe.total_bytes - model.weights.layer_bytes[0] - kv[0]


def lender_starts(grid: Grid, room_bytes: int) -> list[int]:
    """Return masks of the edges at which a run fits, indexed by its number of blocks."""
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
    """Return masks of the first-run lengths that fit, indexed by the total number of blocks in the host's two runs."""
    starts, whole, lasts = [0] * (grid.n_blocks + 1), grid.bytes_to[-1], grid.lasts
    for first in grid.firsts:
        left = room_bytes - grid.bytes_to[first]
        begin = max(bisect_left(grid.bytes_to, whole - left), first + 1)
        for last_begins in range(begin, grid.n_blocks):
            if lasts >> last_begins & 1:
                starts[first + grid.n_blocks - last_begins] |= 1 << first
    return starts


SAVES_PER_RESTORE = 4  # the estimated number of states that are saved for each one that is used again


MOST_ROWS = 1 << 20  # longer than any prompt


@dataclass(frozen=True, slots=True)
class StateCosts:
    """The costs of saving recurrent states in a placement."""

    state_bytes: int  # of one conversation, over all machines
    byte_s: float  # the measured time to copy one byte of a state
    row_s: float | None  # the time to read a prompt token again; None if not measured
    room: int  # further states per conversation for which there is memory

    @property
    def copy_s(self) -> float:
        """Return the seconds to save or restore a state."""
        return self.state_bytes * self.byte_s

    @property
    def least_rows(self) -> int:
        """Return the length of the shortest prompt whose state is worth saving."""
        if not self.row_s:
            return 1
        return min(MOST_ROWS, max(1, ceil((SAVES_PER_RESTORE + 1) * self.copy_s / self.row_s)))


def keep_rule(costs: StateCosts) -> CheckpointRule:
    """Return how many states to save for each conversation, and the minimum length of a prompt whose state is saved."""
    return CheckpointRule(max(0, min(MAX_CHECKPOINTS, costs.room)), costs.least_rows)


def states_held(plan: Plan, state_bytes: tuple[int, ...]) -> dict[MachineId, int]:
    """Return the size of one conversation's current state on each machine that holds recurrent layers of the plan."""
    held: dict[MachineId, int] = {}
    for stage in plan.stages:
        n_bytes = _of(state_bytes, stage.layers)
        if n_bytes:
            held[stage.machine] = held.get(stage.machine, 0) + n_bytes
    return held


def room_for_states(plan: Plan, state_bytes: tuple[int, ...]) -> int:
    """Return how many additional states of each conversation fit on every machine."""
    slots, rooms = plan.workload.slots, []
    lends = {machine.id: machine.lends_bytes for machine in plan.machines}
    for machine, state in states_held(plan, state_bytes).items():
        needs = sum(stage.total_bytes for stage in plan.stages if stage.machine == machine)
        free = lends[machine] - needs + MAX_CHECKPOINTS * slots * state  # the plan already includes the kept states
        rooms.append(free // (slots * state))
    return min(rooms, default=0)


def _of(state_bytes: tuple[int, ...], layers: Layers) -> int:
    return sum(state_bytes[layers.first : layers.last])
