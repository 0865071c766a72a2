"""The registry of links, which measures them on a schedule and saves the results across restarts."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from app.api.snapshot import Link as LinkEntry
from app.api.snapshot import LinkMeasurement, LinkReport, LinkReports
from app.core.errors import AppError, BadInput, Busy, Reason
from app.core.household.link import Link, LinkEnd, LinkKind
from app.core.ids import MachineId
from app.core.reasons import sentence
from app.machine.interfaces import USED_BY_DEFAULT, Interface, interface_of_connection, interfaces, usable_interfaces
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.network import measured_paths
from app.network.network import Network
from app.network.sockets import Address, own_host_towards
from app.network.traffic_limits import BYTES_OF_MBIT, LinkPace
from app.node.known_household import KnownHousehold
from app.node.links.interface_choice import BetterInterfaces, C, InterfaceChoice, require_usable, with_choice

log = logging.getLogger(__name__)

L = TypeVar("L", bound=LinkMeasurement)
LOOK_SECONDS = 10.0  # between checks of the interfaces and the schedule
SETTLE_SECONDS = 2.0  # delay after a link opens, randomized so that links do not all measure at the same time
EVERY_SECONDS = 1800.0  # between measurements of an idle link's round trips, a few kilobytes each
CALM_SECONDS = 48 * EVERY_SECONDS  # longest interval, for links that change constantly such as an unstable radio link
AGAIN_SECONDS = (5.0, 60.0)  # initial and maximum wait while either end is busy
FAILED_SECONDS = (60.0, EVERY_SECONDS)
DOUBT_SECONDS = 120.0  # the least time between measurements caused by wrong forecasts
CHANGED_FACTOR, CHANGED_SECONDS = 2.0, 0.002  # change of the round trip that suggests a changed throughput
WAYS = 4  # addresses of one machine measured in one go
MOST_WAYS_KEPT = 1000
TRIES_BY_HAND, BY_HAND_SECONDS = 4, 0.7


class LinkLimits:
    """The speed limits of links. The owners of both machines can each set one."""

    def __init__(self, ours: LinkPace, household: KnownHousehold) -> None:
        self._ours, self._household = ours, household

    def of(self, machine: MachineId) -> float | None:
        """Return the lower of the two limits on the link to this machine, in bytes per second, or None if neither is
        set."""
        there = self._household.now.machines.get(machine)
        theirs = there.about.link_mbit * BYTES_OF_MBIT if there else 0
        return min((float(limit) for limit in (self._ours.bytes_per_s, theirs) if limit), default=None)


class LinkRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A measured link, the address over which it was measured, and the Unix time of the measurement."""

    link: Link
    address: str
    measured_at: float


def link_of(path: measured_paths.Path, by: Interface | None) -> Link:
    """Return the planner's description of a link, from a measured path and the interface that it uses."""
    figures = path.measured
    return Link(
        round_trip_s=figures.round_trips.median_s,
        round_trip_p95_s=figures.round_trips.p95_s,
        jitter_s=figures.round_trips.jitter_s,
        out_bytes_per_s=figures.out_bytes_per_s,
        in_bytes_per_s=figures.in_bytes_per_s,
        interface=by.name if by else "",
        kind=by.kind if by else LinkKind.UNKNOWN,
        mtu=by.mtu if by else None,
        negotiated_bits_per_s=by.negotiated_bits_per_s if by else None,
        far_kind=figures.far.kind,
        far_interface=figures.far.interface,
        far_negotiated_bits_per_s=figures.far.negotiated_bits_per_s,
    )


def with_measurement(described: L, known: LinkRecord) -> L:
    """Return the description of a link with the measured values."""
    link = known.link
    return msgspec.structs.replace(
        described,
        measured_at=round(known.measured_at, 3),
        measured_address=known.address,
        measured_round_trip_seconds=link.round_trip_s,
        round_trip_p95_seconds=link.round_trip_p95_s,
        jitter_seconds=link.jitter_s,
        out_bytes_per_s=link.out_bytes_per_s,
        in_bytes_per_s=link.in_bytes_per_s,
        interface=link.interface,
        kind=str(link.kind),
        far_kind=str(link.far_kind),
        far_interface=link.far_interface,
        far_negotiated_bits_per_s=link.far_negotiated_bits_per_s,
        mtu=link.mtu,
        negotiated_bits_per_s=link.negotiated_bits_per_s,
    )


def load(file: Path) -> dict[MachineId, LinkRecord]:
    """Return the saved links. If the file is damaged, all links are measured again."""
    read = read_json_or_default(file, dict[str, LinkRecord], "measured links")
    return {MachineId(machine): known for machine, known in read.items() if is_sound(known)}


def save(file: Path, known: Mapping[MachineId, LinkRecord]) -> None:
    """Save the links, which avoids measuring them again at the next start."""
    try:
        write_atomically(file, msgspec.json.encode(known))
    except OSError as error:
        log.warning("the measured links could not be saved: %s", error)


def is_sound(known: LinkRecord) -> bool:
    """Return whether the values of a saved link are plausible."""
    link = known.link
    rates = link.out_bytes_per_s, link.in_bytes_per_s
    times = link.round_trip_s, link.round_trip_p95_s, link.jitter_s, known.measured_at
    return all(math.isfinite(x) and x > 0 for x in rates) and all(math.isfinite(x) and x >= 0 for x in times)


class LinkRegistry:
    """Measures and saves the links of one node. `run` repeats the measurements on a schedule."""

    def __init__(
        self,
        network: Network,
        file: Path,
        changed: Callable[[], None],
        chosen: frozenset[str] = frozenset(),
        chance: random.Random | None = None,
        limit: Callable[[MachineId], float | None] = lambda _: None,
        note: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        self._network, self._file, self._changed, self._limit = network, file, changed, limit
        self._chosen = chosen  # names of interfaces such as VPNs, which are used only by choice
        self._chance = chance or random.Random()  # noqa: S311  spreads, protects nothing
        self._known: dict[MachineId, LinkRecord] = load(file)
        self._preferred = InterfaceChoice(file.with_name("preferred_interfaces.json"), note)
        self._better = BetterInterfaces(network)
        self._due: dict[MachineId, float] = {}  # due times on the monotonic clock
        self._retry_waits: dict[MachineId, float] = {}  # wait before the next try
        self._full_due: set[MachineId] = set()  # machines whose throughput must be measured too
        self._paths_found: dict[MachineId, dict[Address, measured_paths.Path]] = {}  # addresses measured so far
        self._intervals: dict[MachineId, float] = {}  # wait before the next measurement of an idle link
        self._ways: dict[tuple[MachineId, Address], bool] = {}  # addresses tried, and whether they worked
        self._doubted_at: dict[MachineId, float] = {}
        self._interfaces: tuple[Interface, ...] = ()
        self._one_at_a_time = asyncio.Lock()
        self._news = asyncio.Event()

    def link(self, machine: MachineId) -> Link | None:
        """Return the measured link to `machine`, with its speed reduced to the limit, or None if it was never
        measured.
        """
        known = self._known.get(machine)
        return known.link.limited_to(self._limit(machine)) if known else None

    async def measure_unknown(self, machines: Iterable[MachineId]) -> None:
        """Measure the links to these machines unless they were measured before. A link that cannot be measured stays
        unknown."""
        for machine in machines:
            if machine not in self._known and machine in self._network.links:
                with suppress(AppError):
                    await self._measure_with_retries(machine)

    def measured(self) -> dict[MachineId, LinkRecord]:
        """Return the links that are up and have been measured."""
        return {key: known for key, known in self._known.items() if key in self._network.links}

    def snapshot(self) -> dict[str, LinkEntry]:
        """Return the links that are up, by machine."""
        return {
            machine: self._described(machine, LinkEntry(link.round_trip_seconds, str(link.address), link.hello.build))
            for machine, link in self._network.links.items()
        }

    def _described(self, machine: MachineId, link: C) -> C:
        """Add a link's measured values, if there are any, and its interfaces to its description."""
        known = self._known.get(machine)
        measured = with_measurement(link, known) if known else link
        return with_choice(measured, machine, self._preferred, self._better)

    def interface_between(self, own: str, other: str) -> LinkEnd:
        """Return this machine's interface for a connection between these two addresses."""
        carrier = interface_of_connection(self._interfaces, own, other)
        return LinkEnd(carrier.kind, carrier.name, carrier.negotiated_bits_per_s) if carrier else LinkEnd()

    # events

    def connected(self, machine: MachineId) -> None:
        """Schedule the measurement of a new link. If its address was measured before, measure only the round-trip
        time at first.

        If every link were measured in full, many links that break at a busy moment would be measured at the same time
        afterward, and more of them would break.
        """
        self._preferred.try_again(machine)
        known, link = self._known.get(machine), self._network.links.get(machine)
        if known and link and known.address == str(link.address) and machine not in self._full_due:
            self._plan(machine, SETTLE_SECONDS)
        else:
            self._measure_soon(machine)

    def doubt(self, machine: MachineId) -> None:
        """Schedule a new measurement of the link to this machine, because a forecast based on the last one was
        wrong.
        """
        now = time.monotonic()
        if now - self._doubted_at.get(machine, -math.inf) >= DOUBT_SECONDS:
            self._doubted_at[machine] = now
            self._measure_soon(machine)

    def keep_only(self, members: Iterable[MachineId]) -> None:
        """Forget machines that left the household."""
        members = set(members)
        self._preferred.keep_only(members)
        self._better.keep_only(members)
        gone = self._known.keys() - members
        for machine in gone:
            del self._known[machine]
            self._paths_found.pop(machine, None)
        if gone:
            save(self._file, self._known)

    # measurement

    async def run(self) -> None:
        """Measure the links that are due, one at a time, until canceled."""
        while True:
            waits = await self._round()
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(waits):
                    await self._news.wait()

    async def _round(self) -> float:
        """Do the work that is due. Return the seconds until the next work is due."""
        await self._check_interfaces()
        await self._try_new_addresses()
        await self._try_better_interfaces()
        now = time.monotonic()
        due = sorted((at, machine) for machine, at in self._due.items() if at <= now)
        for _, machine in due:
            await self._measure_due(machine)
        waits = min((at - time.monotonic() for at in self._due.values()), default=LOOK_SECONDS)
        return max(0.0, min(waits, LOOK_SECONDS))

    async def measure_now(self, only: MachineId | None = None) -> LinkReports:
        """Measure all connected links in full, or only the link to one machine, at the user's request. The report says
        why a link could not be measured.

        Raises BadInput if there are no links, and Unreachable if there is no link to the machine.
        """
        if only is not None:
            self._network.link(only)
        elif not self._network.links:
            raise BadInput("measure_no_links")
        chosen = [peer for peer in self._network.links if only in (None, peer)]
        return LinkReports([await self._measured_by_hand(machine) for machine in chosen])

    async def _measured_by_hand(self, machine: MachineId) -> LinkReport:
        link = self._network.links.get(machine)
        report = LinkReport(machine, link.name if link else "")
        try:
            await self._measure_with_retries(machine)
        except AppError as error:
            report = LinkReport(report.id, report.name, sentence(error.reason), error.reason)
            return with_choice(report, machine, self._preferred, self._better)
        return self._described(machine, report)

    async def prefer(self, machine: MachineId, interface: str | None) -> LinkReport:
        """Connect to the machine through this interface from now on, or through the best one if None. Return the
        new measurement or the reason why there is none.

        Raises BadInput if the interface does not exist, and DoesNotFit if the choice cannot be saved.
        """
        await self._check_interfaces()
        if interface is not None:
            require_usable(self._interfaces, interface)
        self._preferred.choose(machine, interface)
        self._follow_choices()
        self._forget_addresses(machine)
        if machine not in self._network.links:
            return with_choice(LinkReport(machine), machine, self._preferred, self._better)
        report = await self._measured_by_hand(machine)
        if report.reason is not None:
            self._measure_soon(machine)
        self._changed()
        return report

    def _follow_choices(self) -> None:
        through, members = self._network.link_manager.chosen_interfaces, self._network.members
        self._preferred.apply(through, self._interfaces, members)

    def _forget_addresses(self, machine: MachineId) -> None:
        self._ways = {key: led for key, led in self._ways.items() if key[0] != machine}
        self._paths_found.pop(machine, None)

    async def _measure_with_retries(self, machine: MachineId) -> None:
        """Measure a link. Retry for a moment while other measurements are running. Raises AppError."""
        self._paths_found.pop(machine, None)
        for tried in range(TRIES_BY_HAND):
            try:
                async with self._one_at_a_time:
                    await self._measure(machine)
                return
            except Busy:
                if tried == TRIES_BY_HAND - 1 or self._network.probes.is_busy:
                    raise
            await asyncio.sleep(BY_HAND_SECONDS * (1 + self._chance.random()))

    async def _measure_due(self, machine: MachineId) -> None:
        """Measure one link that is due, and schedule its next measurement."""
        try:
            async with self._one_at_a_time:
                if machine in self._full_due:
                    await self._measure(machine)
                elif await self._has_changed(machine):
                    rests = 2 * self._intervals.get(machine, EVERY_SECONDS)
                    self._intervals[machine] = min(rests, CALM_SECONDS)
                    self._full_due.add(machine)
                    self._paths_found.pop(machine, None)
                    await self._measure(machine)
            self._retry_waits.pop(machine, None)
            self._plan(machine, self._intervals.get(machine, EVERY_SECONDS))
        except Busy:
            self._retry_later(machine, AGAIN_SECONDS)
        except AppError as error:
            log.info("the link to %s was not measured: %s", machine[:8], error.reason)
            self._full_due.add(machine)  # if the current address no longer works, another one is used
            self._retry_later(machine, FAILED_SECONDS)
        except Exception:  # an unexpected error of one link must not stop the measurement of others
            log.exception("measuring the link to %s failed", machine[:8])
            self._retry_later(machine, FAILED_SECONDS)

    async def _has_changed(self, machine: MachineId) -> bool:
        """Return whether the round-trip time now differs significantly from the last measurement. Raises AppError."""
        known = self._known.get(machine)
        if known is None:
            return True
        now = await measured_paths.round_trips(self._network, machine, self._network.link(machine).address)
        low, high = sorted((now.median_s, known.link.round_trip_s))
        return high > CHANGED_FACTOR * low and high - low > CHANGED_SECONDS

    async def _measure(self, machine: MachineId) -> None:
        """Measure each address of the machine once, and use the best one from now on. Raises AppError.

        If this raises Busy, the next call continues with the remaining addresses.
        """
        present = self._network.link(machine).address
        addresses = [way for way in self._network.addresses(machine) if self._may_use(machine, way)]
        paths = self._paths_found.setdefault(machine, {})
        refusal: AppError | None = None
        addresses_now = list(dict.fromkeys((present, *addresses)))[:WAYS]
        for way in (way for way in addresses_now if way not in paths):
            try:
                paths[way] = await measured_paths.measure(self._network, machine, way)
                self._ways[machine, way] = True
            except Busy as error:
                refusal = error
                break
            except AppError as error:
                refusal = refusal or error
                self._ways[machine, way] = False
        if paths:
            self._take(machine, measured_paths.choose(list(paths.values()), present), present)
        elif refusal and not isinstance(refusal, Busy) and machine in self._network.link_manager.chosen_interfaces:
            self._preferred.mark_unreachable(machine)  # this is reported, and the next best interface is used
            self._follow_choices()
            self._forget_addresses(machine)
            await self._measure(machine)
            return
        if refusal is not None and (isinstance(refusal, Busy) or not paths):
            raise refusal
        self._full_due.discard(machine)
        self._paths_found.pop(machine, None)

    def _take(self, machine: MachineId, best: measured_paths.Path, present: Address) -> None:
        if best.address != present or best.through != self._network.link(machine).through:
            measured_paths.switch_to(self._network, machine, best.address, best.through)
            by = best.through.name if best.through else "the default route"
            log.info("frames for %s are now sent to %s through %s", machine[:8], best.address, by)
        self._note(machine, best)

    def _may_use(self, machine: MachineId, way: Address) -> bool:
        """Return whether to try an address. An address is skipped if the interface that leads to it may be used
        only when chosen.
        """
        if not self._ways.get((machine, way), True):
            return False
        if through := self._network.link_manager.chosen_interfaces.get(machine):
            return through.has(socket.AF_INET6 if ":" in way.host else socket.AF_INET)
        own = own_host_towards(way.host)
        if own is None:
            return False
        by = interface_of_connection(self._interfaces, own, way.host)
        return by is None or by.kind in USED_BY_DEFAULT | {LinkKind.LOOPBACK} or by.name in self._chosen

    def _note(self, machine: MachineId, path: measured_paths.Path) -> None:
        if machine not in self._network.members:
            return
        by = interface_of_connection(self._interfaces, path.own_host, path.address.host)
        link = link_of(path, by).limited_to(self._limit(machine))
        self._known[machine] = LinkRecord(link, str(path.address), time.time())
        save(self._file, self._known)
        self._changed()

    async def _check_interfaces(self) -> None:
        """Read the interfaces, and forget closed links. If interfaces appeared or disappeared, schedule
        measurements of all links.

        Changes that occur often are ignored, such as a new rate of a Wi-Fi interface or a virtual machine's virtual
        cables.
        """
        before, self._interfaces = self._interfaces, await asyncio.to_thread(interfaces)
        if self._serving(before) != self._serving(self._interfaces):
            self._ways.clear()
            self._better.forget()
            self._preferred.try_again()
            for machine in self._network.links if before else ():
                self._measure_soon(machine)
        self._follow_choices()
        for machine in self._due.keys() - self._network.links.keys():
            del self._due[machine]

    def _serving(self, every: tuple[Interface, ...]) -> set[tuple[str, LinkKind, tuple[str, ...]]]:
        return {
            (interface.name, interface.kind, interface.addresses)
            for interface in usable_interfaces(every, self._chosen)
        }

    async def _try_new_addresses(self) -> None:
        """Try newly announced addresses by sending a few kilobytes. If one works, schedule a full measurement."""
        if len(self._ways) > MOST_WAYS_KEPT:  # forged announcements may name many addresses
            self._ways.clear()
        for machine, link in list(self._network.links.items()):
            known = self._known.get(machine)
            if known is None or machine in self._full_due:
                continue  # the link will soon be measured with all its addresses
            lifted = known.link.was_limited_below(self._limit(machine))
            if lifted or known.address != str(link.address):
                self._measure_soon(machine)
            addresses = [way for way in self._network.addresses(machine) if self._may_use(machine, way)]
            new = [way for way in addresses if way != link.address and (machine, way) not in self._ways]
            for way in new[:WAYS]:
                await self._try(machine, way)

    async def _try_better_interfaces(self) -> None:
        """Look for better interfaces for links that use Wi-Fi, a VPN or a virtual network."""
        for machine, link in list(self._network.links.items()):
            known = self.link(machine)
            if known is None or self._preferred.of(machine) is not None:
                self._better.found.pop(machine, None)
                continue
            addresses = dict.fromkeys((link.address, *self._network.addresses(machine)))
            before = self._better.found.get(machine)
            async with self._one_at_a_time:
                await self._better.check(machine, known, self._interfaces, list(addresses)[:WAYS])
            if self._better.found.get(machine) != before:
                self._changed()

    async def _try(self, machine: MachineId, way: Address) -> None:
        try:
            async with self._one_at_a_time:
                await measured_paths.round_trips(self._network, machine, way)
        except Busy:
            return  # the address is tried again at the next look
        except AppError:
            self._ways[machine, way] = False
            return
        self._ways[machine, way] = True
        self._measure_soon(machine)

    def _measure_soon(self, machine: MachineId) -> None:
        self._full_due.add(machine)
        self._paths_found.pop(machine, None)
        self._intervals.pop(machine, None)
        self._plan(machine, SETTLE_SECONDS)

    def _retry_later(self, machine: MachineId, patience: tuple[float, float]) -> None:
        waits = max(patience[0], min(patience[1], 2 * self._retry_waits.get(machine, 0.0)))
        self._retry_waits[machine] = waits
        self._plan(machine, waits)

    def _plan(self, machine: MachineId, seconds: float) -> None:
        """Schedule a measurement after `seconds` plus a random delay. The delay may double a short wait, but
        extends a long one by only about a tenth.
        """
        spread = min(seconds, 0.1 * seconds + 1.0) * self._chance.random()
        self._due[machine] = time.monotonic() + seconds + spread
        self._news.set()
