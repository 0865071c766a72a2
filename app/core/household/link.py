"""The link between two machines: its latest measurement, and interfaces that would improve it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from app.core.errors import Fact, Reason


class LinkKind(StrEnum):
    """The medium of a link, if the operating system reports it."""

    LOOPBACK = "loopback"
    ETHERNET = "ethernet"
    WIFI = "wifi"
    THUNDERBOLT = "thunderbolt"
    VPN = "vpn"
    VIRTUAL = "virtual"  # Docker, virtual machines
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """The network interface at one end of a link."""

    kind: LinkKind = LinkKind.UNKNOWN
    interface: str = ""  # its name in the operating system
    negotiated_bits_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A link as measured by this machine over the peer connection, including TLS."""

    round_trip_s: float  # the median round-trip time of an empty frame
    round_trip_p95_s: float
    jitter_s: float  # mean difference between successive round trips
    out_bytes_per_s: float  # from this machine
    in_bytes_per_s: float  # to this machine
    interface: str  # its name on this machine; "" if unknown
    kind: LinkKind
    mtu: int | None
    negotiated_bits_per_s: int | None  # the rate that the network card negotiated with the switch
    far_kind: LinkKind = LinkKind.UNKNOWN  # the kind of interface at the other machine, as it reports it
    far_interface: str = ""
    far_negotiated_bits_per_s: int | None = None
    limit_bytes_per_s: float | None = None  # the owner's limit in each direction; None for no limit

    def limited_to(self, bytes_per_s: float | None) -> Link:
        """Return the link with this rate limit, or without a limit if it is None. No rate exceeds the measured rate."""
        if bytes_per_s is None:
            return replace(self, limit_bytes_per_s=None)
        return replace(
            self,
            out_bytes_per_s=min(self.out_bytes_per_s, bytes_per_s),
            in_bytes_per_s=min(self.in_bytes_per_s, bytes_per_s),
            limit_bytes_per_s=bytes_per_s,
        )

    def was_limited_below(self, bytes_per_s: float | None) -> bool:
        """Return whether the link was measured with a limit below `bytes_per_s`."""
        limit = self.limit_bytes_per_s
        return limit is not None and (bytes_per_s is None or limit < bytes_per_s)


CABLES = (LinkKind.THUNDERBOLT, LinkKind.ETHERNET)


BETTER = {  # for each kind, the kinds that are better, best first
    LinkKind.WIFI: CABLES,
    LinkKind.VPN: (*CABLES, LinkKind.WIFI),
    LinkKind.VIRTUAL: (*CABLES, LinkKind.WIFI),
}


CODES = {
    LinkKind.WIFI: "interface_wifi_beside_cable",
    LinkKind.VPN: "interface_through_vpn",
    LinkKind.VIRTUAL: "interface_through_virtual",
}


def better_ends(used: LinkEnd, candidates: Iterable[LinkEnd]) -> tuple[LinkEnd, ...]:
    """Return the interfaces that are worth trying instead of `used`, best first."""
    order = BETTER.get(used.kind, ())
    better = [end for end in candidates if end.kind in order and end.interface != used.interface]
    better.sort(key=lambda end: (order.index(end.kind), -(end.negotiated_bits_per_s or 0)))
    return tuple(better)


def wrong_interface(machine: str, used: LinkEnd, instead: LinkEnd) -> Reason:
    """Return the reason stating that traffic to `machine` uses a worse interface than necessary."""
    facts: dict[str, Fact] = {"machine": machine, "used": used.interface or "?", "interface": instead.interface}
    return Reason(CODES[used.kind], facts)
