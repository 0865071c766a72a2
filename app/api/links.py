"""Links between machines, as they were measured."""

from __future__ import annotations

import msgspec

from app.core.errors import Reason


class LinkMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a link; all None or empty before it is measured."""

    measured_at: float | None = None
    measured_address: str | None = None
    measured_round_trip_seconds: float | None = None
    round_trip_p95_seconds: float | None = None
    jitter_seconds: float | None = None
    out_bytes_per_s: float | None = None
    in_bytes_per_s: float | None = None
    interface: str = ""
    kind: str = ""
    far_kind: str = ""
    far_interface: str = ""
    far_negotiated_bits_per_s: int | None = None
    mtu: int | None = None
    negotiated_bits_per_s: int | None = None


class LinkInterfaces(LinkMeasurement, frozen=True, kw_only=True):
    """A link with the interface its owner prefers, and the one that would be better."""

    preferred: str | None = None
    preferred_reason: str | None = None  # why it is not used
    preferred_reason_facts: Reason | None = None
    better_interface: str | None = None
    better_reason: str | None = None
    better_reason_facts: Reason | None = None


class Link(LinkInterfaces, frozen=True):
    """A link that is up."""

    round_trip_seconds: float | None = None  # of heartbeats
    address: str | None = None
    version: str = ""  # of the far end's Poolhouse


class LinkReport(LinkInterfaces, frozen=True):
    """A link that was measured by hand, or why it was not."""

    id: str = ""
    name: str = ""
    reason: str | None = None
    reason_facts: Reason | None = None


class LinkReports(msgspec.Struct, frozen=True):
    """Answer of `POST /measure`."""

    links: list[LinkReport] = []
