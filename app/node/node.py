"""All services of one machine, wired. Alone replaces the Household; decides nothing itself."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from typing import Any

from app import __version__
from app.catalog.shelf import Shelf
from app.catalog.stage_store import StageStore, disk_limits
from app.core import household as facts
from app.core import pairing
from app.core.errors import Reason, StageLost
from app.core.household import Household, Machine, apply, with_outside
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.link import End
from app.core.machine_names import unless_taken
from app.core.membership import Member
from app.core.plan import Candidate
from app.core.threads import Threads
from app.inference.lend import Lender
from app.lan import identity, messages
from app.lan.channel import FrameChannel
from app.lan.handlers import Offer
from app.lan.network import Network
from app.lan.peer import PeerLink, Work
from app.machine import cores, devices, keystore, paths, runtime_file
from app.machine.settings import Choices, Settings
from app.node import doctor, link_limits, pairings
from app.node.answers import Ready, StageAnswers
from app.node.closings import Closings
from app.node.doors import Doors
from app.node.doubts import Doubts
from app.node.events import Events
from app.node.finding import Finding, choice_of, listening
from app.node.guesting import Guesting
from app.node.hardware import Hardware
from app.node.hosting import Hosting
from app.node.journal import Journal
from app.node.lend_rules import LendRules
from app.node.lending import Lending
from app.node.lessons import Lessons
from app.node.link_book import LinkBook
from app.node.links_between import LinksBetween
from app.node.measuring import Measuring
from app.node.memory import own_uses
from app.node.naming import Naming
from app.node.options import NodeOptions
from app.node.outlook import Outlook, lenders_but
from app.node.own_speed import Here, OwnSpeed
from app.node.rights import Rights
from app.node.shop import Shop
from app.node.sightings import Sightings
from app.node.snapshot import machines_json, sentence, with_names
from app.node.telling import Telling, about, greeted, status_of, told
from app.node.waiting import line_json

log = logging.getLogger(__name__)
Json = dict[str, Any]


class Node:
    """The engine process of one machine, from start to stop."""

    def __init__(
        self, options: NodeOptions, home: paths.Home, chosen: Settings, stopping: Callable[[], None]
    ) -> None:
        self.home, self.choices = home, Choices(home.settings_file, chosen)
        self.events = Events(self.snapshot)
        self.rights = Rights(lambda: self.network.members, lambda: self.network.id)
        self.guesting = Guesting(lambda: self.network, self.rights, lambda: self.hosting)
        self.doors = Doors(self)
        self.options, self._stopping = options, stopping
        self._household, self._stop = Household(), asyncio.Event()
        self.lending = LendRules(
            self.choices, self._uses, self.rights.lends, self._lends_to, self.changed
        )
        self.naming, self._between = Naming(self.choices, self._named), LinksBetween()
        network, asked_of = lambda: self.network, lambda: self.hosting.loaded.asked_of()  # noqa: PLW0108  made later
        self._telling = Telling(self._status, lambda: self.links.measured(), network, asked_of)  # noqa: PLW0108  also
        self._threads = Threads(options.threads) if options.threads else cores.threads()
        self.hardware = Hardware(self._threads, self.changed)
        self._answers, self._closings = StageAnswers(), Closings(self.link)
        most_bytes, reserve_bytes = disk_limits(home.root)
        self._stages = StageStore(home.stages, most_bytes, reserve_bytes=reserve_bytes)
        self._shelf = Shelf(home.models, paths.guide_file(), self._stages)
        used = self._models_in_use
        self.shop = Shop(home, self.choices, self._shelf, self._stages, used, self.events.changed, network)  # fmt: skip
        self.network: Network
        self.links: LinkBook
        self.finding: Finding
        self.hosting: Hosting
        self.measuring: Measuring
        self._lending: Lending
        self._lessons = Lessons(home.household / "forecasts.json")
        self._sightings = Sightings(home.household / "seen.json")
        self.journal = Journal(home.household / "journal.json", self.snapshot, self.changed)
        self.shop.pins.note = self.journal.note
        self.doubts = Doubts(home.household / "doubts.json", self.journal.note, self.changed)

    async def run(self, ready: Callable[[Json], None]) -> None:
        """Serve until `stop`. Raises AppError when the node cannot start."""
        keys = await keystore.open_keystore(self.home)
        me = await identity.load_or_create(self.home, keys)
        self._tell(facts.Member(me.id, self.settings.name, ()))
        self._tell(facts.Came(me.id, None))
        sock = listening(self.options, self.home.settings_file)
        async with AsyncExitStack() as stack:
            lender = Lender(self.lending.lent_bytes, self.settings.name)
            await stack.enter_async_context(lender)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            self._lending = Lending(
                lender, self._shelf, self._stages, self.lending, self._threads, group, self.changed,
            )  # fmt: skip
            stack.callback(self._lending.end)
            outlook = Outlook(
                self._candidates, lambda: self.measuring, lambda: self.links, self._lessons, self.doubts,
                self.lending.check_room,
            )  # fmt: skip
            self.hosting = Hosting(
                self._shelf, self._stages, self, outlook, self._threads, group, self.journal, self.changed,
            )  # fmt: skip
            here = Here(self.hardware, self._lending, self.hosting, self.lending)
            self.measuring = Measuring(OwnSpeed(here, self.home.root), self._shelf, self.link, group)  # fmt: skip
            self.network = Network(self.home, me, sock, self, self, self.doors.for_members())
            choice = choice_of(self.options, self.settings)
            file = self.home.household / "links.json"
            limits = link_limits.LinkLimits(self.network.pace, lambda: self._household)
            limits.bind(self.lending, self.shop.downloads)
            self.links = LinkBook(
                self.network, file, self.changed, choice.interfaces, limit=limits.of, note=self.journal.note
            )  # fmt: skip
            self.finding = Finding(self.network, lambda: self.settings.name, choice, self._tell)
            await self.lending.begin(self._lending)
            await stack.enter_async_context(self.network)
            await self._serve(ready, group)

    async def _serve(self, ready: Callable[[Json], None], group: asyncio.TaskGroup) -> None:
        own = [
            group.create_task(self.events.run(), name="events"),
            group.create_task(self._telling.run(), name="tell the others"),
            group.create_task(self.lending.run(), name="lend by the rules"),
            group.create_task(self.naming.run(), name="take over names"),
            group.create_task(self.hardware.run(), name="look at devices"),
            group.create_task(self.links.run(), name="measure links"),
            group.create_task(self.finding.run(), name="find others"),
            group.create_task(self.shop.run(), name="get models"),
            group.create_task(self.journal.run(lambda: self._lending.passed), name="journal"),
        ]
        await self.doors.start(group)
        control = self.doors.control
        place = self.home.runtime_file
        await asyncio.to_thread(runtime_file.claim, place, control.port, control.token, __version__)
        try:
            self.changed()
            who = {"id": self.network.id, "name": self.settings.name}
            ready(who | {"peer_port": self.network.port, "control_port": control.port})
            await self._stop.wait()
            await self.lending.leave()
        finally:
            self._stopping()
            self.home.runtime_file.unlink(missing_ok=True)
            self.hosting.close()
            await self.doors.stop()
            await self.hosting.unload()
            for task in own:
                task.cancel()

    def stop(self) -> None:
        """End in order: placements, lent layers, links, ports."""
        self._stop.set()

    @property
    def household(self) -> Household:
        return self._household

    @property
    def settings(self) -> Settings:
        """What the owner chose, as it is in force now."""
        return self.choices.now

    def changed(self) -> None:
        """Something that a face shows, or another machine must know, may be another now."""
        self.events.changed()
        self._telling.changed()
        self.journal.changed()
        self.lending.look_soon()

    # what faces ask (control.py); pairing and removal are in pairings.py

    def snapshot(self) -> Json:
        dismissed = Reason("removed_needs_reset") if self.network.dismissed else None
        return {
            "node": {
                "id": self.network.id,
                "name": self.settings.name,
                "version": __version__,
                "peer_address": str(self.network.address),
                "reason": sentence(dismissed),
                "lending": self.lending.json(),
            },
            "machines": machines_json(self._with_layers(), self.network.id),
            **self.finding.json(self._household.strangers),
            "links": self.links.json(),
            "links_between": self._between.json(self.network.links),
            **with_names(self.hosting.loaded_json(), self._household),
            "embeds": with_names(self.hosting.embeddings.json(), self._household),
            "forecasts": self._lessons.json(),
            **pairings.json(self.network.window),
            "answers": {**self.hosting.answers(), "line": line_json(self.hosting.loaded)},
            **self.guesting.json(),
            **self.shop.json(),
            **self.doors.giving.json(),
            "journal": {"last": self.journal.number},
        }

    async def open_pairing(self, role: str) -> Json:
        return await pairings.open_window(self.network, role)

    async def close_pairing(self) -> None:
        if self.network.window is not None:
            await self.network.window.close()

    async def wait_pairing(self, report: Callable[[Json], None]) -> Json:
        return await pairings.wait(self.network, report)

    async def join(self, address: str, code: str) -> Json:
        known = self._household
        near = known.strangers.values()
        joined = await pairings.join(self.network, address, code, near, known.machines)
        own = self.network.members.get(self.network.id)
        return {**joined, "called": await self.naming.joined(own)}

    def machine(self, ref: str) -> Machine:
        """The machine a person means. Raises BadInput."""
        return pairings.named(ref, self._household.machines)

    async def doctor(self, whole: bool = False) -> list[Json]:
        return await doctor.checks(self, whole)

    # Local: what the network asks

    def offer(self) -> Offer:
        free = max(0, self.lending.lent_bytes() - self._lending.used_bytes)
        total = devices.memory().total_bytes
        return Offer(self.settings.name, *self.hardware.told, total, free)

    def work(self) -> Work:
        return Work(*self._lending.work())

    def busy(self) -> bool:
        return self.hosting.busy() or self._lending.busy() or self.doors.giving.is_busy

    def link_end(self, own: str, other: str) -> End:
        return self.links.end(own, other)

    # Handlers: what happens on the network

    async def connected(self, link: PeerLink) -> None:
        await self._closings.linked(link.peer, link)
        self._tell(facts.Came(link.peer, str(link.address)))
        self._tell(greeted(link))
        if ending := self._lending.host_came(link.peer, link.hello.instance):
            await asyncio.wait(ending)  # it started anew, and needs these layers no more
        self.links.connected(link.peer)
        await self._telling.begin(link)

    async def message(self, link: PeerLink, message: messages.Message) -> None:
        match message:
            case messages.Status():
                self._tell(news := told(link, message))
                self.hosting.lender_told(news)
            case messages.LinksMeasured():
                self._between.heard(link.peer, message, self.network.members.keys())
                self.events.changed()
            case messages.OpenStage():
                if member := self.network.members.get(link.peer):
                    await self._lending.open(member, message, link.send)
            case messages.CloseStage(pipeline=pipeline):
                await self._lending.close(link.peer, pipeline_id(pipeline))
            case messages.Answering(now=now):
                self._lending.host_answers(link.peer, now)
            case messages.StageReady() | messages.StageFailed() | messages.StageLost():
                self._answers.heard(link.peer, link.name, message)
            case messages.MeasureSpeed():
                if member := self.network.members.get(link.peer):
                    await self.measuring.asked(member, message, link.send)
            case messages.SpeedMeasured() | messages.SpeedRefused():
                self.measuring.heard(link.peer, message)
            case _:
                log.debug("%s from %s needs nothing done", type(message).__name__, link.name)

    async def disconnected(self, link: PeerLink) -> None:
        self._answers.gone(link.peer, link.name)
        self.measuring.gone(link.peer, link.name)
        self.hosting.lender_left(link.peer)
        self._lending.host_left(link.peer)
        self._tell(facts.Left(link.peer, link.ended, time.time()))

    def suspected(self, link: PeerLink, doubted: bool) -> None:
        reason = Reason("machine_heard_late", {"name": link.name}) if doubted else None
        if link.peer in self._household.machines:
            self._tell(facts.Doubted(link.peer, reason))

    def kept_out(self, machine: MachineId) -> None:
        self.changed()

    def members_changed(self, members: Mapping[MachineId, Member]) -> None:
        self.links.keep_only(members)
        self._lessons.keep_only(members)
        self.doubts.keep_only(members)
        me = self.network.id
        for machine in self._household.machines.keys() - members.keys() - {me}:
            code = "removed_from_household" if self.network.dismissed else "machine_removed"
            self.hosting.without(machine, StageLost(code, name=self._name(machine)))
            self._tell(facts.Removed(machine))
            self._lending.close_soon(machine)
        others = [one.name for one in members.values() if one.id != me]
        for member in members.values():
            own = member.id == me
            name = unless_taken(self.settings.name, member.name, others) if own else member.name
            self._tell(facts.Member(member.id, name, tuple(sorted(map(str, member.roles)))))
        self._lending.follow(members)
        self.naming.members_changed(members.get(me))
        self.finding.members_changed()

    def pairing_changed(self, state: pairing.State) -> None:
        self.finding.pairing_changed(self.hardware.device)
        self.changed()

    async def stage_offer(self, member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        return await self._lending.stage_offer(member, pipeline, body)

    async def pieces(
        self, member: Member, pipeline: PipelineId, chunks: AsyncIterator[bytes]
    ) -> bytes:
        return await self._lending.pieces(member, pipeline, chunks)

    def expects(self, member: Member, pipeline: PipelineId) -> None:
        self._lending.expects(member, pipeline)

    async def data(self, member: Member, pipeline: PipelineId, channel: FrameChannel) -> None:
        await self._lending.data(member, pipeline, channel)

    def link(self, machine: MachineId) -> PeerLink:
        return self.network.link(machine)

    def is_down(self, machine: MachineId) -> bool:
        return self.network.calls.is_down(machine)

    def expect(self, machine: MachineId, pipeline: PipelineId) -> AbstractContextManager[Ready]:
        return self._answers.expect(machine, pipeline)

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        await self._closings.close(machine, pipeline)

    # inside

    def _models_in_use(self) -> list[str]:
        held = self.hosting.embeddings.held
        return [*self.hosting.loaded.ids, *([held.entry.model.id] if held else [])]

    def _tell(self, event: facts.Event) -> None:
        self._household = apply(self._household, self._sightings.told(event))
        self.changed()

    def _candidates(self, released: Mapping[MachineId, int]) -> tuple[Candidate, list[Candidate]]:
        """This machine and the lenders here; `released`: bytes of ours they are giving back now."""
        me, guest = self.network.id, self.rights.is_guest()
        memory, uses, told = self.lending.memory, self._uses(), self.hardware.told
        gives = max(0, memory.own_bytes(*uses) - self.hosting.loaded.stays(me, released))
        host = Candidate(
            me, self.settings.name, gives, engine=told[1][0], device=told[0],
            past_limit_bytes=memory.past_limit_bytes(*uses),
        )  # fmt: skip
        return host, [] if guest else lenders_but(me, self._household, released)

    def _uses(self) -> tuple[int, int, int]:
        """Bytes here: promised to others; not loaded yet, whoever's; of this machine's own models."""
        own, comes = own_uses(self.hosting, self.network.id)
        return self._lending.used_bytes, self._lending.unloaded_bytes + comes, own

    def _with_layers(self) -> Household:
        me = self._household.machines[self.network.id]
        own = facts.Told(
            me.id, self.settings.name, self.hardware.device, devices.memory().total_bytes,
            self.offer().lendable_bytes, self._lending.used_bytes, self.hosting.word(self.lending.state_word()),
            self.lending.reason(), self.lending.hottest_c(), about(self._status()),
        )  # fmt: skip
        household = with_outside(apply(self._household, own), self.network.calls.kept_out)
        held = self.hosting.loaded.layers()
        held[me.id] = (*held.get(me.id, ()), *self._lending.layers())
        replaced = self.doubts.reasons(household.machines, self.hosting.loaded.replaced())
        return apply(household, facts.Holds(held, replaced))

    def _lends_to(self) -> list[str]:
        return sorted(self._name(machine) for machine in self._lending.borrowers())

    def _name(self, machine: MachineId) -> str:
        return self._household.machines.get(machine, Machine(machine, machine[:8])).name

    def _status(self) -> messages.Status:
        return status_of(self.offer(), self._lending.used_bytes, self.lending)

    def _named(self, name: str) -> None:
        """This machine has a new name."""
        me = self._household.machines[self.network.id]
        self._tell(facts.Member(me.id, name, me.roles))
        self._lending.machine = name
