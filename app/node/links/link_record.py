"""What was measured of a link, and when: kept in a file, told as JSON."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.machine.interfaces import Interface
from app.machine.json_state import read_or
from app.machine.paths import write_atomically
from app.network import measured_paths

log = logging.getLogger(__name__)

Json = dict[str, Any]


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One link as it was measured: to which address, and when (Unix time)."""

    link: Link
    address: str
    measured_at: float


def link_of(path: measured_paths.Path, by: Interface | None) -> Link:
    """A measured path and the interface that carries it, as the planner takes it."""
    found = path.measured
    return Link(
        round_trip_s=found.round_trips.median_s,
        round_trip_p95_s=found.round_trips.p95_s,
        jitter_s=found.round_trips.jitter_s,
        out_bytes_per_s=found.out_bytes_per_s,
        in_bytes_per_s=found.in_bytes_per_s,
        interface=by.name if by else "",
        kind=by.kind if by else LinkKind.UNKNOWN,
        mtu=by.mtu if by else None,
        negotiated_bits_per_s=by.negotiated_bits_per_s if by else None,
        far_kind=found.far.kind,
        far_interface=found.far.interface,
        far_negotiated_bits_per_s=found.far.negotiated_bits_per_s,
    )


def known_json(known: Known) -> Json:
    """Every figure of a measured link, and when it was measured."""
    link = known.link
    return {
        "measured_at": round(known.measured_at, 3),
        "measured_address": known.address,
        "measured_round_trip_seconds": link.round_trip_s,
        "round_trip_p95_seconds": link.round_trip_p95_s,
        "jitter_seconds": link.jitter_s,
        "out_bytes_per_s": link.out_bytes_per_s,
        "in_bytes_per_s": link.in_bytes_per_s,
        "interface": link.interface,
        "kind": str(link.kind),
        "far_kind": str(link.far_kind),
        "far_interface": link.far_interface,
        "far_negotiated_bits_per_s": link.far_negotiated_bits_per_s,
        "mtu": link.mtu,
        "negotiated_bits_per_s": link.negotiated_bits_per_s,
    }


def load(file: Path) -> dict[MachineId, Known]:
    """What an earlier start measured. A damaged file is no loss: links are measured again."""
    read = read_or(file, dict[str, Known], "measured links")
    return {MachineId(machine): known for machine, known in read.items() if is_sound(known)}


def save(file: Path, known: Mapping[MachineId, Known]) -> None:
    """For the next start, which would else measure them again."""
    try:
        write_atomically(file, msgspec.json.encode(known))
    except OSError as error:
        log.warning("the measured links cannot be kept: %s", error)


def is_sound(known: Known) -> bool:
    """Whether these figures can have been measured."""
    link = known.link
    rates = link.out_bytes_per_s, link.in_bytes_per_s
    times = link.round_trip_s, link.round_trip_p95_s, link.jitter_s, known.measured_at
    return all(math.isfinite(x) and x > 0 for x in rates) and all(math.isfinite(x) and x >= 0 for x in times)
