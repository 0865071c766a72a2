"""States kept or prompts read again, by what each costs: both ways, and never more than memory holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan, PlannedStage, Workload
from app.core.planner.stage_memory import (
    MOST_ROWS,
    SAVES_PER_RESTORE,
    StateCosts,
    keep_rule,
    room_for_states,
    states_held,
)
from backends.contract import MAX_CHECKPOINTS, CheckpointRule, Layers, Role

MIB = 1 << 20
A, B = MachineId("a"), MachineId("b")


def costs(state_mib: float, row_s: float | None, room: int = 9) -> StateCosts:
    """Copied at 1 GiB/s."""
    return StateCosts(int(state_mib * MIB), 1 / (1 << 30), row_s, room)


@pytest.mark.parametrize(
    ("known", "rule"),
    [
        (costs(4, 0.01), CheckpointRule(MAX_CHECKPOINTS, 2)),  # 4 ms a copy: five of them are two tokens
        (costs(0.1, 0.01), CheckpointRule(MAX_CHECKPOINTS, 1)),
        (costs(64, 0.001), CheckpointRule(MAX_CHECKPOINTS, 313)),  # a large state and a quick machine
        (costs(4, None), CheckpointRule(MAX_CHECKPOINTS, 1)),  # nobody knows: as before, all are kept
        (costs(4, 0.01, room=1), CheckpointRule(1, 2)),
        (costs(4, 0.01, room=0), CheckpointRule(0, 2)),
        (costs(4, 0.01, room=-3), CheckpointRule(0, 2)),
    ],
)
def test_what_is_kept(known: StateCosts, rule: CheckpointRule) -> None:
    assert keep_rule(known) == rule


@given(n_bytes=st.integers(1, 1 << 34), byte_s=st.floats(1e-12, 1e-8), row_s=st.floats(1e-6, 10.0))
def test_a_kept_state_pays_and_a_shorter_prompt_would_not(n_bytes: int, byte_s: float, row_s: float) -> None:
    known = StateCosts(n_bytes, byte_s, row_s, MAX_CHECKPOINTS)
    rows, copies_s = known.least_rows, (SAVES_PER_RESTORE + 1) * known.copy_s
    assert rows == MOST_ROWS or rows * row_s >= copies_s * (1 - 1e-9)
    assert rows == 1 or (rows - 1) * row_s < copies_s * (1 + 1e-9)


def stage(machine: MachineId, layers: Layers, n_bytes: int) -> PlannedStage:
    return PlannedStage(machine, machine, Role.MIDDLE, layers, n_bytes, 0, 0)


def test_the_machine_with_the_least_room_decides() -> None:
    states = (MIB, 0, MIB, MIB)
    stages = (stage(A, Layers(0, 1), 10 * MIB), stage(B, Layers(1, 4), 20 * MIB))
    work = Workload(1024)
    assert work.slots == 4
    machines = (Candidate(A, "a", 10 * MIB), Candidate(B, "b", 20 * MIB))
    plan = Plan(stages, work, (), machines=machines)
    assert states_held(plan, states) == {A: MIB, B: 2 * MIB}
    assert room_for_states(plan, states) == MAX_CHECKPOINTS  # they are counted in what it needs
    short = Plan(stages, work, (), machines=(machines[0], Candidate(B, "b", 12 * MIB)))
    assert room_for_states(short, states) == 1
    assert room_for_states(plan, (0, 0, 0, 0)) == 0
