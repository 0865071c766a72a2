"""Immutable descriptions of the household's machines and links, derived from the node's snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from app.api.plans import LoadedModel
from app.api.snapshot import LayerRange, Link, LinkInterfaces, LinkMeasurement, Machine, Snapshot
from app.gui.look.sentences import said

AnyLink = TypeVar("AnyLink", bound=LinkMeasurement)


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """A link to a machine. Unmeasured values are None."""

    round_trip_s: float | None  # median of the last measurement, or of heartbeats if there was none
    slow_round_trip_s: float | None  # 95th percentile
    out_bytes_per_s: float | None
    in_bytes_per_s: float | None
    kind: str
    far_kind: str
    interface: str
    negotiated_bits_per_s: int | None
    far_interface: str
    far_negotiated_bits_per_s: int | None
    measured_at: float | None
    share: float | None  # fraction of the request time according to the forecast for the loaded model
    token_s: float | None
    chunk_s: float | None  # round trip for `chunk_tokens` of a prompt
    chunk_tokens: int
    preferred: str = ""  # the interface that the user chose
    trouble: str = ""  # why the preferred interface is not used, or which one would be better
    better_interface: str = ""
    to: str = ""  # ID of the machine at the far end; "" if this machine is not the near end, so it cannot test the link

    @property
    def slower_bytes_per_s(self) -> float | None:
        """The throughput of the slower direction."""
        if self.out_bytes_per_s is None or self.in_bytes_per_s is None:
            return None
        return min(self.out_bytes_per_s, self.in_bytes_per_s)

    @property
    def worst_kind(self) -> str:
        """The kind of interface at the ends of the link. If they differ, this is the one that is not wired."""
        for kind in ("vpn", "wifi", "virtual"):
            if kind in (self.kind, self.far_kind):
                return kind
        return self.kind


@dataclass(frozen=True, slots=True)
class LenderLink:
    """A link between two machines, neither of which is the central one on the map."""

    ends: tuple[str, str]  # IDs
    names: tuple[str, str]
    link: LinkFacts  # as measured by the first end

    @property
    def key(self) -> str:
        """An identifier that is the same for both directions of the link."""
        return "-".join(sorted(self.ends))


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """The state of a replica on a single machine, which holds the whole model and answers requests alone."""

    state: str  # ready, draining, recovering or lost
    answering: int
    waiting: int


@dataclass(frozen=True, slots=True)
class HardwareFacts:
    """The hardware of a machine. Optional values are None if its operating system does not report them."""

    device: str
    hottest_c: float | None  # processor temperature
    watts: int | None
    link_mbit: int  # the owner's network limit for Poolhouse; 0 if none


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The memory of a machine in bytes. For this machine, `lent` and `used` include the memory of its own models."""

    total: int
    lent: int
    used: int
    own: int  # memory used by this machine's own models, which is not lent


@dataclass(frozen=True, slots=True)
class HeldModels:
    """The models, or layers of models, that a machine holds."""

    layers: tuple[LayerRange, ...]  # layers of the displayed models
    by_model: tuple[tuple[str, tuple[LayerRange, ...]], ...]  # only if several models are displayed
    hidden: tuple[str, ...]  # models that have layers here but are not displayed
    replica: ReplicaFacts | None
    embedder: str  # the embedding model on it
    reranker: str  # the reranker on it
    has_own: bool  # whether it hosts its own model, whose layers are not known here
    shared: tuple[str, ...]  # names of the models that it hosts and shares with the household
    card: str  # the graphics card that computes the layers; empty for the processor, or if it is not known


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """A machine of the household, as displayed in the window."""

    id: str
    name: str
    this: bool
    host: bool  # whether it is the host of the displayed placement
    online: bool
    state: str
    reason: str  # a sentence or ""
    roles: frozenset[str]
    address: str | None
    seen_at: float | None
    used_by: tuple[str, ...]  # names of machines
    link: LinkFacts | None
    other_version: str  # app version if different from this machine's
    other_engine: str  # engine if different from this machine's
    left_out: bool  # whether the user excluded it from the forecast
    doubted: bool  # whether a check found wrong numbers, so that it gets no layers
    share: float | None  # fraction of the request time that it computes, according to the forecast
    hardware: HardwareFacts
    memory: MemoryFacts
    held: HeldModels

    @property
    def lends(self) -> bool:
        """Return whether this is another machine that is online and a lender. Only such machines can be left out."""
        return not self.this and self.online and "lender" in self.roles

    @property
    def can_test(self) -> bool:
        """Return whether the displayed link starts at this machine and its far end is online."""
        return self.online and self.link is not None and bool(self.link.to)


@dataclass(frozen=True, slots=True)
class Stranger:
    """A nearby machine that runs Poolhouse but does not belong to the household.

    Its announced facts are unverified.
    """

    id: str
    name: str | None  # None unless its pairing window is open
    address: str
    pairing_address: str | None
    claims: str = ""  # system and accelerator as announced by that machine


def machines_of(
    snapshot: Snapshot, without: Collection[str] = (), center: str = "", model: str = ""
) -> tuple[MachineFacts, ...]:
    """Return all machines: the central one, then the others sorted by name.

    without: the IDs of the machines that the user has left out. center: the ID of the machine whose placement is
    shown, or "" for this one. model: the only model of this machine to show, or "" for all.
    """
    view = _view(snapshot, without, center, model)
    machines = [_machine_facts(view, key, machine) for key, machine in snapshot.machines.items()]
    return tuple(sorted(machines, key=lambda machine: (machine.id != view.center, machine.name.casefold(), machine.id)))


def is_foreign(snapshot: Snapshot, center: str) -> bool:
    """Return whether `center` is another machine. This machine knows only which machines are in that placement."""
    return bool(center) and not (center in snapshot.machines and snapshot.machines[center].this)


def may_change_household(machines: Sequence[MachineFacts]) -> bool:
    """Return whether this machine may add and remove others. A machine without a household always may."""
    own = next((machine for machine in machines if machine.this), None)
    return own is None or not own.roles or "admin" in own.roles


def hosts_of(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """Return the ID and name of each machine that hosts a loaded model, this one first."""
    running = {user for machine in snapshot.machines.values() for user in machine.used_by}
    if snapshot.loaded:
        running.add(_own_id(snapshot))
    hosts = [(key, machine) for key, machine in snapshot.machines.items() if key in running]
    hosts.sort(key=lambda host: (not host[1].this, host[1].name.casefold(), host[0]))
    return tuple((key, machine.name) for key, machine in hosts)


def strangers_of(snapshot: Snapshot) -> tuple[Stranger, ...]:
    """Return the nearby machines outside the household. Those with an open pairing window come first."""
    strangers = [
        Stranger(
            key,
            stranger.name,
            stranger.addresses[0] if stranger.addresses else "",
            stranger.pairing_address,
            ", ".join(filter(None, (stranger.system, stranger.device))),
        )
        for key, stranger in snapshot.strangers.items()
    ]
    return tuple(
        sorted(strangers, key=lambda stranger: (not stranger.pairing_address, stranger.name or "", stranger.id))
    )


def active_of(snapshot: Snapshot, model: str = "") -> frozenset[str]:
    """Return the IDs of the machines that are computing an answer from `model`, or from any model if it is ""."""
    if not snapshot.answers.running:
        return frozenset()
    shown = (loaded for loaded in snapshot.models if model in ("", loaded.model))
    return frozenset().union(*(_active(loaded) for loaded in shown if loaded.answering))


def _active(loaded: LoadedModel) -> frozenset[str]:
    """Return the IDs of the machines that are computing with a model. A model that is being rebuilt has none."""
    if loaded.replicas:
        answering = (replica for replica in loaded.replicas if replica.answering and replica.state != "recovering")
        return frozenset(key for replica in answering for key in replica.ids)
    if loaded.state == "recovering":
        return frozenset()
    return frozenset(stage.key for stage in loaded.stages)


# Links


def lender_links(snapshot: Snapshot, center: str) -> tuple[LenderLink, ...]:
    """Return the measured links between machines other than the central one, sorted by the names of their ends."""
    machines = snapshot.machines
    links: dict[frozenset[str], LenderLink] = {}
    for near, far, link in _measured_links(snapshot):
        ends = frozenset((near, far))
        if center in ends or ends in links or not ends <= machines.keys() or len(ends) < 2:
            continue
        testable = far if machines[near].this else ""
        names = machines[near].name, machines[far].name
        links[ends] = LenderLink((near, far), names, link_facts(link, testable))
    return tuple(sorted(links.values(), key=lambda link: (*map(str.casefold, link.names), link.ends)))


def _measured_links(snapshot: Snapshot) -> Iterator[tuple[str, str, LinkMeasurement]]:
    """Yield the near end, the far end and the measurement of each link, starting with the links of this machine."""
    own = _own_id(snapshot)
    for far, link in snapshot.links.items():
        if link.measured_at:
            yield own, far, link
    for near, links in snapshot.links_between.items():
        for far, reported in links.items():
            yield near, far, reported


def reversed_link(link: AnyLink) -> AnyLink:
    """Return the same link as seen from its far end."""
    return msgspec.structs.replace(
        link,
        interface=link.far_interface,
        kind=link.far_kind,
        negotiated_bits_per_s=link.far_negotiated_bits_per_s,
        far_interface=link.interface,
        far_kind=link.kind,
        far_negotiated_bits_per_s=link.negotiated_bits_per_s,
        out_bytes_per_s=link.in_bytes_per_s,
        in_bytes_per_s=link.out_bytes_per_s,
    )


def link_facts(link: LinkMeasurement, far: str, key: str = "", loaded: LoadedModel | None = None) -> LinkFacts:
    """Describe a link.

    far: the machine at the far end, or "" if the link does not start at this machine. key: the machine whose layers
    of the loaded model are reached over this link.
    """
    share = _time_share(loaded, key, "link")
    timed = None
    if loaded is not None and share:
        timed = next((machine for machine in loaded.facts.machines if machine.id == key), None)
    interfaces = link if isinstance(link, LinkInterfaces) else LinkInterfaces()
    trouble = interfaces.preferred_reason_facts or interfaces.better_reason_facts
    heartbeat_s = link.round_trip_seconds if isinstance(link, Link) else None
    return LinkFacts(
        round_trip_s=link.measured_round_trip_seconds or heartbeat_s,
        slow_round_trip_s=link.round_trip_p95_seconds,
        out_bytes_per_s=link.out_bytes_per_s,
        in_bytes_per_s=link.in_bytes_per_s,
        kind=link.kind,
        far_kind=link.far_kind,
        interface=link.interface,
        negotiated_bits_per_s=link.negotiated_bits_per_s,
        far_interface=link.far_interface,
        far_negotiated_bits_per_s=link.far_negotiated_bits_per_s,
        measured_at=link.measured_at,
        share=share,
        token_s=timed.token_way_s if timed else None,
        chunk_s=timed.chunk_way_s if timed else None,
        chunk_tokens=loaded.facts.batch_rows if loaded else 0,
        preferred=interfaces.preferred or "",
        trouble=said(trouble) if trouble else "",
        better_interface=interfaces.better_interface or "",
        to=far,
    )


def _time_share(loaded: LoadedModel | None, machine: str, part: str) -> float | None:
    """Return the forecast fraction of a request's time spent on a machine or on the link to it."""
    shares = loaded.forecast.shares if loaded is not None and loaded.forecast is not None else []
    return next((share.share for share in shares if share.id == machine and share.part == part), None)


# The displayed placement


@dataclass(frozen=True, slots=True)
class _View:
    """The displayed placement, with all data needed to describe the machines."""

    snapshot: Snapshot
    own: str  # ID of this machine
    center: str
    without: Collection[str]
    loaded: LoadedModel | None  # None if another machine's placement is displayed
    together: Sequence[LoadedModel]  # all models of this machine, if several are displayed
    hidden: Sequence[LoadedModel]  # the other models of this machine if only one is displayed
    hosts: frozenset[str]
    left_out: Mapping[str, str]  # sentences by machine name
    replicas: Mapping[str, ReplicaFacts]
    own_bytes: Mapping[str, int]

    @property
    def is_own(self) -> bool:
        """Return whether the displayed placement belongs to this machine."""
        return self.center == self.own

    def link_to(self, key: str) -> tuple[str, LinkMeasurement | None]:
        """Return the ID of the link's far end, and the link between the central machine and the given one.

        The ID is "" if the link does not start at this machine.
        """
        if key == self.center:
            return "", None
        if self.is_own or key == self.own:
            far = key if self.is_own else self.center
            return far, self.snapshot.links.get(far)
        reported = self.snapshot.links_between
        if link := reported.get(self.center, {}).get(key):
            return "", link
        back = reported.get(key, {}).get(self.center)
        return "", reversed_link(back) if back else None


def _view(snapshot: Snapshot, without: Collection[str], center: str, name: str) -> _View:
    models, own = snapshot.models, _own_id(snapshot)
    chosen = next((model for model in models if name and model.model == name), None)
    loaded = None if is_foreign(snapshot, center) else chosen or snapshot.loaded
    plans = [*models, snapshot.embeds] if snapshot.embeds else models
    own_bytes: dict[str, int] = {}
    for need in (need for plan in plans for need in plan.machines):
        own_bytes[need.key] = own_bytes.get(need.key, 0) + need.needs_bytes
    return _View(
        snapshot=snapshot,
        own=own,
        center=center or own,
        without=without,
        loaded=loaded,
        together=models if len(models) > 1 and not chosen else (),
        hidden=[model for model in models if chosen and model is not chosen],
        hosts=frozenset(key for key, _ in hosts_of(snapshot)),
        left_out=_left_out(loaded),
        replicas=_whole_replicas(loaded),
        own_bytes=own_bytes,
    )


def _own_id(snapshot: Snapshot) -> str:
    return next((key for key, machine in snapshot.machines.items() if machine.this), "")


def _machine_facts(view: _View, key: str, machine: Machine) -> MachineFacts:
    machines, own = view.snapshot.machines, view.snapshot.machines.get(view.own)
    left_out = "" if machine.this or machine.layers else view.left_out.get(machine.name, "")
    far, link = view.link_to(key)
    reason = said(machine.reason_facts) if machine.reason_facts else left_out if machine.online else ""
    own_link = view.snapshot.links.get(key)
    version = own_link.version if own_link else ""
    own_engine = own.engine if own else ""
    return MachineFacts(
        id=key,
        name=machine.name,
        this=machine.this,
        host=bool(view.loaded and view.loaded.stages) and machine.this if view.is_own else key == view.center,
        online=machine.online,
        state=_state(machine, left_out),
        reason=reason,
        roles=frozenset(machine.roles),
        address=machine.address,
        seen_at=machine.seen_at,
        used_by=tuple(sorted(machines[user].name for user in machine.used_by if user in machines)),
        link=link_facts(link, far, key, view.loaded) if link else None,
        other_version="" if version == view.snapshot.node.version else version,
        other_engine=machine.engine if own_engine and machine.engine != own_engine else "",
        left_out=key in view.without,
        doubted=machine.doubted,
        share=_time_share(view.loaded, key, "machine"),
        hardware=HardwareFacts(machine.device or "", machine.hottest_c, machine.watts, machine.link_mbit),
        memory=_memory(machine, view.own_bytes.get(key, 0)),
        held=_held(view, key, machine),
    )


def _state(machine: Machine, left_out: str) -> str:
    if not machine.online and not machine.this:
        return "offline"
    return "left_out" if left_out and machine.state == "ready" else machine.state


def _memory(machine: Machine, own_bytes: int) -> MemoryFacts:
    """Return the memory of a machine.

    The memory that models loaded on this machine use is not lent, so it is added to both `lent` and `used`.
    """
    own = own_bytes if machine.this else 0
    lent, used = machine.lent_bytes or 0, machine.used_bytes or 0
    return MemoryFacts(machine.total_bytes or 0, lent + own if lent else 0, used + own, own)


def _held(view: _View, key: str, machine: Machine) -> HeldModels:
    embeds = view.snapshot.embeds if machine.this else None
    layers: Sequence[LayerRange] = ()
    by_model: dict[str, tuple[LayerRange, ...]] = {}
    if view.is_own:
        layers = _layers_of(view.loaded, key) if view.hidden else machine.layers
        by_model = {model.model: merged_ranges(_layers_of(model, key)) for model in view.together}
    is_used = any(user in view.snapshot.machines for user in machine.used_by)
    return HeldModels(
        layers=merged_ranges(layers),
        by_model=tuple((name, ranges) for name, ranges in by_model.items() if ranges),
        hidden=tuple(model.model for model in view.hidden if _layers_of(model, key)),
        replica=view.replicas.get(key),
        embedder=embeds.model if embeds and not embeds.ranks else "",
        reranker=embeds.model if embeds and embeds.ranks else "",
        has_own=not view.is_own and key in view.hosts and (key == view.center or not is_used),
        shared=tuple(model.model for model in view.snapshot.shared if model.machine_id == key),
        card=_card_of(view.loaded, key),
    )


def _layers_of(model: LoadedModel | None, key: str) -> list[LayerRange]:
    return [(stage.first, stage.last) for stage in (model.stages if model else ()) if stage.key == key]


def _card_of(model: LoadedModel | None, key: str) -> str:
    return next((stage.card for stage in (model.stages if model else ()) if stage.key == key and stage.card), "")


def merged_ranges(ranges: Sequence[LayerRange]) -> tuple[LayerRange, ...]:
    """Return the ranges in ascending order, with adjacent ones merged."""
    result: list[LayerRange] = []
    for first, last in sorted(ranges):
        if result and result[-1][1] == first:
            result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return tuple(result)


def _whole_replicas(loaded: LoadedModel | None) -> Mapping[str, ReplicaFacts]:
    """Return the replicas that consist of a single machine, keyed by machine ID."""
    return {
        replica.ids[0]: ReplicaFacts(replica.state or "ready", replica.answering, replica.waiting)
        for replica in (loaded.replicas if loaded else ())
        if len(replica.ids) == 1
    }


def _left_out(loaded: LoadedModel | None) -> Mapping[str, str]:
    """Return the reasons why the planner left machines out of the placement, keyed by machine name."""
    return {
        str(entry.facts.get("machine")): said(entry.reason)
        for entry in (loaded.why if loaded else ())
        if entry.code.startswith("left_out_")
    }
