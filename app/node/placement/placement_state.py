"""What is placed of one model now, and who asks it: what all that look after a placement have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from app.core.errors import Reason
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import Plan, Topology
from app.core.planner.topologies import with_part
from app.inference.pipeline.replica_set import Replicas
from app.node.planning.planning import lends
from app.node.snapshot import plan_json

Json = dict[str, Any]


class IdleTracker:
    """Of all placements of one host."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()  # somebody asks, or layers move
        self.since_s = time.monotonic()  # while nobody does
        self._n_askers = self._n_moves = 0

    @property
    def asked_s(self) -> float:
        """When somebody asked last, by the monotonic clock; now, while somebody does."""
        return time.monotonic() if self.asked.is_set() else self.since_s

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Somebody asks inside."""
        self._n_askers += 1
        self.asked.set()
        try:
            yield
        finally:
            self._n_askers -= 1
            if not self._n_askers:
                self.since_s = time.monotonic()
            self._rest()

    @contextmanager
    def stirred(self) -> Iterator[None]:
        """Layers move inside, maybe for nobody: what is done ahead waits for that, and goes on at once."""
        self._n_moves += 1
        self.asked.set()
        try:
            yield
        finally:
            self._n_moves -= 1
            self._rest()

    def _rest(self) -> None:
        if not (self._n_askers or self._n_moves):
            self.asked.clear()


class PlacementState:
    """`plan`: who holds what, and what that was decided from; `described`: how that is shown; `split`: the layers of
    each run, as somebody ordered them; `changed`: is called when a face may show something else."""

    def __init__(
        self,
        model: Model,
        plan: Plan,
        described: Json,
        split: list[int] | None,
        idle: IdleTracker,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.model, self.plan, self.described, self.split = model, plan, described, split
        self._parts = list(plan.parts)  # of several pipelines, each one's
        self.idle, self.changed = idle, changed
        self.made_s = self.placed_s = time.monotonic()  # when its layers came to where they are
        self.n_changes = 0  # of the household, and of what is placed
        self.news = asyncio.Event()  # the household is another
        self.n_askers = 0  # who ask it now
        self.unused = asyncio.Event()  # nobody asks it now
        self.unused.set()
        self.pipelines = Replicas()  # those that are open
        self.is_moving = False  # to a better placement, for nobody
        self.replaced: dict[MachineId, Reason] = {}  # why others take over what a machine holds

    @property
    def is_several(self) -> bool:
        """Whether there is more than one pipeline, and each request goes to one of them."""
        return self.plan.topology is Topology.REPLICAS

    @property
    def n_parts(self) -> int:
        return len(self._parts)

    def part(self, place: int) -> Plan:
        """The plan of one of its pipelines."""
        return self._parts[place] if self.n_parts > 1 else self.plan

    def place(self, place: int, part: Plan, described: Json) -> None:
        """That pipeline is on other machines from now on."""
        self.pipelines.moved(place, frozenset(stage.machine for stage in part.stages))
        if self.n_parts > 1:
            self._parts[place] = part
            part = with_part(self.plan, place, part, self.model)
            described = plan_json(part, self.model, lends(part))
        self.plan, self.described = part, described
        self.placed_s = time.monotonic()
        self.n_changes += 1

    def household_changed(self) -> None:
        """A machine came, or has other memory: what was too short may fit now."""
        self.n_changes += 1
        self.news.set()

    @property
    def asked(self) -> asyncio.Event:
        """Somebody asks it or a model beside it, or is about to."""
        return self.idle.asked

    @property
    def asked_s(self) -> float:
        """When it, or a model beside it, was asked last, by the monotonic clock; now, while somebody does."""
        return time.monotonic() if self.is_moving else max(self.made_s, self.idle.asked_s)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Somebody asks it inside."""
        self.n_askers += 1
        self.unused.clear()
        try:
            with self.idle.broken():
                yield
        finally:
            self.n_askers -= 1
            if not self.n_askers:
                self.unused.set()

    def replace_slow(self, machine: MachineId | None) -> None:
        """This machine became far slower, and others take over what it holds; None: no more."""
        now = {machine: Reason("machine_replaced")} if machine else {}
        if self.replaced != now:
            self.replaced = now
            self.changed()
