"""The models that are loaded, or on their way: a few at once, each with a placement of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from app.api import requests
from app.catalog.shelf import Entry, Shelf
from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan
from app.node.placement.placement import Placement
from app.node.placement.placement_state import IdleTracker
from app.node.placement.stages import Reservation, bytes_on
from app.node.planning.planner_inputs import PlannerInputs
from backends.contract import Layers

Json = dict[str, Any]
MOST_MODELS = 4  # each has workers, a queue and a recovery; memory ends it before, as a rule


def line_json(loaded: LoadedModels) -> list[Json]:
    """Who waits for a slot: whose chat, which place, and about how many seconds; None: not known yet."""
    return [
        {
            "conversation": one.conversation,
            "place": one.place,
            "seconds": None if one.seconds is None else round(one.seconds),
        }
        for running in loaded
        for one in running.line()
    ]


class HostMemory:
    """Of all placements of one host. vectors: makes room for so many bytes where what does not write has them."""

    def __init__(
        self,
        loaded: LoadedModels,
        outlook: PlannerInputs,
        vectors: Callable[[int], Awaitable[None]],
        quiet: IdleTracker,
    ) -> None:
        self._loaded, self._outlook, self._vectors = loaded, outlook, vectors
        self.choosing, self._quiet = asyncio.Lock(), quiet

    def of(self, running: Placement) -> Reservation:
        """Its own."""
        return Reservation(partial(self.make, running), self.choosing, self._quiet.stirred)

    async def make(self, running: Placement, plan: Plan) -> None:
        """Before a model takes what is planned. Raises DoesNotFit where another one has taken it here meanwhile."""
        others = alive(self._loaded.but(running))
        await self._vectors(bytes_on(plan.host, plan.stages))
        if wanted := _of_spares(plan, spares(others)):
            for one in others:
                await one.holds.give_up_ahead(wanted)
        if others and not running.order.anyway:
            host, taken = self.here()
            if taken > host.lends_bytes:
                raise DoesNotFit("beside_no_room", model=running.entry.name)

    def here(self) -> tuple[Candidate, int]:
        """This machine with all that its own models may use, and what those that write have of it."""
        released = releases(self._loaded)
        host, _ = self._outlook.machines(released, {})
        return host, released.get(host.id, 0)


def _of_spares(plan: Plan, there: Mapping[MachineId, int]) -> frozenset[MachineId]:
    """Machines where a plan counts on what lies ahead for others."""
    lends = {one.id: one.lends_bytes for one in plan.machines}
    return frozenset(
        machine
        for machine, spare in there.items()
        if bytes_on(machine, plan.stages) > max(0, lends.get(machine, 0) - spare)
    )


class LoadedModels:
    """In the order in which they were loaded. No model is twice in it."""

    def __init__(self) -> None:
        self._held: list[Placement] = []

    def __iter__(self) -> Iterator[Placement]:
        return iter(tuple(self._held))

    def __len__(self) -> int:
        return len(self._held)

    @property
    def first(self) -> Placement | None:
        """What a question without a name is for: loaded last. One that comes beside others is so only
        once it is there."""
        there = [one for one in self._held if one.answerer is not None or one.ended.is_set()]
        line = there or self._held
        return line[-1] if line else None

    @property
    def names(self) -> list[str]:
        return [one.entry.name for one in self._held]

    @property
    def ids(self) -> list[str]:
        """Of the models."""
        return [one.entry.model.id for one in self._held]

    def named(self, name: str | None) -> Placement | None:
        """The one whose whole name, or id, this is; without a name the first."""
        if not name:
            return self.first
        named = (one for one in self._held if one.entry.name == name)
        return next(named, None) or self.of(name)

    def of(self, model_id: str) -> Placement | None:
        return next((one for one in self._held if one.entry.model.id == model_id), None)

    def but(self, *others: Placement | None) -> tuple[Placement, ...]:
        """All except these."""
        return tuple(one for one in self._held if one not in others)

    def add(self, running: Placement, first: bool = True) -> None:
        """first: it is what a question without a name is for; else only once the others are gone."""
        self._held.insert(len(self._held) if first else 0, running)

    def drop(self, running: Placement) -> None:
        """Repeating is harmless."""
        self._held = [one for one in self._held if one is not running]

    def in_order(self, before: Sequence[str]) -> None:
        """Models that were there stand where they stood, in front of what is new."""
        places = {model_id: place for place, model_id in enumerate(before)}
        self._held.sort(key=lambda one: places.get(one.entry.model.id, len(places)))

    # what they have together

    def json(self, told: Callable[[Json], Json] = lambda one: one) -> tuple[Json | None, list[Json]]:
        """As they are shown: the first, and those beside it. told: what is said of one, with more."""
        first = self.first

        def shown(one: Placement) -> Json:
            return told(one.json() | {"answering": one.n_answering})

        return shown(first) if first else None, [shown(one) for one in self.but(first)]

    @property
    def n_answering(self) -> int:
        """Answers that have a slot."""
        return sum(one.n_answering for one in self._held)

    @property
    def answering(self) -> bool:
        """Whether an answer is being computed now."""
        return self.n_answering > 0

    def asked_of(self) -> frozenset[MachineId]:
        """Machines that hold layers of what somebody asks now."""
        asked = (one for one in self._held if one.n_askers)
        return frozenset(stage.machine for one in asked for stage in one.plan.stages)

    def uses(self, me: MachineId) -> tuple[int, int]:
        """Bytes that they hold on this machine, and of these what is not loaded yet."""
        own = [one.here(me) for one in self._held]
        return sum(n for n, _ in own), sum(comes for _, comes in own)

    def stays(self, me: MachineId, released: Mapping[MachineId, int]) -> int:
        """Bytes that they hold on this machine and keep, when so much is given back."""
        return max(0, self.uses(me)[0] - released.get(me, 0))

    def layers(self) -> dict[MachineId, tuple[Layers, ...]]:
        """What each machine holds of them."""
        held: dict[MachineId, tuple[Layers, ...]] = {}
        for one in self._held:
            for machine, runs in one.layers().items():
                held[machine] = (*held.get(machine, ()), *runs)
        return held

    def replaced(self) -> dict[MachineId, Reason]:
        """Why others take over what a machine holds."""
        return {machine: why for one in self._held for machine, why in one.state.replaced.items()}


def to_load(shelf: Shelf, order: requests.LoadModel, there: Sequence[str]) -> Entry:
    """The model to load. Half a name replaces nothing, nor does it place anew what is there. Raises BadInput."""
    entry = shelf.get(order.model, () if there and not order.beside else None)
    return shelf.get(order.model, ()) if entry.name in there else entry


def alive(some: Iterable[Placement]) -> list[Placement]:
    """Without those that ended, and wait to be loaded again."""
    return [one for one in some if not one.ended.is_set()]


def releases(goes: Iterable[Placement], stays: Iterable[Placement] = ()) -> dict[MachineId, int]:
    """Bytes that each machine gets back of these, beside what it says is free; a host knows at once what
    it has got back. stays: of which only what lies ahead of a loss can be given up."""
    back = spares(stays)
    for one in goes:
        for machine, n_bytes in one.releases().items():
            if machine != one.plan.host or not one.ended.is_set():
                back[machine] = back.get(machine, 0) + n_bytes
    return back


def spares(some: Iterable[Placement]) -> dict[MachineId, int]:
    """Bytes on each machine that lie ahead of a loss: whoever needs them for a model gets them."""
    found: dict[MachineId, int] = {}
    for stage in (stage for one in alive(some) for stage in one.holds.ahead()):
        found[stage.machine] = found.get(stage.machine, 0) + stage.total_bytes
    return found


def with_others(chosen: Plan, stays: Sequence[Placement]) -> Plan:
    """A plan that leaves these their memory, and says so."""
    names = ", ".join(one.entry.name for one in alive(stays))
    if not names:
        return chosen
    return replace(chosen, reasons=(*chosen.reasons, Reason("plan_beside", {"models": names})))
