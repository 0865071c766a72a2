"""The runs that make the whole matrix: every kind, by the part of it that makes them, and how many of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.faults import cases, clocks, host, network, proofs, sieges, sleeps, slowed, soak, wiretap
from tests.faults.outcome import Kind

K = TypeVar("K", cases.Case, clocks.Jump, network.Trouble, slowed.Slowed, sleeps.Sleep)
FULL = 300  # of F1, as SAFETY.md 9 has it; the others in proportion


@dataclass(frozen=True, slots=True)
class Part(Generic[K]):
    """Kinds that are made in turn. `share`: their runs, beside those of F1 (SAFETY.md 9)."""

    name: str
    kinds: Sequence[K]
    share: float


def processes() -> list[Part[cases.Case]]:
    return [
        Part("kills", cases.killed(), 1.0),
        *(Part("stops", cases.stopped(seconds), 1 / 3) for seconds in (2.0, 4.0, math.inf)),
        Part("twos", cases.twice(), 1 / 3),
    ]


def slowness() -> Part[slowed.Slowed]:
    return Part("slowed", slowed.kinds(), 1 / 15)


def times() -> Part[clocks.Jump]:
    return Part("clocks", clocks.jumps(), 1 / 15)


def going() -> Part[sleeps.Sleep]:
    return Part("sleeps", sleeps.kinds(), 1 / 15)


def lines() -> list[Part[network.Trouble]]:
    bad = network.bad_lines()
    return [
        Part("silences", network.silences(), 1 / 3),
        Part("bad lines", bad, len(bad) / 6),  # fifty of each
        Part("slow lines", network.slow_lines(), 1 / 15),
        Part("moved", network.moved(), 1 / 6),
    ]


def every_kind() -> set[Kind]:
    """All of it: what a page does not show was not run."""
    kinds = {kind.kind for part in processes() for kind in part.kinds}
    kinds |= {kind.kind for part in lines() for kind in part.kinds}
    kinds |= {kind.kind for part in (slowness(), times()) for kind in part.kinds}
    kinds |= {kind.kind for kind in going().kinds}
    kinds |= {host.KIND, wiretap.KIND, soak.KIND, *(siege.kind for siege in sieges.sieges(1.0))}
    return kinds | {proof.kind for proof in proofs.PROOFS}
