"""Which states of recurrent layers a placement keeps: what copying and reading cost -> core/states.py -> a sentence.

Reading a prompt again takes what the forecast says; once prompts of the model were read, as much more or less as
they took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from app.core.errors import Reason
from app.core.model import Model
from app.core.planner.placement import Plan
from app.core.scheduler.recurrent_state_policy import StateCosts, keep_rule, room_for_states
from app.machine.hardware.memory_copy_speed import seconds_per_byte
from backends.contract import KEEP_ALL, Keep

MS = 1000


class StateRule:
    """For one host. How fast memory is copied is measured once; `reading`: Lessons.reading."""

    def __init__(self, reading: Callable[[str], float | None]) -> None:
        self._byte_s, self._reading = 0.0, reading

    async def told(self, plan: Plan, model: Model) -> Plan:
        """With a sentence on what is kept, for a model that has states."""
        if not model.state_bytes:
            return plan
        self._byte_s = self._byte_s or await asyncio.to_thread(seconds_per_byte)
        return replace(plan, reasons=(*plan.reasons, _reason(self._costs(plan, model))))

    def keep(self, plan: Plan, model: Model) -> Keep:
        """What all stages of the plan keep."""
        return keep_rule(self._costs(plan, model)) if model.state_bytes else KEEP_ALL

    def _costs(self, plan: Plan, model: Model) -> StateCosts:
        known, row_s = plan.forecast, None
        if known is not None:
            row_s = known.ttft_s / plan.workload.prompt * (self._reading(model.name) or 1.0)
        room = room_for_states(plan, model.state_bytes)
        return StateCosts(sum(model.state_bytes), self._byte_s, row_s, room)


def _reason(costs: StateCosts) -> Reason:
    rule = keep_rule(costs)
    if not rule.marks:
        return Reason("states_no_room", {"state_bytes": costs.state_bytes})
    facts = {"state_bytes": costs.state_bytes, "ms": round(MS * costs.copy_s, 2)}
    if costs.row_s is None:
        return Reason("states_kept", {**facts, "states": rule.marks})
    replay_ms = round(MS * costs.row_s, 2)
    return Reason(
        "states_by_cost",
        {**facts, "rows": rule.least_rows, "row_ms": replay_ms, "states": rule.marks},
    )
