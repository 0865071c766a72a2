"""What the path between two machines was last measured to do. Pure facts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LinkKind(StrEnum):
    """What carries a link, as far as the system tells."""

    LOOPBACK = "loopback"
    ETHERNET = "ethernet"
    WIFI = "wifi"
    THUNDERBOLT = "thunderbolt"
    VPN = "vpn"
    VIRTUAL = "virtual"  # docker, virtual machines
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class End:
    """The interface at one end of a link."""

    kind: LinkKind = LinkKind.UNKNOWN
    interface: str = ""  # as the system there calls it
    negotiated_bits_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One link, seen from this machine. Measured over the peer connection itself, TLS and all."""

    round_trip_s: float  # median: an empty frame, there and back
    round_trip_p95_s: float
    jitter_s: float  # mean difference between neighbouring round trips
    out_bytes_per_s: float  # from this machine
    in_bytes_per_s: float  # to this machine
    interface: str  # as the system calls it here; "" where it does not tell
    kind: LinkKind
    mtu: int | None
    negotiated_bits_per_s: int | None  # what the card and the switch agreed on
    far_kind: LinkKind = LinkKind.UNKNOWN  # at the other machine, by its own word
    far_interface: str = ""
    far_negotiated_bits_per_s: int | None = None
