"""The wiring of all services of one machine. This module makes no decisions itself."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial

import msgspec

from app import __version__
from app.api import snapshot as api
from app.api.chat_api import OtherServer
from app.catalog.shelf import Shelf
from app.catalog.stages.stage_store import StageStore, disk_limits
from app.core.errors import Reason, StageLost
from app.core.household import household as facts
from app.core.household import pairing
from app.core.household.household import Household, apply, computes_otherwise, with_unlinkable
from app.core.household.link import LinkEnd
from app.core.household.membership import Member
from app.core.ids import MachineId, PipelineId, pipeline_id, unless_taken
from app.core.planner.placement import Candidate
from app.core.reasons import sentence
from app.inference.pipeline.kept_prompts import PromptIndex
from app.inference.stages.stage_host import StageHost
from app.machine import paths
from app.machine.engine_packs.store import PackStore
from app.machine.hardware import cores, devices
from app.machine.hardware.cards import families_without_card
from app.machine.hardware.cores import Threads
from app.machine.installation import guide_file, shipped_models
from app.machine.prompt_vault import PromptVault
from app.machine.settings import NodeOptions, Settings, SettingsStore
from app.network import identity, messages
from app.network.network import MachineDescription, Network
from app.network.peer.frame_channel import FrameChannel
from app.network.peer.peer_link import PeerLink, WorkerProgress
from app.node.control import pairing_actions
from app.node.control.naming import Naming
from app.node.downloads.model_sources import ModelSources
from app.node.engines.added_engine import AddedEngine
from app.node.engines.engine_installation import EngineInstallation
from app.node.engines.engine_packs import EnginePackService
from app.node.engines.pack_copies import PackCopies
from app.node.engines.pack_server import PackServer
from app.node.events import ChangeNotifier, Events
from app.node.graphics_cards import GraphicsCards
from app.node.journal import Journal
from app.node.known_household import KnownHousehold, LastSeen
from app.node.lending.lending_policy import LendingPolicy
from app.node.lending.lending_service import LendingService
from app.node.lending.main_memory import MainMemory
from app.node.links.discovery_service import DiscoveryService, choice_of, describe_stranger
from app.node.links.link_registry import LinkLimits, LinkRegistry
from app.node.models.household_models import HostNotice, HouseholdModels
from app.node.models.loaded_models import LoadedModels
from app.node.models.model_manager import ModelManager
from app.node.placement.lenders import NetworkLenders
from app.node.placement.stages import PlacementServices
from app.node.planning.forecast_history import ForecastHistory
from app.node.planning.guess_history import GuessHistory
from app.node.planning.local_speed import Hardware, LocalSpeed, LocalWork
from app.node.planning.planner_inputs import PlannerInputs, connected_lenders
from app.node.planning.quiet_measurements import QuietMeasurements
from app.node.planning.speed_measurer import SpeedMeasurer
from app.node.snapshot import describe_machines, with_current_names
from app.node.status_broadcaster import (
    Refused,
    StatusBroadcaster,
    description_from_hello,
    description_from_status,
    self_description,
    status_of,
)
from app.node.verification.quarantine import Quarantine

log = logging.getLogger(__name__)


class Node:
    """All services of one machine, created in dependency order, and the handlers of network events."""

    def __init__(
        self,
        options: NodeOptions,
        home: paths.Home,
        choices: SettingsStore,
        me: identity.Identity,
        sock: socket.socket,
        group: asyncio.TaskGroup,
    ) -> None:
        """Take ownership of `sock`. `group` runs the tasks of the services and must be entered before any of them
        start."""
        self.home, self.options, self.choices = home, options, choices
        self.changed = ChangeNotifier()
        self.other_servers: Callable[[], list[OtherServer]] = list  # those that are on, once the API is there
        self.events = Events(lambda: msgspec.to_builtins(self.snapshot()))
        self.changed.subscribe(self.events.changed)
        self.journal = Journal(home.household / "journal.json", self.snapshot, self.changed)
        self.changed.subscribe(self.journal.changed)
        self.network = Network(home, me, sock, self, self)
        self._lenders = NetworkLenders(self.network)
        self.household = KnownHousehold(self.network, LastSeen(home.household / "seen.json"), self.changed)
        self.household.rights.answers_household = lambda: self.settings.answer_household
        self.household.rights.asks_household = lambda: self.settings.ask_household
        self.naming = Naming(choices, self._named)
        threads = Threads(options.threads) if options.threads else cores.worker_threads()
        pack_store = PackStore(home.engines)
        packs = EnginePackService(pack_store, self.changed)
        self.pack_server = PackServer(packs, choices, self.network.pace, lambda: self.network.members)
        self.pack_copies = PackCopies(
            self.network, pack_store, packs, home.engines, self.events.changed, self.journal.note
        )
        self.graphics = GraphicsCards(
            home, packs, lambda: self.settings.graphics, self._card_changed, note=self.journal.note
        )
        self.changed.subscribe(self.graphics.changed)
        self.added_engine = AddedEngine(
            lambda: self.settings.engine,
            self.changed,
            self.journal.note,
            self.graphics.code_cache,
            home.root / "engine-speeds.json",
        )
        self.engine_installation = EngineInstallation(
            home.added_engines, self.added_engine, choices, self.events.changed
        )
        self.hardware = Hardware(threads, self.changed, self.graphics)
        self.hardware.added_engine = self.added_engine
        self.lending_policy = LendingPolicy(
            choices,
            self._uses,
            self.household,
            self.network.pace,
            self.changed,
            None,
            self._computing_memory,
            self.graphics,
        )
        self.changed.subscribe(self.lending_policy.apply_soon)
        most_bytes, reserve_bytes = disk_limits(home.root)
        stages = StageStore(home.stages, most_bytes, reserve_bytes=reserve_bytes)
        shelf = Shelf(home.models, guide_file(), stages, shipped_models())
        self.model_sources = ModelSources(
            home, choices, shelf, stages, self._models_in_use, self.events.changed, self.network, self.journal.note
        )
        stage_host = StageHost(self.lending_policy.lent_bytes, choices.now.name)
        policy = self.lending_policy
        policy.memory.elsewhere = lambda: self._main_memory().elsewhere(beside=False)
        policy.main_memory.elsewhere = lambda: self._main_memory().elsewhere(beside=True)
        stage_host.lent_bytes_beside = lambda: self._main_memory().lent_bytes_beside()
        self.prompt_vault = PromptVault(home, lambda: self.settings.keep_prompts, lambda: self.settings.prompt_bytes)
        self.prompts = PromptIndex(self.prompt_vault)
        self.lending_service = LendingService(
            stage_host, shelf, stages, self.lending_policy, threads, group, self.changed, self.graphics
        )
        self.lending_service.added_engine = self.added_engine
        self.lending_service.vault = self.prompt_vault
        choice = choice_of(options, choices.now)
        self.links = LinkRegistry(
            self.network,
            home.household / "links.json",
            self.changed,
            choice.interfaces,
            limit=LinkLimits(self.network.pace, self.household).of,
            note=self.journal.note,
        )
        self.discovery = DiscoveryService(self.network, choices, choice, self.household.apply)
        loaded = LoadedModels()
        here = LocalWork(self.hardware, self.lending_service, loaded, self.lending_policy)
        own_speed = LocalSpeed(here, home.root)
        self.speed_measurer = SpeedMeasurer(own_speed, shelf, self.network.link, group)
        planner_inputs = PlannerInputs(
            self._candidates,
            self.speed_measurer,
            self.links,
            ForecastHistory(home.household / "forecasts.json"),
            Quarantine(home.household / "doubts.json", self.journal.note, self.changed),
            self.lending_policy.spare_memory,
            self.graphics,
            guesses=GuessHistory(home.household / "guesses.json"),
            work=self.graphics.work,
        )
        sources = partial(
            PlacementServices,
            shelf,
            stages,
            self._lenders,
            planner_inputs,
            graphics=self.graphics,
            prompts=self.prompts,
            added_engine=self.added_engine,
        )
        self.model_manager = ModelManager(
            loaded, shelf, sources, planner_inputs, threads, group, self.journal, self.changed
        )
        self.model_manager.exact = lambda: self.settings.exact
        self._quiet_measurements = QuietMeasurements(
            own_speed, self.speed_measurer, self.model_manager.refresh_forecasts
        )
        self.household_models = HouseholdModels(
            self.network,
            self.household,
            self.model_manager,
            HostNotice(choices),
            self.model_sources.models.has_file,
            group,
            self.changed,
        )
        self._broadcaster = StatusBroadcaster(
            self._status, self.links.measured, self.network, self.model_manager.loaded.machines_in_use
        )
        self.changed.subscribe(self._broadcaster.changed)
        self.household.apply(facts.Member(me.id, choices.now.name, ()))
        self.household.apply(facts.Connected(me.id, None))

    async def run(self) -> None:
        """Run the services until canceled."""
        async with asyncio.TaskGroup() as group:
            for work, name in (
                (self.events.run(), "events"),
                (self.prompt_vault.keep_rules(), "kept prompts"),
                (self._broadcaster.run(), "broadcast the status"),
                (self.lending_policy.run(), "apply the lending rules"),
                (self.naming.run(), "adopt names"),
                (self.graphics.run(), "choose the graphics card"),
                (self.added_engine.run(), "test the preferred engine"),
                (self.hardware.run(), "probe the engines"),
                (self.links.run(), "measure links"),
                (self._quiet_measurements.run(), "repeat disturbed measurements"),
                (self.discovery.run(), "discovery"),
                (self.model_sources.run(), "model sources"),
                (self.pack_copies.run(), "copies of engine packs"),
                (self.engine_installation.run(), "installation of an engine"),
                (self.journal.run(lambda: self.lending_service.passed), "journal"),
            ):
                group.create_task(work, name=name)

    @property
    def settings(self) -> Settings:
        """The owner's current settings."""
        return self.choices.now

    def snapshot(self) -> api.Snapshot:
        """Return the full state of this node, as displayed in the window and on the command line."""
        dismissed = Reason("removed_needs_reset") if self.network.dismissed else None
        household = self.household.now
        window = self.network.window
        loaded, beside = self.model_manager.describe_loaded()
        return api.Snapshot(
            node=api.Node(
                self.network.id,
                self.settings.name,
                __version__,
                str(self.network.address),
                sentence(dismissed),
                dismissed,
                self.lending_policy.snapshot(),
            ),
            machines=describe_machines(self._with_layers(), self.network.id),
            strangers={key: describe_stranger(seen) for key, seen in household.strangers.items()},
            discovery=self.discovery.snapshot(),
            links=self.links.snapshot(),
            links_between=self._broadcaster.gossip.snapshot(self.network.links),
            loaded=with_current_names(loaded, household),
            beside=with_current_names(beside, household),
            load_failed=self.model_manager.failed_load(),
            embeds=with_current_names(self.model_manager.embeddings.describe(), household),
            forecasts=self.model_manager.planner_inputs.forecasts.snapshot(),
            pairing=pairing_actions.open_pairing(window),
            pairing_closed=pairing_actions.why_closed(window),
            paired=pairing_actions.paired_machine(window),
            answers=self._answers(),
            hosts=self.household_models.answering_hosts(),
            shared=self.household_models.shared(),
            servers=self.other_servers(),
            downloads=self.model_sources.downloads.snapshot(),
            models_folder=self.model_sources.folder.snapshot(),
            shelf=api.ShelfVersion(self.model_sources.shelf.changes),
            hub=api.HubContact(self.model_sources.last_contact),
            giving=self.model_sources.server.snapshot(),
            exact=self.settings.exact,
            journal=api.JournalEnd(self.journal.number),
        )

    def _answers(self) -> api.AnswerCounts:
        """Return the numbers of answers. Chats of this machine that wait at another host count as waiting."""
        here, elsewhere = self.model_manager.answers(), self.household_models.waiting()
        return api.AnswerCounts(here.running, here.waiting + len(elsewhere), [*here.line, *elsewhere])

    # the `Local` interface: queries of the network

    def description(self) -> MachineDescription:
        free = max(0, self.lending_policy.lent_bytes() - self._uses()[0])
        total = self._computing_memory().total_bytes
        return MachineDescription(self.settings.name, *self.hardware.announced, total, free)

    def work(self) -> WorkerProgress:
        return WorkerProgress(*self.lending_service.work())

    def busy(self) -> bool:
        return self.model_manager.busy() or self.lending_service.busy() or self._is_giving()

    def _is_giving(self) -> bool:
        return self.model_sources.server.is_busy or self.pack_server.is_busy

    def link_end(self, own: str, other: str) -> LinkEnd:
        return self.links.interface_between(own, other)

    # the `Handlers` interface: events of the network

    async def connected(self, link: PeerLink) -> None:
        await self._lenders.closings.linked(link.peer, link)
        self.household.apply(facts.Connected(link.peer, str(link.address)))
        self.household.apply(description_from_hello(link))
        if ending := self.lending_service.host_connected(link.peer, link.hello.instance):
            await asyncio.wait(ending)  # the host restarted and no longer needs these layers
        self.links.connected(link.peer)
        await self._broadcaster.begin(link)

    async def message(self, link: PeerLink, message: messages.Message) -> None:
        match message:
            case messages.Status():
                before = self.household.now.machines.get(link.peer)
                self.household.apply(news := description_from_status(link, message))
                if before is not None and computes_otherwise(before, news):
                    self.speed_measurer.card_changed(link.peer)
                self.model_manager.lender_changed(news)
            case messages.LinksMeasured():
                self._broadcaster.gossip.receive(link.peer, message, self.network.members.keys())
                self.events.changed()
            case messages.OpenStage():
                if member := self.network.members.get(link.peer):
                    await self.lending_service.open(member, message, link.send)
            case messages.CloseStage(pipeline=pipeline):
                await self.lending_service.close(link.peer, pipeline_id(pipeline))
            case messages.KeepSlot() | messages.RestoreSlot():
                if member := self.network.members.get(link.peer):
                    self.lending_service.keep_slot(member, message, link.send)
            case messages.SlotDone():
                self._lenders.slots.receive(link.peer, message)
            case messages.Answering(now=now):
                self.lending_service.note_answering(link.peer, now)
            case messages.StageReady() | messages.StageFailed() | messages.StageLost():
                self._lenders.answers.receive(link.peer, link.name, message)
            case messages.MeasureSpeed():
                if member := self.network.members.get(link.peer):
                    await self.speed_measurer.answer_request(member, message, link.send)
            case messages.SpeedMeasured() | messages.SpeedRefused():
                self.speed_measurer.receive(link.peer, message)
            case _:
                log.debug("%s from %s needs nothing done", type(message).__name__, link.name)

    async def disconnected(self, link: PeerLink) -> None:
        self._lenders.answers.link_lost(link.peer, link.name)
        self._lenders.slots.link_lost(link.peer)
        self.speed_measurer.link_lost(link.peer, link.name)
        self.model_manager.lender_left(link.peer)
        self.lending_service.host_disconnected(link.peer)
        self.household.apply(facts.Disconnected(link.peer, link.ended, time.time()))

    def suspected(self, link: PeerLink, doubted: bool) -> None:
        reason = Reason("machine_heard_late", {"name": link.name}) if doubted else None
        if link.peer in self.household.now.machines:
            self.household.apply(facts.SilenceNoted(link.peer, reason))

    def refusal_changed(self, machine: MachineId) -> None:
        self.changed()

    def members_changed(self, members: Mapping[MachineId, Member]) -> None:
        self.links.keep_only(members)
        self.model_manager.planner_inputs.forecasts.keep_only(members)
        self.model_manager.planner_inputs.quarantine.keep_only(members)
        me = self.network.id
        for machine in self.household.now.machines.keys() - members.keys() - {me}:
            code = "removed_from_household" if self.network.dismissed else "machine_removed"
            self.model_manager.machine_lost(machine, StageLost(code, name=self.household.name(machine)))
            self.household.apply(facts.Removed(machine))
            self.lending_service.close_soon(machine)
        other_names = [other.name for other in members.values() if other.id != me]
        for member in members.values():
            own = member.id == me
            name = unless_taken(self.settings.name, member.name, other_names) if own else member.name
            self.household.apply(facts.Member(member.id, name, tuple(sorted(map(str, member.roles)))))
        self.lending_service.drop_former_hosts(members)
        self.prompt_vault.spawn(self.prompt_vault.keep_only({str(member) for member in members}))
        self.naming.members_changed(members.get(me))
        self.discovery.members_changed()

    def pairing_changed(self, state: pairing.State) -> None:
        self.discovery.pairing_changed(self.hardware.device)
        self.changed()

    async def stage_offer(self, member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        return await self.lending_service.stage_offer(member, pipeline, body)

    async def pieces(self, member: Member, pipeline: PipelineId, chunks: AsyncIterator[bytes]) -> bytes:
        return await self.lending_service.pieces(member, pipeline, chunks)

    def require_expected(self, member: Member, pipeline: PipelineId) -> None:
        self.lending_service.require_expected(member, pipeline)

    async def data(self, member: Member, pipeline: PipelineId, channel: FrameChannel) -> None:
        await self.lending_service.data(member, pipeline, channel)

    def _models_in_use(self) -> list[str]:
        held = self.model_manager.embeddings.held
        return [*self.model_manager.loaded.ids, *([held.entry.model.id] if held else [])]

    def _candidates(self, released: Mapping[MachineId, int]) -> tuple[Candidate, list[Candidate]]:
        """Return this machine and the connected lenders as candidates for a plan. `released` is the number of bytes
        that each machine is freeing now."""
        me, guest = self.network.id, self.household.rights.is_guest()
        memory, uses, hardware = self.lending_policy.memory, self._uses(), self.hardware.announced
        gives = self._main_memory().own_bytes(released)
        host = Candidate(
            me,
            self.settings.name,
            gives,
            engine=hardware[1][0],
            device=hardware[0],
            past_limit_bytes=memory.past_limit_bytes(*uses),
            idle_card=self.hardware.idle_card,
            refused_families=families_without_card(self.graphics),
            processor_bytes=self._main_memory().own_bytes_beside(released),
            missing_bytes=self.graphics.missing_bytes,
            card_bytes=self._own_card_bytes(released.get(me, 0)),
        )
        return host, [] if guest else connected_lenders(me, self.household.now, released)

    def _own_card_bytes(self, released_bytes: int) -> int | None:
        """Return how much graphics card memory a new model of this machine may use, or None if it has no separate
        card memory.

        released_bytes: the memory that other models of this machine are freeing now.
        """
        if not self.graphics.overflows:
            return None
        own = self.graphics.card_memory.claimed_bytes - sum(
            run.card_bytes for run in self.lending_service.stage_host.runs
        )
        return self.graphics.card_memory.room_bytes + min(released_bytes, max(0, own))

    def _card_changed(self) -> None:
        used, unloaded, own = self._uses()
        self.lending_policy.memory.set_default(max(0, used + own - unloaded))
        self.changed()

    def _computing_memory(self) -> devices.Memory:
        """Return the memory of the graphics cards that compute, plus main memory if layers may overflow to it."""
        cards, main = self.graphics.card_memory.now(), devices.memory()
        if cards is None:
            return main
        if not self.graphics.overflows:
            return cards
        most_bytes = None if cards.most_bytes is None else cards.most_bytes + main.total_bytes
        comes = self.lending_service.stage_host.reserved(on_device=False)[1]
        main_bytes = max(0, main.free_bytes - comes)
        return devices.Memory(cards.total_bytes + main.total_bytes, cards.free_bytes + main_bytes, most_bytes)

    def _uses(self) -> tuple[int, int, int]:
        """Return three sizes in bytes of this machine's memory: promised to other hosts, reserved but not loaded
        yet, and used by its own models.
        """
        return self._main_memory().uses()

    def _main_memory(self) -> MainMemory:
        return MainMemory(self.network.id, self.graphics, self.lending_policy, self.lending_service, self.model_manager)

    def _with_layers(self) -> Household:
        me = self.household.now.machines[self.network.id]
        own = facts.Described(
            me.id,
            self.settings.name,
            self.hardware.device,
            self._computing_memory().total_bytes,
            self.description().lendable_bytes,
            self.lending_service.used_bytes,
            self.model_manager.state_word(self.lending_policy.state_word()),
            self.lending_policy.reason(),
            self.lending_policy.hottest_c(),
            self_description(self._status()),
        )
        household = with_unlinkable(apply(self.household.now, own), self.network.link_manager.refusals)
        held = self.model_manager.loaded.layers()
        held[me.id] = (*held.get(me.id, ()), *self.lending_service.layers())
        replaced = self.model_manager.planner_inputs.quarantine.reasons(
            household.machines, self.model_manager.loaded.replaced()
        )
        return apply(household, facts.LayersHeld(held, replaced))

    def _status(self) -> messages.Status:
        offer, main_bytes = self.description(), 0
        if self.graphics.overflows:
            main_bytes = max(0, offer.lendable_bytes - self.graphics.card_memory.room_bytes)
        return status_of(
            offer,
            self.lending_service.used_bytes,
            self.lending_policy,
            self.hardware.idle_card,
            Refused(
                families_without_card(self.graphics),
                self._main_memory().free_bytes_beside(),
                self.graphics.missing_bytes,
            ),
            main_bytes,
            self.model_manager.loaded.shared() if self.household.rights.may_be_asked() else (),
        )

    def _named(self, name: str) -> None:
        """Apply this machine's new name."""
        me = self.household.now.machines[self.network.id]
        self.household.apply(facts.Member(me.id, name, me.roles))
        self.lending_service.machine = name
