"""The current use of a graphics card, divided into our own use and that of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class CardReading:
    """The current state of a graphics card. A value is None if it is unknown.

    pci: the card's address on the PCI bus. is_discrete: whether it has its own memory. busy_percent: the use by all
    programs together. others_percent, others_bytes: the use by programs other than this node and its workers.
    """

    pci: str = ""
    is_discrete: bool = False
    celsius: float | None = None
    busy_percent: float | None = None
    others_percent: float | None = None
    others_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DriverReport:
    """A driver's report about a card. A value is None if the driver does not report it.

    used_bytes: the memory used by all programs. holders: the processes that have the card open. percents: the use by
    each process; a process without an entry uses nothing. held_bytes: the memory that each process uses.
    """

    pci: str
    is_discrete: bool
    celsius: float | None = None
    busy_percent: float | None = None
    used_bytes: int | None = None
    holders: frozenset[int] = frozenset()
    percents: Mapping[int, float] | None = None
    held_bytes: Mapping[int, int | None] = field(default_factory=dict)


def attributed(report: DriverReport, own_pids: frozenset[int], *, computes: bool) -> CardReading:
    """Return a reading that separates the use by other programs from our own.

    While none of our processes has the card open, others cause all of its use. While one of them does, only the use
    that the driver attributes to other processes counts: the total means nothing then, because a worker keeps a card
    fully busy. If our layers are on the card but the driver does not list our processes, as in a container with its
    own process IDs, nothing is known about the use by others.

    computes: whether layers of this node are on the card.
    """
    reading = CardReading(report.pci, report.is_discrete, report.celsius, report.busy_percent)
    ours = report.holders & own_pids
    if not ours:
        if computes:
            return reading
        every = None if report.percents is None else sum(report.percents.values())
        percent = every if report.busy_percent is None else report.busy_percent
        return replace(reading, others_percent=_capped(percent), others_bytes=report.used_bytes)
    percent = None
    if report.percents is not None:
        percent = sum(percent for pid, percent in report.percents.items() if pid not in own_pids)
    held = [report.held_bytes.get(pid) for pid in ours]
    own_bytes = [n_bytes for n_bytes in held if n_bytes is not None]
    others_bytes = None
    if report.used_bytes is not None and len(own_bytes) == len(held):
        others_bytes = max(0, report.used_bytes - sum(own_bytes))
    return replace(reading, others_percent=_capped(percent), others_bytes=others_bytes)


def _capped(percent: float | None) -> float | None:
    return None if percent is None else min(100.0, max(0.0, percent))
