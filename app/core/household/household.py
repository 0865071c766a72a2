"""The household as this node sees it: immutable values and the events that replace them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from app.core.errors import Reason
from app.core.household.operations import Role
from app.core.ids import MachineId, same_name, unless_taken
from backends.contract import Layers

GUEST, HOST, LENDER = str(Role.GUEST), str(Role.HOST), str(Role.LENDER)
MOST_FORMER = 64  # the number of former names to remember
MACHINE_FACTS = ("name", "machine")  # the facts of a reason that contain the name of a machine
# codes for the end of a machine that was only noticed by its broken connections
BROKEN_LINK_CODES = ("stage_unreachable", "stage_silent", "stage_lost")
SHUTDOWN_CODE = "shutting_down"  # the code with which a machine announces that it shuts down
MOST_STRANGERS = 64  # more machines than a home has


@dataclass(frozen=True, slots=True)
class IdleCard:
    """A graphics card that does not compute because no engine pack for it is installed."""

    name: str
    pack: str  # the back end whose pack would use it, such as `CUDA 13`


@dataclass(frozen=True, slots=True)
class SharedModel:
    """A model that is loaded on a host and answers questions of the household's members."""

    name: str
    id: str  # SHA-256 of its file, as the host claims
    context: int  # positions of a conversation
    is_ready: bool  # whether it can answer now; otherwise it is loading or being rebuilt
    is_base: bool = False  # whether it completes text but does not chat
    sees: bool = False  # whether it looks at pictures
    picture_tokens: int = 0  # the most that a picture takes; 0 if unknown


@dataclass(frozen=True, slots=True)
class SelfDescription:
    """The facts that a machine reports about itself, apart from its memory."""

    used_by: tuple[MachineId, ...] = ()  # machines whose models have layers on this one
    engine: str = ""  # name and version of the engine that computes layers
    watts: int | None = None  # None if its system does not report it
    link_mbit: int = 0  # the owner's rate limit for Poolhouse in each direction; 0 for no limit
    idle_card: IdleCard | None = None
    refused_families: tuple[str, ...] = ()  # model families that its graphics card does not compute
    processor_bytes: int = 0  # main memory that it lends for these now
    missing_bytes: tuple[tuple[str, int], ...] = ()  # for each family, what it lends on cards that do not compute it
    main_bytes: int = 0  # the part of what it lends that is main memory beside graphics cards; 0 without these
    models: tuple[SharedModel, ...] = ()  # loaded there, and available to the household


@dataclass(frozen=True, slots=True)
class Machine:
    """A member of the household, as it last described itself. Machines are identified by id, not by name."""

    id: MachineId
    name: str
    online: bool = False
    device: str = ""
    total_bytes: int = 0
    lending: str = ""  # the state of its lending as it reports it, such as `paused` or `draining`
    lending_reason: Reason | None = None  # the reason that it gives for this state
    hottest_c: int | None = None  # temperature of its processor; None if its system does not report it
    log_name: str = ""  # its name in the household's log
    lends_bytes: int = 0  # available to a new placement now
    used_bytes: int = 0  # in use by placements now
    roles: tuple[str, ...] = ()
    address: str | None = None
    reason: Reason | None = None
    layers: tuple[Layers, ...] = ()
    seen_at: float | None = None  # Unix time when its link last ended
    about: SelfDescription = SelfDescription()

    def could_lend(self, released_bytes: int) -> int:
        """Return how many bytes a new placement may use after an old placement has released `released_bytes`.

        The result never exceeds the machine's total lending, because its latest report may already include the release.
        """
        return self._could_lend(self.lends_bytes, released_bytes)

    def processor_could_lend(self, released_bytes: int) -> int:
        """Return what `could_lend` returns, but for families that the machine's graphics card does not compute."""
        return self._could_lend(self.about.processor_bytes, released_bytes)

    def _could_lend(self, free_bytes: int, released_bytes: int) -> int:
        return free_bytes + min(released_bytes, self.used_bytes)

    @property
    def only_uses(self) -> bool:
        """Return whether the machine may use models but not lend. Such a machine has no lending to pause."""
        return bool(self.roles) and LENDER not in self.roles

    @property
    def state(self) -> str:
        """Return the machine's state as a single word, which the map and the table show."""
        if not self.online:
            return "offline"
        if self.lending == "draining" or (self.lending == "paused" and not self.only_uses):
            return self.lending
        if self.lending == "working":
            return self.lending
        if self.layers or self.used_bytes:
            return "loaded"
        if self.only_uses:
            return "guest" if GUEST in self.roles and HOST not in self.roles else "user"
        return "ready" if self.lends_bytes else "off"


@dataclass(frozen=True, slots=True)
class Member:
    """An event that carries a member of the household, as listed in the log."""

    id: MachineId
    name: str
    roles: tuple[str, ...]
    seen_at: float | None = None  # Unix time from before the node started


@dataclass(frozen=True, slots=True)
class Removed:
    id: MachineId


@dataclass(frozen=True, slots=True)
class Connected:
    """An event reporting that the link to a machine passed all checks."""

    id: MachineId
    address: str | None


@dataclass(frozen=True, slots=True)
class Described:
    """An event that carries a machine's description of itself."""

    id: MachineId
    name: str
    device: str
    total_bytes: int
    lends_bytes: int
    used_bytes: int
    lending: str = ""
    lending_reason: Reason | None = None
    hottest_c: int | None = None
    about: SelfDescription = SelfDescription()


def computes_otherwise(before: Machine, news: Described) -> bool:
    """Return whether a machine now computes with other devices, so that the speeds measured on it are outdated."""
    return (before.device, before.about.refused_families) != (news.device, news.about.refused_families)


@dataclass(frozen=True, slots=True)
class SilenceNoted:
    """An event reporting that a machine has become silent (`reason` says why) or responds again (`reason` is None)."""

    id: MachineId
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Disconnected:
    id: MachineId
    reason: Reason | None
    at: float | None = None  # Unix time


@dataclass(frozen=True, slots=True)
class LayersHeld:
    """An event reporting that a placement loaded or released layers.

    `layers` lists the layers on each machine afterwards.
    """

    layers: Mapping[MachineId, tuple[Layers, ...]]
    # why other machines take over the layers of these
    replaced: Mapping[MachineId, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Announced:
    """An announcement from a Poolhouse on this network.

    It is only a hint: its format was checked, but its content is not authenticated.
    """

    id16: str  # the first 16 hex digits of the id that it claims
    addresses: tuple[str, ...]  # IPv4 and IPv6 addresses without a port, all of them local
    port: int  # the port on which members connect
    protocol: int
    name: str | None = None  # safe to display; only present while its pairing window is open
    pairing_port: int | None = None
    system: str | None = None  # its operating system as it claims, sent together with the name
    device: str | None = None

    def is_of(self, machine: MachineId) -> bool:
        """Return whether this announcement could come from `machine`."""
        return machine.startswith(self.id16)


@dataclass(frozen=True, slots=True)
class AnnouncementEnded:
    """An event reporting that a stranger said goodbye or was silent for too long."""

    id16: str


Event = (
    Member | Removed | Connected | Described | SilenceNoted | Disconnected | LayersHeld | Announced | AnnouncementEnded
)


@dataclass(frozen=True, slots=True)
class Household:
    """All members by id, and the strangers nearby, keyed by the beginning of their claimed ids."""

    machines: Mapping[MachineId, Machine] = field(default_factory=dict)
    # sorted by the time of the last announcement, latest last
    strangers: Mapping[str, Announced] = field(default_factory=dict)
    former: Mapping[str, MachineId] = field(default_factory=dict)  # former names of renamed machines

    def with_current_names(self, reason: Reason) -> Reason:
        """Return the reason with the current names of machines, because a machine may have been renamed since.

        If it reports a broken connection to a machine that announced its shutdown, it is replaced by a reason that
        reports the shutdown.
        """
        taken = {machine.name for machine in self.machines.values()}
        now = {
            fact: self.machines[self.former[said]].name
            for fact in MACHINE_FACTS
            if isinstance(said := reason.facts.get(fact), str) and said in self.former and said not in taken
        }
        inner = {name: self.with_current_names(fact) for name, fact in reason.facts.items() if isinstance(fact, Reason)}
        named = Reason(reason.code, {**reason.facts, **now, **inner}) if now or inner else reason
        closed = reason.code in BROKEN_LINK_CODES and self._has_closed(str(named.facts.get("machine")))
        return Reason("machine_closed", {"machine": named.facts["machine"]}) if closed else named

    def _has_closed(self, name: str) -> bool:
        return any(
            machine.name == name and machine.reason is not None and machine.reason.code == SHUTDOWN_CODE
            for machine in self.machines.values()
            if not machine.online
        )


def with_unlinkable(household: Household, kept_out: Mapping[MachineId, Reason]) -> Household:
    """Return the household with a reason for each offline machine that answers but cannot be linked.

    It replaces the reason why the last link ended. For example, a machine that shut down and returned with an
    incompatible version is not reported as shut down.
    """
    machines = {
        key: replace(machine, reason=kept_out[key]) if key in kept_out and not machine.online else machine
        for key, machine in household.machines.items()
    }
    return replace(household, machines=machines)


def apply(household: Household, event: Event) -> Household:
    """Return the household after an event. Events about machines that are not members have no effect."""
    machines = dict(household.machines)
    strangers = household.strangers
    match event:
        case Member(id, name, roles, seen_at):
            known = machines.get(id, Machine(id, name, log_name=name, seen_at=seen_at))
            # a different name shows that the machine renamed itself
            shown = known.name if known.log_name == name else name
            for key, machine in machines.items():
                if key != id and same_name(machine.name, name):  # names in the log take precedence
                    machines[key] = replace(machine, name=machine.log_name)
            machines[id] = replace(known, name=shown, log_name=name, roles=roles)
            strangers = {key: seen for key, seen in strangers.items() if not seen.is_of(id)}
        case Removed(id):
            machines.pop(id, None)
        case LayersHeld(layers, replaced):
            machines = {
                key: replace(m, layers=layers.get(key, ()), reason=replaced.get(key, m.reason))
                for key, m in machines.items()
            }
        case Described():
            if event.id in machines:
                other_machines = (machine for key, machine in machines.items() if key != event.id)
                taken = [name for machine in other_machines for name in (machine.name, machine.log_name)]
                own = unless_taken(event.name, machines[event.id].name, taken)
                machines[event.id] = _updated(machines[event.id], replace(event, name=own))
        case Connected() | SilenceNoted() | Disconnected():
            if event.id in machines:
                machines[event.id] = _updated(machines[event.id], event)
        case Announced():
            if not any(map(event.is_of, machines)):
                strangers = _with_stranger(strangers, event)
        case AnnouncementEnded(id16):
            strangers = {key: seen for key, seen in strangers.items() if key != id16}
        case _:
            assert_never(event)
    return Household(machines, strangers, _former(household, machines))


def _former(household: Household, machines: Mapping[MachineId, Machine]) -> Mapping[str, MachineId]:
    """Return the former names of members, limited to the MOST_FORMER latest."""
    known = {
        **household.former,
        **{
            old.name: key
            for key, old in household.machines.items()
            if key in machines and machines[key].name != old.name
        },
    }
    there = [(name, key) for name, key in known.items() if key in machines]
    return dict(there[-MOST_FORMER:])


def _with_stranger(strangers: Mapping[str, Announced], seen: Announced) -> Mapping[str, Announced]:
    """Append a stranger. If there are too many strangers, drop the one that has been silent the longest."""
    others_near = [(key, other) for key, other in strangers.items() if key != seen.id16]
    return dict([*others_near[-(MOST_STRANGERS - 1) :], (seen.id16, seen)])


def _updated(machine: Machine, event: Connected | Described | SilenceNoted | Disconnected) -> Machine:
    match event:
        case Connected(_, address):
            address = address or machine.address
            return replace(machine, online=True, address=address, reason=None)
        case Described():
            return replace(
                machine,
                name=event.name,
                device=event.device,
                total_bytes=event.total_bytes,
                lends_bytes=event.lends_bytes,
                used_bytes=event.used_bytes,
                lending=event.lending,
                lending_reason=event.lending_reason,
                hottest_c=event.hottest_c,
                about=event.about,
            )
        case SilenceNoted(_, reason):
            return replace(machine, reason=reason)
        case Disconnected(_, reason, at):
            gone = replace(machine, online=False, lends_bytes=0, used_bytes=0, reason=reason)
            return replace(gone, seen_at=at, about=SelfDescription(engine=machine.about.engine))
