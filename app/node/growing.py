"""A split that is one of several pipelines goes back to a machine that it lost, while nobody asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from app.core.errors import Fact, Reason
from app.core.ids import MachineId
from app.core.plan import Plan
from app.node.rebuilding import Option


class Whole(Protocol):
    """The placement that it is a part of; node/running.py has it. As ahead.Placement."""

    @property
    def split(self) -> list[int] | None: ...
    @property
    def n_changes(self) -> int: ...
    @property
    def asked(self) -> asyncio.Event: ...
    @property
    def asked_s(self) -> float: ...
    @property
    def placed_s(self) -> float: ...


class SplitOfSeveral:
    """One of its pipelines, as node/ahead.py looks after a placement. `go`: over to another one."""

    def __init__(
        self, whole: Whole, part: Callable[[], Plan], go: Callable[[Option], None]
    ) -> None:
        self._whole, self._part, self._go = whole, part, go

    @property
    def plan(self) -> Plan:
        return self._part()

    @property
    def split(self) -> list[int] | None:
        return self._whole.split

    @property
    def n_changes(self) -> int:
        return self._whole.n_changes

    @property
    def asked(self) -> asyncio.Event:
        return self._whole.asked

    @property
    def asked_s(self) -> float:
        return self._whole.asked_s

    @property
    def placed_s(self) -> float:
        return self._whole.placed_s

    def steps_s(self) -> Mapping[MachineId, float]:
        return {}  # requests are sent to whichever pipeline is quicker: a slow machine gets fewer

    def replace_slow(self, machine: MachineId | None) -> None:
        assert machine is None, "none is known to be slow"

    def move(self, option: Option) -> None:
        self._go(option)


def why_moved(before: Plan, after: Plan) -> Reason:
    """What those are told who ask while it goes from one placement to the other."""
    held = {stage.machine for stage in before.stages}
    names = [one.name for one in after.stages if one.machine not in held]
    facts: dict[str, Fact] = {"machine": " and ".join(dict.fromkeys(names))}
    return Reason("recovery_joining", facts) if names else Reason("recovery_better")
