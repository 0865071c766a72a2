"""Tests of the memory that placements claim on a machine, and which of two concurrent ones gets it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.api import plans
from app.core.errors import DoesNotFit
from app.core.ids import MachineId
from app.core.planner.placement import Plan, Workload
from app.core.planner.plan import plan
from app.node.placement.failover import Failover, Option
from app.node.placement.placement_state import IdleTracker, PlacementState
from app.node.placement.stages import MemoryClaims, Reservation, bytes_on
from testbed.households import MIB, machine, model

DESCRIBED = plans.Plan(model="made")

DEN, ATTIC = machine("den", 4000, None), machine("attic", 4000, None)
MODEL, WORK = model([100 * MIB] * 8), Workload(256)
SPLIT = plan(DEN, [ATTIC], MODEL, WORK, [1, 6, 1])
WHOLE = plan(DEN, [], MODEL, WORK)


class Placed:
    """A stand-in for the code that opens stages."""

    def __init__(self, room: Reservation, held: Plan) -> None:
        self.reservation, self.stages = room, list(held.stages)
        self.claimed: Plan | None = held
        self.coming_card_bytes = 0

    def held(self) -> list[Any]:
        return self.stages

    def standby(self, _: Plan) -> list[Any]:
        return []

    def stages_to_load(self, result: Plan) -> list[Any]:
        return list(result.stages)

    def was_sent(self, _: Any) -> bool:
        return False

    def lost(self) -> frozenset[MachineId]:
        return frozenset()


async def nothing_goes(_: Plan) -> None:
    """Free nothing, as there is room."""


def state_of(now: Plan) -> PlacementState:
    nothing: Any = None  # not asked for here
    return PlacementState(nothing, nothing, now, DESCRIBED, IdleTracker(), lambda: None)


def holds(placed: Any, now: Plan) -> MemoryClaims:
    made = MemoryClaims(state_of(now))
    made.stage_sets.append(placed)
    made.is_loaded = True
    return made


def test_what_is_held_and_what_is_claimed_count_once() -> None:
    placed = Placed(Reservation(nothing_goes), SPLIT)
    made = holds(placed, SPLIT)
    ends, whole = (bytes_on(DEN.id, result.stages) for result in (SPLIT, WHOLE))
    assert made.local_bytes(DEN.id) == (ends, 0)
    placed.claimed = WHOLE  # it is about to take all
    assert made.local_bytes(DEN.id) == (whole, whole - ends)
    assert made.released(SPLIT.stages, over=False)[DEN.id] == whole
    placed.claimed = None  # nothing came of it
    assert made.local_bytes(DEN.id) == (ends, 0)
    placed.stages, placed.claimed = [], SPLIT  # its worker died: its place is still its own
    assert made.local_bytes(DEN.id) == (ends, ends)
    assert made.released(SPLIT.stages, over=False) == {DEN.id: ends}
    made.is_loaded = False
    assert made.local_bytes(DEN.id) == (ends, ends)
    assert made.released(SPLIT.stages, over=False).keys() == {DEN.id, ATTIC.id}


def test_memory_of_a_card_counts_as_used_from_the_moment_it_is_claimed() -> None:
    """The claim is subtracted from the card's free memory already, while the stage is being loaded."""
    placed = Placed(Reservation(nothing_goes), SPLIT)
    made, ends = holds(placed, SPLIT), bytes_on(DEN.id, SPLIT.stages)
    placed.stages, placed.coming_card_bytes = [], 100 * MIB
    for is_loaded in (False, True):
        made.is_loaded = is_loaded
        assert made.local_bytes(DEN.id) == (ends, ends - 100 * MIB)
    placed.stages, placed.coming_card_bytes = [SPLIT.stages[0]], bytes_on(DEN.id, SPLIT.stages)
    assert made.local_bytes(DEN.id) == (ends, 0)


async def test_of_two_that_choose_at_once_one_gets_what_is_there_for_one() -> None:
    room = Reservation(nothing_goes)
    placed = [Placed(room, SPLIT) for _ in range(2)]
    every = [holds(placed, SPLIT) for placed in placed]
    most = bytes_on(DEN.id, WHOLE.stages) + bytes_on(DEN.id, SPLIT.stages)

    def rebuilding(own: int) -> Failover:
        async def replan(_: frozenset[MachineId], __: Plan | None = None) -> list[Option]:
            total = sum(
                memory_claims.local_bytes(DEN.id)[0] for memory_claims in every if memory_claims is not every[own]
            )
            await asyncio.sleep(0.01)  # as a plan takes its time
            if total + bytes_on(DEN.id, WHOLE.stages) > most:
                raise DoesNotFit("beside_no_room", model="m")
            return [(WHOLE, DESCRIBED)]

        value: Any = placed[own]
        return Failover(value, replan, state_of(SPLIT), 0)

    plans = [rebuilding(n).plan(frozenset()) for n in range(2)]
    first, second = await asyncio.gather(*plans, return_exceptions=True)
    assert not isinstance(first, BaseException)
    assert isinstance(second, DoesNotFit)
    assert [placed.claimed for placed in placed] == [WHOLE, None]
    assert sum(memory_claims.local_bytes(DEN.id)[0] for memory_claims in every) == most
    placed[0].claimed = None  # it could not be opened
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placed[1], "claimed", None)
        await rebuilding(1).plan(frozenset())
