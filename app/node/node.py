"""All services of one machine, wired. Alone replaces the Household; decides nothing itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from app import __version__
from app.catalog.shelf import Shelf
from app.catalog.stage_store import StageStore
from app.core import household as facts
from app.core import pairing
from app.core.errors import BadInput, Reason
from app.core.household import Household, Machine, apply
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.membership import Member
from app.core.plan import Candidate
from app.inference.lend import Lender
from app.lan import identity, messages
from app.lan.channel import FrameChannel
from app.lan.handlers import Offer
from app.lan.network import Network
from app.lan.peer import PeerLink, Work
from app.lan.sockets import listening_socket
from app.machine import devices, keystore, paths, runtime_file, settings
from app.node import doctor, pairings
from app.node.answers import StageAnswers
from app.node.control import Control
from app.node.events import Events
from app.node.hosting import Hosting
from app.node.lending import Lending
from app.node.memory import MemoryRules
from app.node.models import Models
from app.node.options import NodeOptions
from app.node.snapshot import machine_json

log = logging.getLogger(__name__)

Json = dict[str, Any]
STAGES_BYTES = 200 << 30  # stage files that nobody uses are deleted above this
STATUS_SECONDS = 0.25  # changes closer together are told as one


class Node:
    """The engine process of one machine, from start to stop."""

    def __init__(self, options: NodeOptions, home: paths.Home, chosen: settings.Settings) -> None:
        self.home, self.settings = home, chosen
        self.events = Events(self.snapshot)
        self.control = Control(self)
        self._options = options
        self._household = Household()
        self._stop = asyncio.Event()
        self._status_news = asyncio.Event()
        self._memory = MemoryRules(chosen.lend_bytes)
        self._threads = options.threads or devices.usable_cores()
        self._device = devices.processor_name()
        self._answers = StageAnswers()
        self._stages = StageStore(home.stages, STAGES_BYTES)
        self._shelf = Shelf(home.models, paths.guide_file(), self._stages)
        self.models = Models(self._shelf)
        self.network: Network
        self.hosting: Hosting
        self._lending: Lending

    async def run(self, ready: Callable[[Json], None]) -> None:
        """Serve until `stop`. Raises AppError when the node cannot start."""
        keys = await keystore.open_keystore(self.home)
        me = await identity.load_or_create(self.home, keys)
        self._tell(facts.Member(me.id, self.settings.name, ()))
        self._tell(facts.Came(me.id, None))
        port = self.settings.port if self._options.port is None else self._options.port
        sock = listening_socket(self._options.bind, port)
        async with AsyncExitStack() as stack:
            lender = Lender(self._memory.lent_bytes, self.settings.name)
            await stack.enter_async_context(lender)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            self._lending = Lending(
                lender, self._shelf, self._stages, self._memory.lent_bytes, self._threads,
                group, self.changed,
            )  # fmt: skip
            self.network = Network(self.home, me, sock, self, self)
            await stack.enter_async_context(self.network)
            self.hosting = Hosting(
                self._shelf, self._stages, self, self._candidates, self._threads, group,
                self.changed,
            )  # fmt: skip
            await self._serve(ready, group)

    async def _serve(self, ready: Callable[[Json], None], group: asyncio.TaskGroup) -> None:
        own = [
            group.create_task(self.events.run(), name="events"),
            group.create_task(self._share_status(), name="tell the others"),
        ]
        await self.control.start()
        port = self.control.port
        runtime = runtime_file.of_this_process(port, self.control.token, __version__)
        await asyncio.to_thread(runtime_file.write, self.home.runtime_file, runtime)
        try:
            self.changed()
            ready(
                {
                    "id": self.network.id,
                    "name": self.settings.name,
                    "peer_port": self.network.port,
                    "control_port": port,
                }
            )
            await self._stop.wait()
        finally:
            self.home.runtime_file.unlink(missing_ok=True)
            await self.hosting.unload()
            await self.control.stop()
            for task in own:
                task.cancel()

    def stop(self) -> None:
        """End in order: placements, lent layers, links, ports."""
        self._stop.set()

    @property
    def household(self) -> Household:
        return self._household

    def lent_bytes(self) -> int:
        """What others may use here in all."""
        return self._memory.lent_bytes()

    def changed(self) -> None:
        """Something that a face shows, or another machine must know, may be another now."""
        self.events.changed()
        self._status_news.set()

    # what faces ask (control.py); pairing and removal are in pairings.py

    def snapshot(self) -> Json:
        me = self.network.id
        lending, running = self._lending, self.hosting.running
        self.models.in_use = running.entry.model.id if running else None
        return {
            "node": {
                "id": me,
                "name": self.settings.name,
                "version": __version__,
                "peer_address": str(self.network.address),
                "lending": self._memory.json(lending.used_bytes, self._lends_to()),
            },
            "machines": {
                key: machine_json(machine, key == me)
                for key, machine in self._with_layers().machines.items()
            },
            "links": {
                key: {"round_trip_seconds": link.round_trip_seconds, "address": str(link.address)}
                for key, link in self.network.links.items()
            },
            "loaded": self.hosting.loaded_json(),
            "pairing": pairings.window_json(self.network.window),
            "answers": running.answers() if running else {"running": 0, "waiting": 0},
        }

    async def open_pairing(self, role: str) -> Json:
        return await pairings.open_window(self.network, role)

    async def close_pairing(self) -> None:
        if self.network.window is not None:
            await self.network.window.close()

    async def wait_pairing(self, report: Callable[[Json], None]) -> Json:
        return await pairings.wait(self.network, report)

    async def join(self, address: str, code: str) -> Json:
        return await pairings.join(self.network, address, code)

    async def remove(self, ref: str) -> Json:
        machine = pairings.named(ref, self._household.machines)
        if machine.id == self.network.id:
            raise BadInput("remove_itself")
        await self.network.remove(machine.id)
        return {"removed": {"id": machine.id, "name": machine.name}}

    async def doctor(self) -> list[Json]:
        return await doctor.checks(self)

    # Local: what the network asks

    def offer(self) -> Offer:
        lent = self._memory.lent_bytes()
        free = max(0, lent - self._lending.used_bytes)
        total = devices.memory().total_bytes
        return Offer(self.settings.name, self._device[:200], ("llamacpp",), total, free)

    def work(self) -> Work:
        return Work()

    # Handlers: what happens on the network

    async def connected(self, link: PeerLink) -> None:
        self._tell(facts.Came(link.peer, str(link.address)))
        hello = link.hello
        self._tell(
            facts.Told(
                link.peer, link.name, hello.device, hello.total_bytes, hello.lendable_bytes, 0
            )
        )
        await link.send(self._status())

    async def message(self, link: PeerLink, message: messages.Message) -> None:
        match message:
            case messages.Status():
                self._tell(_told(link, message))
            case messages.OpenStage():
                member = self.network.members[link.peer]
                self._lending.open(member, message, link.send)
            case messages.CloseStage(pipeline=pipeline):
                await self._lending.close(link.peer, pipeline_id(pipeline))
            case messages.StageReady() | messages.StageFailed() | messages.StageLost():
                self._answers.heard(link.peer, link.name, message)
            case _:
                log.debug("%s from %s needs nothing done", type(message).__name__, link.name)

    async def disconnected(self, link: PeerLink) -> None:
        self._answers.gone(link.peer, link.name)
        self._tell(facts.Left(link.peer, link.ended))

    def suspected(self, link: PeerLink, doubted: bool) -> None:
        reason = Reason("machine_heard_late", {"name": link.name}) if doubted else None
        if link.peer in self._household.machines:
            self._tell(facts.Doubted(link.peer, reason))

    def members_changed(self, members: Mapping[MachineId, Member]) -> None:
        gone = self._household.machines.keys() - members.keys() - {self.network.id}
        for machine in gone:
            self._tell(facts.Removed(machine))
            self._lending.close_soon(machine)
        for member in members.values():
            roles = tuple(sorted(map(str, member.roles)))
            self._tell(facts.Member(member.id, member.name, roles))

    def pairing_changed(self, state: pairing.State) -> None:
        self.changed()

    async def stage_offer(self, member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        return await self._lending.stage_offer(member, pipeline, body)

    async def pieces(
        self, member: Member, pipeline: PipelineId, chunks: AsyncIterator[bytes]
    ) -> bytes:
        return await self._lending.pieces(member, pipeline, chunks)

    async def data(self, member: Member, pipeline: PipelineId, channel: FrameChannel) -> None:
        await self._lending.data(member, pipeline, channel)

    # Lenders: what a placement asks

    def link(self, machine: MachineId) -> PeerLink:
        return self.network.link(machine)

    def expect(self, machine: MachineId, pipeline: PipelineId) -> None:
        self._answers.expect(machine, pipeline)

    async def ready(self, machine: MachineId, pipeline: PipelineId) -> messages.StageReady:
        return await self._answers.wait(machine, pipeline)

    # inside

    def _tell(self, event: facts.Event) -> None:
        self._household = apply(self._household, event)
        self.changed()

    def _candidates(self, released: Mapping[MachineId, int]) -> tuple[Candidate, list[Candidate]]:
        """This machine and the lenders here; `released`: bytes of ours they are giving back now."""
        me = self.network.id
        here = self._memory.own_bytes() - self._lending.used_bytes
        host = Candidate(me, self.settings.name, max(0, here))
        lenders = [
            Candidate(key, machine.name, machine.could_lend(released.get(key, 0)))
            for key, machine in self._household.machines.items()
            if key != me and machine.online and "lender" in machine.roles
        ]
        return host, sorted(lenders, key=lambda lender: (lender.name, lender.id))

    def _with_layers(self) -> Household:
        me = self._household.machines[self.network.id]
        own = facts.Told(
            me.id, self.settings.name, self._device, devices.memory().total_bytes,
            self.offer().lendable_bytes, self._lending.used_bytes,
        )  # fmt: skip
        household = apply(self._household, own)
        running = self.hosting.running
        held = running.layers() if running else {}
        lent = self._lending.layers()
        if lent:
            held = {**held, me.id: (*held.get(me.id, ()), *lent)}
        return apply(household, facts.Holds(held))

    def _lends_to(self) -> list[str]:
        names = (self._name(machine) for machine in self._lending.borrowers())
        return sorted(names)

    def _name(self, machine: MachineId) -> str:
        return self._household.machines.get(machine, Machine(machine, machine[:8])).name

    def _status(self) -> messages.Status:
        offer = self.offer()
        used = self._lending.used_bytes
        return messages.Status(
            name=offer.name[:64],
            device=offer.device,
            total_bytes=offer.total_bytes,
            lendable_bytes=offer.lendable_bytes,
            used_bytes=used,
            state="lending" if used else "ready" if offer.lendable_bytes else "off",
        )

    async def _share_status(self) -> None:
        """Tell the others what this machine lends, when that is another than they know."""
        told = None
        while True:
            await self._status_news.wait()
            self._status_news.clear()
            now = self._status()
            if now != told:
                told = now
                await self.network.tell(now)
            await asyncio.sleep(STATUS_SECONDS)


def _told(link: PeerLink, status: messages.Status) -> facts.Told:
    return facts.Told(
        link.peer,
        link.name if status.name == link.hello.name else status.name,
        status.device,
        status.total_bytes,
        status.lendable_bytes,
        status.used_bytes,
    )
