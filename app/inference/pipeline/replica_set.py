"""Several pipelines of one model, used as one: each request goes to one of them and moves on if that one is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.core.errors import Reason, StageLost
from app.core.recovery.recovery import Loss, Notice, leaving_notice
from app.core.scheduler.routing import ReplicaState, route
from app.core.scheduler.schedule import QueuedRequest
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.sequence import Finish, Request, Token, heard
from app.inference.pipeline.sequence import Sequence as Asking
from app.inference.pipeline.speed_measurement import StageFigures


@dataclass(slots=True)
class Replica:
    """One pipeline and the machines that compute it."""

    name: str
    pipeline: Pipeline
    machines: frozenset[str]  # ids of all machines that hold layers of it
    here: bool  # whether this machine, the only one with a vocabulary for grammars, holds the run that samples
    draining: bool = False


class Replicas:
    """The replicas of a model, chosen by core/scheduler/routing.py. Sequences of a lost replica continue on another."""

    def __init__(self) -> None:
        self._held: dict[int, Replica] = {}
        self._over = asyncio.Event()
        self.on_news: Callable[[], None] = lambda: None
        self.leaves: Notice | None = None  # about a machine that keeps computing while others load its layers

    def put(self, place: int, replica: Replica) -> None:
        """Start serving with this replica, which replaces any lost one at the same place."""
        replica.pipeline.join(place, partial(self._inherit, place))
        replica.pipeline.on_news = self._notify
        replica.pipeline.on_mended = partial(self._mended, replica)
        self._held[place] = replica

    def moved(self, place: int, machines: frozenset[str]) -> None:
        """Record which machines compute this replica from now on, if it still exists."""
        if place in self._held:
            self._held[place].machines = machines

    def drop_if_over(self) -> bool:
        """Return whether every replica has ended. If so, release those waiting for the end."""
        if self.lost is not None:
            self._over.set()
        return self._over.is_set()

    # For requests

    def generate(self, request: Request) -> AsyncGenerator[Token | Notice | Finish, None]:
        """Generate like Pipeline.generate, on the replica that is expected to finish first."""
        return heard(lambda: self._choose(request).submit(request))

    # For the owner of the replicas

    @property
    def lost(self) -> StageLost | None:
        """Return why the replicas ended, once all have."""
        ends = [replica.pipeline.lost for replica in self._held.values()]
        return ends[0] if ends and all(ends) else None

    @property
    def news(self) -> Notice | None:
        """Return a repair notice if every remaining replica is being repaired, else None, since no request has to
        wait."""
        notices = [replica.pipeline.news for replica in self._held.values() if replica.pipeline.lost is None]
        return notices[0] if notices and all(notices) else None

    @property
    def held(self) -> Sequence[Replica]:
        """Return all replicas in the order of the plan."""
        return [self._held[place] for place in sorted(self._held)]

    @property
    def n_serving(self) -> int:
        return sum(replica.pipeline.lost is None and not replica.draining for replica in self._held.values())

    @property
    def n_running(self) -> int:
        return sum(replica.pipeline.n_running for replica in self._held.values())

    def line(self) -> tuple[QueuedRequest, ...]:
        """Return the requests waiting for a slot on any replica, in order."""
        return tuple(waiting for replica in self.held for waiting in replica.pipeline.line())

    def figures(self) -> tuple[StageFigures, ...]:
        """Return the figures of all stages of all replicas since they were opened."""
        return tuple(stage for replica in self.held for stage in replica.pipeline.figures())

    async def wait_lost(self) -> StageLost:
        """Wait until all replicas have ended, and return the reason."""
        await self._over.wait()
        assert self.lost is not None
        return self.lost

    def break_off(self, loss: Loss) -> None:
        """Break off the replicas that use a machine known to be gone."""
        for replica in self._of(loss.machine):
            replica.pipeline.break_off(loss)

    def tell_leaving(self, name: str, remaining: Sequence[str], seconds: float) -> None:
        """Tell waiting readers that a machine will leave once these others have loaded its layers."""
        self.leaves = leaving_notice(name, remaining, seconds)
        for replica in self._held.values():
            replica.pipeline.tell(self.leaves)
        self.on_news()

    async def leave(self, loss: Loss) -> None:
        """Retire a replica on purpose: it gets no new requests, and its answers move between two tokens.

        If it is the only replica, it is placed again for its current answers and later requests.
        """
        left = self._of(loss.machine)
        for replica in left:
            replica.draining = len(self._held) > 1 and replica.pipeline.lost is None
        for replica in left:
            await replica.pipeline.leave(loss)
        if self.leaves is not None and self.leaves.machine == loss.name:
            self.leaves = None

    def _notify(self) -> None:
        self.on_news()

    def _mended(self, replica: Replica) -> None:
        """Note that a replica's stages are no longer reclaimed: the machine has left, or stays after all."""
        replica.draining, self.leaves = False, None

    def _of(self, machine: str) -> list[Replica]:
        """Return the replicas that use the machine. A sole replica always counts, because its stages may be moved."""
        every = not machine or len(self._held) == 1
        return [replica for replica in self._held.values() if every or machine in replica.machines]

    def _choose(self, request: Request) -> Pipeline:
        place = self._route(request, len(request.ids), request.max_tokens)
        if place is None:
            raise self.lost or StageLost("form_waits" if self.n_serving else "pipeline_closed")
        return self._held[place].pipeline

    def _route(self, request: Request, known: int, output: int, but: int | None = None) -> int | None:
        """Return the replica with the shortest expected wait. One under repair is chosen only if there is no other."""
        places = [
            place
            for place, replica in sorted(self._held.items())
            if place != but and replica.pipeline.lost is None and _can(replica, request)
        ]
        standings = [self._standing(self._held[place], request) for place in places]
        choice = route(standings, known, output)
        if choice is None and (but is None or not self._held[but].here):
            draining = [self._held[place].draining for place in places]
            mended = [  # if machines are leaving every replica, the next request is served while layers are moved
                replace(standing, is_open=all(draining) or not leaves)
                for leaves, standing in zip(draining, standings, strict=True)
            ]
            choice = route(mended, known, output)
        return None if choice is None else places[choice]

    def _standing(self, replica: Replica, request: Request) -> ReplicaState:
        standing = replica.pipeline.standing(request)
        return replace(standing, is_open=standing.is_open and not replica.draining)

    def _inherit(self, place: int, asking: Asking, loss: Loss) -> bool:
        """Continue a sequence of the replica at this place on another replica, if possible."""
        output = asking.request.max_tokens - asking.answer_tokens
        to = self._route(asking.request, asking.known, output, but=place)
        if to is None:
            return False
        heir = self._held[to]
        if asking.timing.begun_at:  # otherwise its reader has seen nothing of this replica yet
            gone = self._held[place]
            machine = gone.name if len(gone.machines) == 1 else loss.name or gone.name
            facts = {"machine": machine, "to": heir.name}
            asking.put(Notice("rebuilding", loss.name, Reason("recovery_moved", dict(facts))))
        heir.pipeline.adopt(asking)
        return True


def _can(replica: Replica, request: Request) -> bool:
    return replica.here or not request.sampling.grammar
