"""The models that are loaded or loading. Each has its own placement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from app.api import requests
from app.api.snapshot import WaitingChat
from app.catalog.shelf import Entry, Shelf
from app.core.errors import Reason
from app.core.household.household import SharedModel
from app.core.ids import MachineId
from app.core.planner.placement import Plan
from app.node.placement.placement import Placement
from backends.contract import Layers

MOST_MODELS = 4  # each has its own workers and queue; memory usually limits the number earlier


def waiting_chats(loaded: LoadedModels) -> list[WaitingChat]:
    """Return the requests waiting for a slot: conversation, position, and estimated seconds (None if unknown)."""
    return [
        WaitingChat(waiter.conversation, waiter.place, None if waiter.seconds is None else round(waiter.seconds))
        for running in loaded
        for waiter in running.waiting_requests()
    ]


class LoadedModels:
    """The loaded models, in the order in which they were loaded. No model is loaded twice."""

    def __init__(self) -> None:
        self._held: list[Placement] = []

    def __iter__(self) -> Iterator[Placement]:
        return iter(tuple(self._held))

    def __len__(self) -> int:
        return len(self._held)

    @property
    def first(self) -> Placement | None:
        """The model for requests that name none: the most recently loaded one. A model that is loading next to others
        counts only once it can answer."""
        there = [placement for placement in self._held if placement.completer is not None or placement.ended.is_set()]
        line = there or self._held
        return line[-1] if line else None

    @property
    def names(self) -> list[str]:
        return [placement.entry.name for placement in self._held]

    @property
    def ids(self) -> list[str]:
        return [placement.entry.model.id for placement in self._held]

    def named(self, name: str | None) -> Placement | None:
        """Return the placement with this full name or ID, or the first one if no name is given."""
        if not name:
            return self.first
        named = (placement for placement in self._held if placement.entry.name == name)
        return next(named, None) or self.by_id(name)

    def by_id(self, model_id: str) -> Placement | None:
        return next((placement for placement in self._held if placement.entry.model.id == model_id), None)

    def except_for(self, *excluded: Placement | None) -> tuple[Placement, ...]:
        """Return all placements except these."""
        return tuple(placement for placement in self._held if placement not in excluded)

    def add(self, running: Placement, first: bool = True) -> None:
        """Add a placement. If `first` is set, it answers requests that name no model; otherwise it does so only once
        the others are gone."""
        self._held.insert(len(self._held) if first else 0, running)

    def drop(self, running: Placement) -> None:
        """Remove a placement. Repeating this is harmless."""
        self._held = [placement for placement in self._held if placement is not running]

    def restore_order(self, before: Sequence[str]) -> None:
        """Restore the previous order of the models. New models come last."""
        places = {model_id: place for place, model_id in enumerate(before)}
        self._held.sort(key=lambda placement: places.get(placement.entry.model.id, len(places)))

    def shared(self) -> list[SharedModel]:
        """Return the models as other members of the household see them, the default one first."""
        first = self.first
        return [
            SharedModel(
                placement.entry.name,
                placement.entry.model.id,
                placement.context,
                placement.is_ready,
                placement.entry.model.is_base,
                placement.sees,
                placement.picture_tokens,
            )
            for placement in ([first] if first else []) + [*self.except_for(first)]
        ]

    @property
    def n_answering(self) -> int:
        """The number of answers that occupy a slot."""
        return sum(placement.n_answering for placement in self._held)

    @property
    def answering(self) -> bool:
        """Return whether an answer is being generated."""
        return self.n_answering > 0

    def machines_in_use(self) -> frozenset[MachineId]:
        """Return the machines that hold layers of models with requests in progress."""
        in_use = (placement for placement in self._held if placement.n_requests)
        return frozenset(stage.machine for placement in in_use for stage in placement.plan.stages)

    def uses(self, me: MachineId, counts: Callable[[str], bool] = lambda _: True) -> tuple[int, int]:
        """Return how many bytes of this machine's memory the models use or will use, and how many of these are not
        allocated yet.

        counts: returns whether to count the models of a family.
        """
        own = [placement.local_bytes(me) for placement in self._held if counts(placement.entry.model.family)]
        return sum(n for n, _ in own), sum(comes for _, comes in own)

    def kept_bytes(self, me: MachineId, released: Mapping[MachineId, int]) -> int:
        """Return how many bytes of this machine's memory the models still use after `released` is freed."""
        return max(0, self.uses(me)[0] - released.get(me, 0))

    def layers(self) -> dict[MachineId, tuple[Layers, ...]]:
        """Return the layers of all models on each machine."""
        held: dict[MachineId, tuple[Layers, ...]] = {}
        for placement in self._held:
            for machine, runs in placement.layers().items():
                held[machine] = (*held.get(machine, ()), *runs)
        return held

    def replaced(self) -> dict[MachineId, Reason]:
        """Return the machines whose layers are being moved elsewhere, with the reasons."""
        return {machine: why for placement in self._held for machine, why in placement.state.replaced.items()}


def entry_to_load(shelf: Shelf, order: requests.LoadModel, there: Sequence[str]) -> Entry:
    """Return the shelf entry of the model to load. Only a full name may replace or reload a model that is already
    loaded. Raises BadInput."""
    entry = shelf.get(order.model, () if there and not order.beside else None)
    return shelf.get(order.model, ()) if entry.name in there else entry


def alive(some: Iterable[Placement]) -> list[Placement]:
    """Return the placements that have not ended. Ended placements stay listed until their model is loaded again."""
    return [placement for placement in some if not placement.ended.is_set()]


def with_neighbors(chosen: Plan, stays: Sequence[Placement]) -> Plan:
    """Add to the plan a reason that names the models that stay loaded."""
    names = ", ".join(placement.entry.name for placement in alive(stays))
    if not names:
        return chosen
    return replace(chosen, reasons=(*chosen.reasons, Reason("plan_beside", {"models": names})))
