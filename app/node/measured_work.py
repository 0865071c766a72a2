"""The working memory that stages used on graphics cards, saved in a small JSON file.

It is measured whenever a stage is opened on a card. The next plan for a stage of the same model and sizes, and the
stage's claim, use the measured value instead of an estimate.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.planner.work_shape import Count, Digest, ShapeBytes, WorkShape
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)

FORMAT = 1
MOST_MEASURED = 512
OLD_AFTER_SECONDS = 30 * 24 * 3600.0
# What a stage is thought to need in addition, for each time that its card ran out of memory: the engine allocates more
# while it computes than it reports when it opens a stage. It is tried without after some days, because other programs
# may have taken the memory.
SHORT_STEP_BYTES = 128 << 20
MOST_STEPS = 4
SHORT_SECONDS = 7 * 24 * 3600.0


class MeasuredStage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The working memory of a stage on one card."""

    place: Digest
    shape: WorkShape
    n_bytes: Count
    at: float  # seconds since 1970
    n_short: Annotated[int, Meta(ge=0, le=MOST_STEPS)] = 0  # how often the card ran out of memory
    short_at: float = 0.0


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int = 0
    stages: Annotated[list[MeasuredStage], Meta(max_length=MOST_MEASURED)] = []


def place_of_lender(machine: str, engine: str, device: str) -> str:
    """Return 64 hex digits that identify the cards of another machine, as that machine reports them."""
    return hashlib.sha256(msgspec.json.encode((machine, engine, device))).hexdigest()


class MeasuredWork:
    """The measurements, by place: a card with its driver, library and engine (card_verdicts.py), or another machine.

    changed: called when there is something new to save.
    """

    def __init__(
        self, path: Path, now: Callable[[], float] = time.time, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._path, self._now, self._changed = path, now, changed
        self._stages = self._read()

    def at(self, place: str, *, steps: bool = True) -> list[ShapeBytes]:
        """Return the working memory of each stage measured at a place, in addition to what an engine needs for any
        stage.

        steps: whether to add a step for each time that the card ran out of memory.
        """
        stages = [stage for stage in self._stages.values() if stage.place == place]
        return [ShapeBytes(stage.shape, self._bytes(stage) if steps else stage.n_bytes) for stage in stages]

    def keep(self, place: str, shape: WorkShape, n_bytes: int) -> None:
        """Add a measurement. It replaces the previous measurement of an equal stage at this place."""
        before = self._stages.get((place, shape))
        if before is not None and before.n_bytes == n_bytes and self._now() - before.at < OLD_AFTER_SECONDS / 2:
            return
        n_short, short_at = (before.n_short, before.short_at) if before is not None else (0, 0.0)
        self._put(MeasuredStage(place, shape, n_bytes, self._now(), n_short, short_at))

    def ran_short(self, place: str, shape: WorkShape, n_bytes: int) -> None:
        """Record that a card ran out of memory with a stage that was expected to need `n_bytes`."""
        before = self._stages.get((place, shape)) or MeasuredStage(place, shape, n_bytes, self._now())
        n_short = min(MOST_STEPS, 1 + (before.n_short if self._is_recent(before) else 0))
        self._put(msgspec.structs.replace(before, n_short=n_short, short_at=self._now()))

    def save(self) -> None:
        """Save all measurements. Blocks. A write error is ignored, because everything will be measured again."""
        try:
            write_atomically(self._path, msgspec.json.encode(_File(FORMAT, list(self._stages.values()))))
        except OSError as error:
            log.warning("measured working memory could not be saved in %s: %s", self._path, error)

    def _put(self, stage: MeasuredStage) -> None:
        self._stages.pop((stage.place, stage.shape), None)
        self._stages[stage.place, stage.shape] = stage
        for oldest in list(self._stages)[:-MOST_MEASURED]:
            del self._stages[oldest]
        self._changed()

    def _bytes(self, stage: MeasuredStage) -> int:
        return stage.n_bytes + (SHORT_STEP_BYTES * stage.n_short if self._is_recent(stage) else 0)

    def _is_recent(self, stage: MeasuredStage) -> bool:
        return -SHORT_SECONDS < self._now() - stage.short_at < SHORT_SECONDS

    def _read(self) -> dict[tuple[str, WorkShape], MeasuredStage]:
        stored = read_json_or_default(self._path, _File, "measured working memory")
        if stored.format != FORMAT:
            return {}
        age = self._now
        fresh = (each for each in stored.stages if -OLD_AFTER_SECONDS < age() - each.at < OLD_AFTER_SECONDS)
        return {(each.place, each.shape): each for each in fresh}
