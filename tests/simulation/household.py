"""The members of a story's household, as each machine knows them: real logs, which hear of changes late.

I3 of SAFETY.md 9: a lender loads and computes for no machine that it knows to be no member, or no host. The lending
is the real app/node/lending/lending_service.py without files, and links end as app/network/network.py ends them.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from app.core.errors import Reason, Refused, StageLost, Unreachable
from app.core.household.membership import Log, Member, members, merge, next_turn
from app.core.household.operations import (
    FIRST_ROLES,
    NO_HOUSEHOLD,
    Add,
    Body,
    Operation,
    Remove,
    Role,
    SetRoles,
    household_of,
    signed_bytes,
)
from app.core.ids import MachineId, PipelineId
from app.core.recovery.recovery import Loss
from app.inference.stages.stage_host import RunOrder, StageHost
from app.machine.hardware.cores import Threads
from app.network import messages
from app.network.peer.frame_channel import MemoryChannel
from app.node.lending.lending_service import LendingService, _Run
from app.node.placement.lenders import StageAnswers
from tests.inference.pool import Port
from tests.node.lending_bench import OPEN
from tests.simulation.house import House

SHARE = 0.15  # of the stories: somebody's membership changes
HEARD_S = (0.0, 0.05, 1.5)  # at most, until a machine hears of a change
CLOSED_S = 2.0  # from hearing of a removal until nothing is computed for that machine (SAFETY.md 4)
ADMIN, HOST = "admin", "host"
MEMBER = (Role.HOST, Role.LENDER)


class Household:
    """Its log as the admin has it, and as each other machine does."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"{seed} household")
        self.wrong: list[str] = []
        founding = Add(NO_HOUSEHOLD, _id(ADMIN), _der(ADMIN), ADMIN, FIRST_ROLES)
        first = _signed(founding)
        self._id = household_of(first)
        self._log = merge(Log(self._id), [first], _verified, _fit).log
        self._known: dict[str, Log] = {}
        self._lost_at: dict[str, float] = {}  # when a lender learnt that the host may use it no more
        self._ports: dict[bytes, MemberPort] = {}
        self.away: set[str] = set()  # machines that are off, with all they had
        self.answers = StageAnswers()  # as the host waits for them
        self.pair(HOST)

    def pair(self, name: str) -> None:
        """Add a member. The host hears of it at once, and it knows what the admin knows."""
        if name not in self._known:
            added = self._sign(Add(self._id, _id(name), _der(name), name, MEMBER))
            self._known[name] = self._log
            self._known[HOST] = merge(self._known[HOST], [added], _verified, _fit).log

    def members(self, at: str) -> Mapping[MachineId, Member]:
        """Return the members as that machine knows them, or none if it was removed itself."""
        result = members(self._known[at])
        return result if _id(at) in result else {}

    def host(self, at: str) -> Member | None:
        """The host, if it belongs to the household as that machine knows it."""
        return self.members(at).get(_id(HOST))

    def holds(self, port: MemberPort, pipeline: bytes) -> None:
        """A run is that machine's."""
        self._ports[pipeline] = port

    def check(self, pipeline: bytes, now: float) -> None:
        """I3: whatever a worker loads or computes is for whoever may have that done."""
        port = self._ports.get(pipeline)  # none: the host's own
        late_s = now - self._lost_at.get(port.name, now) if port else 0.0
        if port and late_s > CLOSED_S:
            self.wrong.append(f"{port.name} works {late_s:.2f} s after the host may use it no more")

    def choose(self) -> str:
        """Change the members: remove a lender or the host, or let the host only lend from now on."""
        return self.chance.choice(("remove_lender",) * 3 + ("remove_host", "only_lends"))

    async def change(self, kind: str, house: House, now: Callable[[], float]) -> None:
        """Returns when everybody has heard of it."""
        lenders = [lender.machine for built in house.pools.values() for lender in built.lenders]
        if kind == "only_lends":
            body: Body = SetRoles(self._id, _id(HOST), next_turn(self._log, _id(HOST)), (Role.LENDER,))
        else:
            who_name = self.chance.choice(lenders) if kind == "remove_lender" and lenders else HOST
            body = Remove(self._id, _id(who_name), ())
        self._sign(body)
        async with asyncio.TaskGroup() as group:
            for name in list(self._known):
                late_s = self.chance.choice(HEARD_S) * self.chance.random()
                group.create_task(self._heard(name, house, late_s, now), name=f"tell {name}")

    async def _heard(self, name: str, house: House, late_s: float, now: Callable[[], float]) -> None:
        """Follow a change of members as node/node.py does."""
        await asyncio.sleep(late_s)
        before, self._known[name] = self.members(name), self._log
        gone = before.keys() - self.members(name).keys() - {_id(name)}
        if name == HOST:
            for built in house.pools.values():
                for lender in built.lenders:
                    if _id(lender.machine) in gone:
                        await self._part(lender.machine)
                        why = StageLost("machine_removed", name=lender.machine).reason
                        loss = Loss(lender.machine, lender.machine, why, now(), is_gone=True)
                        house.replicas.break_off(loss)
            return
        host = self.host(name)
        if host is None or Role.HOST not in host.roles:
            self._lost_at.setdefault(name, now())
        for port in {port for port in self._ports.values() if port.name == name}:
            if _id(HOST) in gone:
                port.lending.close_soon(_id(HOST))
                await self._part(name)
            port.lending.drop_former_hosts(self.members(name))

    async def crash(self, lender: StageHost, seconds: float) -> None:
        """A lender's whole node is gone at once, its layers and what it remembered too, and back so much later."""
        name = lender.machine
        self.away.add(name)
        await self._part(name)
        await lender.stop_now(Reason("lend_stopped", {"machine": name}))
        await asyncio.sleep(seconds)
        self.away.discard(name)

    async def _part(self, lender: str) -> None:
        """The links between the host and that lender end, at either side."""
        for port in {port for port in self._ports.values() if port.name == lender}:
            await port.cut()
        self.answers.link_lost(_id(lender), lender)

    def _sign(self, body: Body) -> Operation:
        operation = _signed(body)
        self._log = merge(self._log, [operation], _verified, _fit).log
        return operation


@dataclass
class _Send:
    """The messages of a lender's node over the control link."""

    household: Household
    name: str

    async def __call__(self, message: messages.Message) -> None:
        if self.name in self.household.away:
            return
        assert isinstance(message, messages.StageReady | messages.StageFailed | messages.StageLost)
        self.household.answers.receive(_id(self.name), self.name, message)


class _Bare(LendingService):
    """A lender's side without the files that hosts send."""

    def __init__(self, lender: StageHost, group: asyncio.TaskGroup) -> None:
        none = cast("Any", SimpleNamespace(protect=_nothing, release=_nothing, folder="."))
        super().__init__(lender, none, none, OPEN, Threads(1), group, lambda: None)
        self._offers = cast("Any", _NoFiles())
        self.wanted: dict[bytes, RunOrder] = {}

    async def _loaded(self, run: _Run, order: messages.OpenStage) -> messages.StageReady:
        opened = await self.stage_host.open(self.wanted[bytes.fromhex(order.pipeline)])
        return messages.StageReady(
            pipeline=order.pipeline, epoch=order.epoch, memory_bytes=opened.memory_bytes,
            fetched_bytes=0,
        )  # fmt: skip


class _NoFiles:
    def take(self, *_: object) -> SimpleNamespace:
        return SimpleNamespace(stage_id="", manifest=None, fetched_bytes=0)

    forget = close = lambda *_: None


@dataclass(eq=False)
class MemberPort(Port):
    """The port of one lender, for members alone."""

    household: Household
    group: asyncio.TaskGroup
    lending: _Bare = field(init=False)
    wires: list[MemoryChannel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lending = _Bare(self.lender, self.group)
        self.household.pair(self.name)

    @property
    def name(self) -> str:
        return self.lender.machine

    async def open(self, expected: RunOrder) -> None:
        pipeline = expected.run.pipeline
        self.household.holds(self, pipeline)
        self.lending.wanted[pipeline] = expected
        await self._ordered(_order(expected))

    async def renew(self, pipeline: bytes, epoch: int) -> None:
        expected = self.lending.wanted[pipeline]
        order = _order(expected)
        await self._ordered(messages.OpenStage(**{**_fields(order), "epoch": epoch}))

    def required(self, pipeline: bytes) -> None:
        self.lending.require_expected(self._host(), PipelineId(pipeline))

    async def serve(self, pipeline: bytes, channel: MemoryChannel) -> None:
        self.wires.append(channel)
        await self.lending.data(self._host(), PipelineId(pipeline), channel)

    async def cut(self) -> None:
        """End the connections of strangers, as app/network/peer/listener.py does."""
        wires, self.wires = self.wires, []
        for channel in wires:
            await channel.close()

    def _host(self) -> Member:
        """Raises Unreachable: without a membership no connection comes up, on either side."""
        host = self.household.host(at=self.name)
        known = _id(self.name) in self.household.members(HOST)
        if host is None or not known or self.name in self.household.away:
            raise Unreachable("peer_offline", name=self.name)
        return host

    async def _ordered(self, order: messages.OpenStage) -> None:
        host, name = self._host(), self.name
        if Role.HOST not in host.roles:  # the manifest that goes before it is refused
            raise Refused("role_missing", name=host.name)
        with self.household.answers.expect(_id(name), PipelineId(bytes.fromhex(order.pipeline))) as ready:
            await self.lending.open(host, order, _Send(self.household, name))
            try:
                await ready()
            except StageLost as error:
                if error.reason.code == "stage_slow":  # I4: no disk here takes so long
                    self.household.wrong.append(f"{name} never answered what it was asked to open")
                raise


def _order(expected: RunOrder) -> messages.OpenStage:
    run, config = expected.run, expected.config
    return messages.OpenStage(
        request=0, pipeline=run.pipeline.hex(), epoch=run.epoch, model="fake", manifest="0" * 64,
        first=config.layers.first, last=config.layers.last, n_layers=8, width=run.width, number="f16",
        slots=config.slots, kv_cells=config.kv_cells, context=expected.context, batch_rows=512,
        engine="fake",
    )  # fmt: skip


def _fields(order: messages.OpenStage) -> dict[str, Any]:
    return {name: getattr(order, name) for name in order.__struct_fields__}


def _nothing(*_: object) -> None: ...


def _der(name: str) -> bytes:
    return f"certificate of {name}".encode()


def _id(name: str) -> MachineId:
    return MachineId(hashlib.sha256(_der(name)).hexdigest())


def _signed(body: Body) -> Operation:
    """Return a line signed by the admin. The signature is not a real one, but its content is."""
    payload = signed_bytes(body, _id(ADMIN))
    return Operation(body, _id(ADMIN), hashlib.sha512(_der(ADMIN) + payload).digest())


def _fit(der: bytes) -> bool:
    """Its machines have names in the place of certificates."""
    return True


def _verified(der: bytes, payload: bytes, data: bytes) -> bool:
    return hashlib.sha512(der + payload).digest() == data
