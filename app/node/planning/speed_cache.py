"""The measured speeds of this machine, kept by engine build, hardware and shape of the model."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.model_shape import ModelShape
from app.core.planner.speed_estimates import Speed
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)

FORMAT = 4  # higher when the measurement itself changes
MOST_ENTRIES = 256
OLD_AFTER_S = 14 * 24 * 3600.0  # drivers, cooling and other programs change
OLD_DISTURBED_S = 600.0  # measured beside the work of other programs, which may be over by then
FAR_OFF = 2.0  # a forecast this many times too high or low was made with numbers that hold no more

Key = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Seconds = Annotated[float, Meta(ge=0, le=1e4)]
SomeSeconds = Annotated[float, Meta(gt=0, le=1e4)]


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A Speed with the bounds of each number."""

    measured_at: Annotated[float, Meta(ge=0)]  # seconds since 1970
    layer_s: SomeSeconds
    layer_row_s: Seconds
    position_s: Seconds
    chunk_s: SomeSeconds
    chunk_position_s: Seconds
    step_s: Seconds
    head_s: Seconds
    head_row_s: Seconds
    disturbed: bool = False  # other programs used the processor

    def speed(self) -> Speed:
        return Speed(
            self.layer_s,
            self.layer_row_s,
            self.position_s,
            self.chunk_s,
            self.chunk_position_s,
            self.step_s,
            self.head_s,
            self.head_row_s,
        )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int = 0
    entries: Annotated[dict[Key, _Kept], Meta(max_length=MOST_ENTRIES)] = {}


@dataclass(frozen=True, slots=True)
class Setup:
    """The facts beside the model that a speed depends on."""

    engine: str  # build and features, as app/machine/hardware/engines.py tells them
    device: str
    threads: int
    batch_rows: int


def key_of(setup: Setup, shape: ModelShape, *, head: bool) -> str:
    """Return the key of a measurement: 64 hex digits that change with anything the speed depends on."""
    facts = (FORMAT, setup.engine, setup.device, setup.threads, setup.batch_rows, head, shape)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


def far_off(forecast_s: float, measured_s: float) -> bool:
    """Return whether a forecast missed so far that the speeds behind it must be measured again."""
    low, high = sorted((forecast_s, measured_s))
    return high > FAR_OFF * low


class SpeedCache:
    """The measured speeds, in a small JSON file. Unreadable or old entries count as never measured."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        self._entries = self._read()

    def get(self, key: str) -> Speed | None:
        """Return the measured speed, unless it is too old."""
        kept = self._entries.get(key)
        if kept is None:
            return None
        most_s = OLD_DISTURBED_S if kept.disturbed else OLD_AFTER_S
        if not -most_s < self._now() - kept.measured_at < most_s:
            return None
        return kept.speed()

    def was_disturbed(self, key: str) -> bool:
        """Return whether the known speed was measured while other programs used the processor."""
        return key in self._entries and self._entries[key].disturbed

    def last(self, key: str) -> Speed | None:
        """Return the last speed measured, however old, even if it is doubted."""
        kept = self._entries.get(key)
        return kept.speed() if kept else None

    def keep(self, key: str, speed: Speed, *, disturbed: bool = False) -> None:
        """Save a speed. A disk that refuses it costs another measurement, and nothing else."""
        self._entries.pop(key, None)
        names = set(_Kept.__struct_fields__) - {"measured_at", "disturbed"}
        fields = {name: getattr(speed, name) for name in names}
        self._entries[key] = _Kept(measured_at=self._now(), disturbed=disturbed, **fields)
        for oldest in list(self._entries)[:-MOST_ENTRIES]:
            del self._entries[oldest]
        self._write()

    def doubt(self, key: str) -> None:
        """Mark a speed as very old."""
        kept = self._entries.get(key)
        if kept is not None and kept.measured_at:
            self._entries[key] = msgspec.structs.replace(kept, measured_at=0)
            self._write()

    def _read(self) -> dict[str, _Kept]:
        stored = read_json_or_default(self._path, _File, "measured speeds")
        return dict(stored.entries) if stored.format == FORMAT else {}

    def _write(self) -> None:
        try:
            write_atomically(self._path, msgspec.json.encode(_File(FORMAT, self._entries)))
        except OSError as error:
            log.warning("speeds could not be kept in %s: %s", self._path, error)
