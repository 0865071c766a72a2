"""Several pipelines that serve the same model. Requests move to another pipeline if theirs is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.core.errors import BadInput, Reason, StageLost
from app.core.recovery.recovery import Loss, Notice, leaving_notice
from app.core.scheduler.routing import ReplicaState, route
from app.core.scheduler.schedule import QueuedRequest
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.sequence import Finish, Request, SequenceState, Token, stream_items
from app.inference.pipeline.speed_measurement import StageFigures


@dataclass(slots=True)
class Replica:
    """One of a model's pipelines, and the machines that compute it."""

    name: str
    pipeline: Pipeline
    machines: frozenset[str]  # ids of all machines that hold layers of it
    here: bool  # whether the run that samples is on this machine, the only one for grammars and pictures
    draining: bool = False


class ReplicaSet:
    """The replicas of a model. Each request goes to one of them, chosen by core/scheduler/routing.py.

    The sequences of a lost replica continue on another replica.
    """

    def __init__(self) -> None:
        self._held: dict[int, Replica] = {}
        self._over = asyncio.Event()
        self.on_news: Callable[[], None] = lambda: None
        # notice about a machine that keeps computing until others have loaded its layers
        self.leaves: Notice | None = None

    def put(self, place: int, replica: Replica) -> None:
        """Serve with this replica from now on, in place of any lost replica with the same index."""
        replica.pipeline.join(place, partial(self._inherit, place))
        replica.pipeline.on_news = self._notify
        replica.pipeline.on_recovered = partial(self._recovered, replica)
        self._held[place] = replica

    def set_machines(self, place: int, machines: frozenset[str]) -> None:
        """Record which machines now compute this replica, unless it has been removed."""
        if place in self._held:
            self._held[place].machines = machines

    def check_all_lost(self) -> bool:
        """Return whether every replica has ended. If so, also wake all tasks that wait for the end."""
        if self.lost is not None:
            self._over.set()
        return self._over.is_set()

    # For requests

    def generate(self, request: Request) -> AsyncGenerator[Token | Notice | Finish, None]:
        """Generate an answer, like Pipeline.generate, on the replica that is expected to finish first."""
        return stream_items(lambda: self._choose(request).submit(request))

    # For the owner of the replicas

    @property
    def lost(self) -> StageLost | None:
        """Return why the replicas ended, or None if any of them still serves."""
        ends = [replica.pipeline.lost for replica in self._held.values()]
        return ends[0] if ends and all(ends) else None

    @property
    def news(self) -> Notice | None:
        """Return the recovery notice of a replica if all remaining replicas are recovering.

        Otherwise, return None because no request has to wait.
        """
        notices = [replica.pipeline.news for replica in self._held.values() if replica.pipeline.lost is None]
        return notices[0] if notices and all(notices) else None

    @property
    def held(self) -> Sequence[Replica]:
        """Return all replicas, in the order of the plan."""
        return [self._held[place] for place in sorted(self._held)]

    @property
    def n_serving(self) -> int:
        return sum(replica.pipeline.lost is None and not replica.draining for replica in self._held.values())

    @property
    def n_running(self) -> int:
        return sum(replica.pipeline.n_running for replica in self._held.values())

    def line(self) -> tuple[QueuedRequest, ...]:
        """Return the requests that are waiting for a slot on any replica, in order."""
        return tuple(waiting for replica in self.held for waiting in replica.pipeline.line())

    def figures(self) -> tuple[StageFigures, ...]:
        """Return the statistics of all stages of all replicas since they were opened."""
        return tuple(stage for replica in self.held for stage in replica.pipeline.figures())

    async def wait_lost(self) -> StageLost:
        """Wait until all replicas have ended, and return the reason."""
        await self._over.wait()
        assert self.lost is not None
        return self.lost

    def break_off(self, loss: Loss) -> None:
        """End the current round of each replica that uses a machine known to be gone."""
        for replica in self._of(loss.machine):
            replica.pipeline.break_off(loss)

    def announce_leaving(self, name: str, remaining: Sequence[str], seconds: float) -> None:
        """Notify waiting clients that a machine will leave once the remaining machines have loaded its layers."""
        self.leaves = leaving_notice(name, remaining, seconds)
        for replica in self._held.values():
            replica.pipeline.tell(self.leaves)
        self.on_news()

    async def leave(self, loss: Loss) -> None:
        """Retire a replica. It receives no new requests, and its answers move to other replicas between two tokens.

        If it is the only replica, it is placed again instead.
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

    def _recovered(self, replica: Replica) -> None:
        """Use a replica again after its stages were replaced, or after the machine has decided to stay."""
        replica.draining, self.leaves = False, None

    def _of(self, machine: str) -> list[Replica]:
        """Return the replicas that use a machine.

        A sole replica is always included, because its stages may have moved.
        """
        every = not machine or len(self._held) == 1
        return [replica for replica in self._held.values() if every or machine in replica.machines]

    def _choose(self, request: Request) -> Pipeline:
        place = self._route(request, len(request.ids), request.max_tokens)
        if place is None and request.pictures and self.n_serving:
            raise BadInput("picture_replicas")
        if place is None:
            raise self.lost or StageLost("form_waits" if self.n_serving else "pipeline_closed")
        return self._held[place].pipeline

    def _route(self, request: Request, known: int, output: int, but: int | None = None) -> int | None:
        """Return the replica with the shortest expected wait.

        A recovering replica is chosen only if there is no other.
        """
        places = [
            place
            for place, replica in sorted(self._held.items())
            if place != but and replica.pipeline.lost is None and _can(replica, request)
        ]
        states = [self._state_for(self._held[place], request) for place in places]
        choice = route(states, known, output)
        if choice is None and (but is None or not self._held[but].here):
            draining = [self._held[place].draining for place in places]
            # If machines are leaving all replicas, the next request is served while their layers are moved.
            open_states = [
                replace(state, is_open=all(draining) or not leaves)
                for leaves, state in zip(draining, states, strict=True)
            ]
            choice = route(open_states, known, output)
        return None if choice is None else places[choice]

    def _state_for(self, replica: Replica, request: Request) -> ReplicaState:
        state = replica.pipeline.state_for(request)
        return replace(state, is_open=state.is_open and not replica.draining)

    def _inherit(self, place: int, sequence: SequenceState, loss: Loss) -> bool:
        """Continue a sequence of this replica on another one. Return False if no replica can take it."""
        output = sequence.request.max_tokens - sequence.answer_tokens
        to = self._route(sequence.request, sequence.known, output, but=place)
        if to is None:
            return False
        heir = self._held[to]
        if sequence.timing.begun_at:  # otherwise its client has received nothing from this replica yet
            gone = self._held[place]
            machine = gone.name if len(gone.machines) == 1 else loss.name or gone.name
            facts = {"machine": machine, "to": heir.name}
            sequence.put(Notice("rebuilding", loss.name, Reason("recovery_moved", dict(facts))))
        heir.pipeline.adopt(sequence)
        return True


def _can(replica: Replica, request: Request) -> bool:
    return replica.here or not (request.sampling.grammar or request.pictures)
