"""Whether the states of recurrent layers are kept after a prompt, or the prompt is read again. Pure.

Such layers cannot be cut back by position. A next turn goes on from the end of what was computed; only where the
answer before it comes back written otherwise, a state from the end of its prompt is needed: put back if it was
kept, else all tokens since the last kept state are read again. A state is stored after every prompt and used after
few, so it is kept where USES stores and one putting back take no longer than reading the prompt once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from app.core.ids import MachineId
from app.core.planner.placement import Plan
from backends.contract import KEPT_STATES, Keep, Layers

USES = 4  # turns, for one that needs the state of the prompt before it: what a guess of ours is worth
MOST_ROWS = 1 << 20  # a prompt that is never so long


@dataclass(frozen=True, slots=True)
class StateCosts:
    """What is known of a placement."""

    state_bytes: int  # of one conversation, on all machines
    byte_s: float  # to copy a byte of it, as it was measured
    row_s: float | None  # to read a token of a prompt again; None: nobody measured it
    room: int  # states for each conversation that memory holds beside the living ones

    @property
    def copy_s(self) -> float:
        """To keep a state, or to put it back."""
        return self.state_bytes * self.byte_s

    @property
    def least_rows(self) -> int:
        """The shortest prompt after which keeping it is worth while."""
        if not self.row_s:
            return 1
        return min(MOST_ROWS, max(1, ceil((USES + 1) * self.copy_s / self.row_s)))


def keep_rule(costs: StateCosts) -> Keep:
    """How many states of a conversation are kept, and after prompts of how many tokens."""
    return Keep(max(0, min(KEPT_STATES, costs.room)), costs.least_rows)


def states_held(plan: Plan, state_bytes: tuple[int, ...]) -> dict[MachineId, int]:
    """Bytes of one conversation's living state on each machine of a plan that has any."""
    found: dict[MachineId, int] = {}
    for stage in plan.stages:
        n_bytes = _of(state_bytes, stage.layers)
        if n_bytes:
            found[stage.machine] = found.get(stage.machine, 0) + n_bytes
    return found


def room_for_states(plan: Plan, state_bytes: tuple[int, ...]) -> int:
    """How many states of each conversation fit on every machine, beside what it needs anyway."""
    slots, rooms = plan.workload.slots, []
    lends = {machine.id: machine.lends_bytes for machine in plan.machines}
    for machine, one in states_held(plan, state_bytes).items():
        needs = sum(stage.total_bytes for stage in plan.stages if stage.machine == machine)
        free = lends[machine] - needs + KEPT_STATES * slots * one  # which the plan counted already
        rooms.append(free // (slots * one))
    return min(rooms, default=0)


def _of(state_bytes: tuple[int, ...], layers: Layers) -> int:
    return sum(state_bytes[layers.first : layers.last])
