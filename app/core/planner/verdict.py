"""Whether a model fits this household now, in one word and with its numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.core.model import Model
from app.core.planner.placement import Candidate, Workload
from app.core.planner.shortage import can_hold, longest_context
from app.core.planner.stage_memory import stage
from backends.contract import Layers, Role

KEEP_BYTES, KEEP_SHARE = 1 << 30, 0.05  # stay free on each machine where a model fits well
KEEP_MOST = 4  # at most this part of it: a fourth


class Word(StrEnum):
    """What stands beside a model's name."""

    FITS = "fits"
    TIGHT = "tight"  # it fits, and some machine keeps less free than is good
    SMALLER = "smaller context"  # it fits with the context of the verdict
    TOO_BIG = "too big"


@dataclass(frozen=True, slots=True)
class Parts:
    """What the whole model takes on one machine, and what all machines lend."""

    weight_bytes: int
    kv_bytes: int
    work_bytes: int
    lends_bytes: int

    @property
    def needs_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.work_bytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word, and the number that belongs to it."""

    word: Word
    spare_bytes: int = 0  # over all machines, when it fits
    short_bytes: int = 0  # missing, when it does not; 0: there is enough, but in too small parts
    context: int = 0  # that fits
    parts: Parts | None = None  # of the whole model, when it was summed up and not placed


def keeps_bytes(lends_bytes: int) -> int:
    """What is to stay free of so much: a GiB and 5 %, of small amounts a fourth."""
    return min(max(KEEP_BYTES, int(KEEP_SHARE * lends_bytes)), lends_bytes // KEEP_MOST)


def verdict_of(machines: Iterable[tuple[int, int]]) -> Verdict:
    """Of a placement that fits: bytes that each machine needs and lends."""
    roomy, spare = True, 0
    for needs, lends in machines:
        roomy = roomy and lends - needs >= keeps_bytes(lends)
        spare += lends - needs
    return Verdict(Word.FITS if roomy else Word.TIGHT, spare_bytes=spare)


def judge(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> Verdict:
    """Whether there is room for it at all, without placing it."""
    whole = stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    used = [host, *lenders] if model.boundaries else [host]
    free = sum(machine.lends_bytes for machine in used)
    parts = Parts(whole.weight_bytes, whole.kv_bytes, whole.work_bytes, free)
    if parts.needs_bytes <= host.lends_bytes:  # no split where one machine can hold it
        found = verdict_of([(parts.needs_bytes, host.lends_bytes)])
        return replace(found, parts=parts)
    if can_hold(host, lenders, model, workload):
        kept, *others = [
            replace(one, lends_bytes=one.lends_bytes - keeps_bytes(one.lends_bytes)) for one in (host, *lenders)
        ]
        roomy = can_hold(kept, others, model, workload)
        word, spare = Word.FITS if roomy else Word.TIGHT, max(0, free - parts.needs_bytes)
        return Verdict(word, spare_bytes=spare, parts=parts)
    short = max(0, parts.needs_bytes - free)
    context = longest_context(host, lenders, model, workload)
    word = Word.SMALLER if context else Word.TOO_BIG
    return Verdict(word, short_bytes=short, context=context, parts=parts)
