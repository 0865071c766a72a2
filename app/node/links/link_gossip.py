"""The link measurements that the machines of a household report to each other. They are displayed but never used for
planning.

Each machine measures and reports only its own links. Together, the reports cover all links.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Set

from app.api.snapshot import LinkMeasurement
from app.core.household.link import Link
from app.core.ids import MachineId
from app.network.messages import (
    MAX_BITS,
    MAX_INTERFACE_CHARACTERS,
    MAX_LISTED_MACHINES,
    MAX_RATE,
    MAX_SECONDS,
    MAX_STEP_SECONDS,
    LinksMeasured,
    MeasuredLink,
)
from app.node.links.link_registry import LinkRecord, with_measurement

Key = tuple[tuple[MachineId, float], ...]


def change_key(measured: Mapping[MachineId, LinkRecord]) -> Key:
    """Return a key that changes when there is something new to report. The age of a measurement does not change it."""
    return tuple(sorted((key, known.measured_at) for key, known in measured.items()))


def links_message(measured: Mapping[MachineId, LinkRecord], now: float) -> LinksMeasured:
    """Return the message about this machine's links. It states ages relative to `now`, because the machines' clocks
    differ."""
    chosen = sorted(measured.items())[:MAX_LISTED_MACHINES]
    return LinksMeasured(links=[_measured_link(key, known, now) for key, known in chosen])


class LinkGossip:
    """The links between other machines, as these machines report them."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._measured_link: dict[MachineId, dict[MachineId, LinkRecord]] = {}

    def receive(self, teller: MachineId, message: LinksMeasured, members: Set[MachineId]) -> None:
        """Save the links that `teller` reports. Links to machines outside the household are ignored."""
        now = self._clock()
        by_machine = {MachineId(link.machine): _known(link, now) for link in message.links}
        self._measured_link = {key: links for key, links in self._measured_link.items() if key in members}
        self._measured_link[teller] = {key: known for key, known in by_machine.items() if key in members - {teller}}

    def snapshot(self, here: Collection[MachineId]) -> dict[str, dict[str, LinkMeasurement]]:
        """Return the latest measurement of each link, by the measuring machine and the machine at the other end.

        here: the other machines that are online.
        """
        newest: dict[frozenset[MachineId], tuple[MachineId, MachineId, LinkRecord]] = {}
        for teller in sorted(self._measured_link.keys() & set(here)):
            for far, known in self._measured_link[teller].items():
                ends = frozenset((teller, far))
                before = newest.get(ends)
                if far in here and (before is None or before[2].measured_at < known.measured_at):
                    newest[ends] = teller, far, known
        result: dict[str, dict[str, LinkMeasurement]] = {}
        for teller, far, known in newest.values():
            result.setdefault(teller, {})[far] = with_measurement(LinkMeasurement(), known)
        return result


def _measured_link(machine: MachineId, known: LinkRecord, now: float) -> MeasuredLink:
    link = known.link
    return MeasuredLink(
        machine=machine,
        age_s=min(MAX_SECONDS, max(0.0, now - known.measured_at)),
        round_trip_s=min(MAX_STEP_SECONDS, link.round_trip_s),
        round_trip_p95_s=min(MAX_STEP_SECONDS, link.round_trip_p95_s),
        out_bytes_per_s=min(MAX_RATE, link.out_bytes_per_s),
        in_bytes_per_s=min(MAX_RATE, link.in_bytes_per_s),
        interface=_short(link.interface),
        kind=link.kind,
        negotiated_bits_per_s=_bits(link.negotiated_bits_per_s),
        far_interface=_short(link.far_interface),
        far_kind=link.far_kind,
        far_negotiated_bits_per_s=_bits(link.far_negotiated_bits_per_s),
    )


def _known(measured: MeasuredLink, now: float) -> LinkRecord:
    """Convert a reported link. Its time, on this machine's clock, is rounded to seconds so that a repeated report is
    not treated as new."""
    link = Link(
        round_trip_s=measured.round_trip_s,
        round_trip_p95_s=measured.round_trip_p95_s,
        jitter_s=0.0,
        out_bytes_per_s=measured.out_bytes_per_s,
        in_bytes_per_s=measured.in_bytes_per_s,
        interface=_short(measured.interface),
        kind=measured.kind,
        mtu=None,
        negotiated_bits_per_s=measured.negotiated_bits_per_s,
        far_kind=measured.far_kind,
        far_interface=_short(measured.far_interface),
        far_negotiated_bits_per_s=measured.far_negotiated_bits_per_s,
    )
    return LinkRecord(link, "", float(round(now - measured.age_s)))


def _short(name: str) -> str:
    """Return the name of an interface, shortened and without unprintable characters."""
    return "".join(filter(str.isprintable, name))[:MAX_INTERFACE_CHARACTERS]


def _bits(rate: int | None) -> int | None:
    return rate if rate is not None and 0 <= rate <= MAX_BITS else None
