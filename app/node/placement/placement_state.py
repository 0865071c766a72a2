"""The state shared by all parts of a placement: its plan, its pipelines and its requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from app.api import plans, requests
from app.catalog.shelf import Entry
from app.core.errors import BadInput, Reason
from app.core.ids import MachineId
from app.core.planner.placement import Plan, Topology
from app.core.planner.topologies import with_replaced_pipeline
from app.inference.pipeline.replica_set import ReplicaSet
from app.inference.worker.drafter import Drafter
from app.node.planning.planning import lent_bytes_by_machine
from app.node.snapshot import describe_plan


class IdleTracker:
    """Tracks whether any model of this host is in use, and how long all of them have been idle."""

    def __init__(self) -> None:
        self.busy = asyncio.Event()  # set while requests run or layers move
        self.since_s = time.monotonic()  # when the last request ended
        self._n_askers = self._n_moves = 0

    @property
    def last_request_s(self) -> float:
        """The time of the last request (monotonic clock). While a model is in use, this is the current time."""
        return time.monotonic() if self.busy.is_set() else self.since_s

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request while the block runs."""
        self._n_askers += 1
        self.busy.set()
        try:
            yield
        finally:
            self._n_askers -= 1
            if not self._n_askers:
                self.since_s = time.monotonic()
            self._rest()

    @contextmanager
    def transfer(self) -> Iterator[None]:
        """Count a transfer of layers while the block runs. Background work pauses until it ends."""
        self._n_moves += 1
        self.busy.set()
        try:
            yield
        finally:
            self._n_moves -= 1
            self._rest()

    def _rest(self) -> None:
        if not (self._n_askers or self._n_moves):
            self.busy.clear()


@dataclass(frozen=True, slots=True)
class Move:
    """A move of layers that the user did not order."""

    why: Reason
    place: int  # index of the pipeline
    before: Plan  # of that pipeline
    at: float  # Unix time
    at_s: float  # monotonic clock
    is_for_speed: bool  # whether the layers could have stayed, so that the move can be undone
    is_undone: bool = False  # whether the user wants the layers back where they were
    problem: Reason | None = None  # why they could not be moved back


class PlacementState:
    """The state of a placement: its model, the request that loaded it, its current plan, and its open pipelines.

    described: the plan in the form of the API.
    changed: called when the snapshot may have changed.
    """

    def __init__(
        self,
        entry: Entry,
        order: requests.LoadModel,
        plan: Plan,
        described: plans.Plan,
        idle: IdleTracker,
        changed: Callable[[], None],
    ) -> None:
        self.entry, self.order, self.plan, self.described = entry, order, plan, described
        self._parts = list(plan.parts)  # the plan of each pipeline, if there are several
        self.idle, self.changed = idle, changed
        self.made_s = self.placed_s = time.monotonic()  # times of the first and of the latest placement of the layers
        self.n_changes = 0  # changes of the household and of the placement
        self.news = asyncio.Event()  # set when the household changes
        self.n_requests = 0  # running and waiting requests
        self.unused = asyncio.Event()  # set while there are no requests
        self.unused.set()
        self.pipelines = ReplicaSet()  # the open pipelines
        self.drafter: Drafter | None = None  # a small model that writes ahead on this machine
        self.draft_reason: Reason | None = None  # which one does, or why none does although the user wants one
        self.is_moving = False  # set during a move to a better placement that no request caused
        self.replaced: dict[MachineId, Reason] = {}  # why the layers of a machine move to others
        self.moved: Move | None = None  # the last move that the user did not order
        self.stays = False  # the user undid a move, so layers no longer move for the sake of speed

    @property
    def is_replicated(self) -> bool:
        """Return whether the placement consists of several pipelines, each of which can handle requests."""
        return self.plan.topology is Topology.REPLICAS

    @property
    def n_parts(self) -> int:
        return len(self._parts)

    def part(self, place: int) -> Plan:
        """Return the current plan of one pipeline."""
        return self._parts[place] if self.n_parts > 1 else self.plan

    def place(self, place: int, part: Plan, described: plans.Plan) -> None:
        """Record that this pipeline has moved to other machines."""
        self.pipelines.set_machines(place, frozenset(stage.machine for stage in part.stages))
        if self.n_parts > 1:
            self._parts[place] = part
            part = with_replaced_pipeline(self.plan, place, part, self.entry.model)
            described = describe_plan(part, self.entry.model, lent_bytes_by_machine(part))
        self.plan, self.described = part, described
        self.placed_s = time.monotonic()
        self.n_changes += 1

    def record_move(self, place: int, why: Reason, at_s: float, *, for_speed: bool) -> None:
        """Record that a pipeline moves, before its new plan is in place. `at_s` is the time on the monotonic clock."""
        self.moved = Move(why, place, self.part(place), time.time(), at_s, for_speed)
        self.changed()

    def undo_move(self) -> None:
        """Move the layers of the last move back as soon as no request needs them. Raises BadInput if there is no move
        that can be undone."""
        if self.moved is None or not self.moved.is_for_speed or self.moved.is_undone:
            raise BadInput("move_none", model=self.entry.name)
        self.stays, self.moved = True, replace(self.moved, is_undone=True, problem=None)
        self.n_changes += 1
        self.changed()

    def refuse_undo(self, problem: Reason) -> None:
        """Record why the layers cannot move back."""
        if self.moved is not None and self.moved.is_undone:
            self.moved = replace(self.moved, is_undone=False, is_for_speed=False, problem=problem)
            self.changed()

    def forget_move(self, place: int) -> None:
        """Forget the last move of this pipeline, if there was one, because it is being undone or was not carried
        out.
        """
        if self.moved is not None and self.moved.place == place:
            self.moved = None
            self.changed()

    def household_changed(self) -> None:
        """Note that the household has changed, so layers that did not fit before may fit now."""
        self.n_changes += 1
        self.news.set()

    @property
    def busy(self) -> asyncio.Event:
        """The event that is set while any model of this host has requests or moves layers."""
        return self.idle.busy

    @property
    def last_request_s(self) -> float:
        """The time of the last request for any model of the host (monotonic clock). During a request or a move, this
        is the current time."""
        return time.monotonic() if self.is_moving else max(self.made_s, self.idle.last_request_s)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Count a request while the block runs."""
        self.n_requests += 1
        self.unused.clear()
        try:
            with self.idle.request():
                yield
        finally:
            self.n_requests -= 1
            if not self.n_requests:
                self.unused.set()

    def replace_slow(self, machine: MachineId | None) -> None:
        """Record that this machine has become much slower, so that its layers move to other machines. None clears
        the record.
        """
        now = {machine: Reason("machine_replaced")} if machine else {}
        if self.replaced != now:
            self.replaced = now
            self.changed()
