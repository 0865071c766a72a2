"""The verdict on whether a model fits this household now, and the choice of a household's first model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.core.model import Model
from app.core.planner.memory_plan import can_hold, longest_context
from app.core.planner.placement import Candidate, Workload
from app.core.planner.stage_memory import planned_stage
from backends.contract import Layers, Role

MARGIN_BYTES, MARGIN_SHARE = 1 << 30, 0.05  # the memory that stays free on each machine if a model fits well
MARGIN_DIVISOR = 4  # at most one part in four stays free


class VerdictWord(StrEnum):
    """The word shown next to a model's name."""

    FITS = "fits"
    TIGHT = "tight"  # it fits, but leaves too little free memory on some machine
    SMALLER = "smaller context"  # it fits with a smaller context
    TOO_BIG = "too big"


@dataclass(frozen=True, slots=True)
class MemoryNeeds:
    """The memory that the whole model needs on one machine, and the memory that all machines lend together."""

    weight_bytes: int
    kv_bytes: int
    work_bytes: int
    lends_bytes: int

    @property
    def needs_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.work_bytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict in one word, with the numbers that explain it."""

    word: VerdictWord
    spare_bytes: int = 0  # if it fits: the free memory of all machines
    # if it does not fit: the missing bytes, or 0 if the total is enough but in parts that are too small
    short_bytes: int = 0
    context: int = 0  # the context that fits
    parts: MemoryNeeds | None = None  # set unless the verdict is based on a placement


def margin_bytes(lends_bytes: int) -> int:
    """Return how many bytes to leave free: 1 GiB or 5 %, whichever is more, but at most a quarter of `lends_bytes`."""
    return min(max(MARGIN_BYTES, int(MARGIN_SHARE * lends_bytes)), lends_bytes // MARGIN_DIVISOR)


def verdict_of(machines: Iterable[tuple[int, int]]) -> Verdict:
    """Return the verdict on a placement that fits.

    `machines` contains, for each machine, the bytes that the placement needs and the bytes that the machine lends.
    """
    roomy, spare = True, 0
    for needs, lends in machines:
        roomy = roomy and lends - needs >= margin_bytes(lends)
        spare += lends - needs
    return Verdict(VerdictWord.FITS if roomy else VerdictWord.TIGHT, spare_bytes=spare)


def judge(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> Verdict:
    """Judge whether the model fits, without planning its placement."""
    whole = planned_stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    used = [host, *lenders] if model.cuts.boundaries else [host]
    free = sum(machine.lends_bytes for machine in used)
    parts = MemoryNeeds(whole.weight_bytes, whole.kv_bytes, whole.work_bytes, free)
    if parts.needs_bytes <= host.lends_bytes:  # no split is needed if one machine can hold it
        verdict = verdict_of([(parts.needs_bytes, host.lends_bytes)])
        return replace(verdict, parts=parts)
    if can_hold(host, lenders, model, workload):
        kept, *lenders_kept = [
            replace(machine, lends_bytes=machine.lends_bytes - margin_bytes(machine.lends_bytes))
            for machine in (host, *lenders)
        ]
        roomy = can_hold(kept, lenders_kept, model, workload)
        word, spare = VerdictWord.FITS if roomy else VerdictWord.TIGHT, max(0, free - parts.needs_bytes)
        return Verdict(word, spare_bytes=spare, parts=parts)
    short = max(0, parts.needs_bytes - free)
    context = longest_context(host, lenders, model, workload)
    word = VerdictWord.SMALLER if context else VerdictWord.TOO_BIG
    return Verdict(word, short_bytes=short, context=context, parts=parts)


READING_TOK_S = 6.0  # people read faster than slower answers arrive


READ_BYTES = 6 << 30  # the limit per token if no speed was measured: reading more is slow without a graphics card


@dataclass(frozen=True, slots=True)
class StarterOption:
    """A model that is suggested as a household's first one."""

    key: str
    word: VerdictWord
    read_bytes: int  # bytes of weights read for each token
    tok_s: float | None  # None if not measured on these machines

    @property
    def is_brisk(self) -> bool:
        """Return whether the model answers at least as fast as people read."""
        if self.tok_s is not None:
            return self.tok_s >= READING_TOK_S
        return self.read_bytes <= READ_BYTES

    @property
    def suits(self) -> bool:
        """Return whether the model fits with memory to spare and is brisk."""
        return self.word is VerdictWord.FITS and self.is_brisk


def choose_starter(options: Sequence[StarterOption]) -> StarterOption | None:
    """Return the recommended first model: the first that fits and is fast enough, otherwise the smallest that fits.

    Return None if none fits with memory to spare.
    """
    fitting = [option for option in options if option.word is VerdictWord.FITS]
    brisk = next((option for option in fitting if option.suits), None)
    return brisk or min(fitting, key=lambda option: option.read_bytes, default=None)
