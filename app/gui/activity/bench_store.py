"""Storage of benchmark results in a small JSON file, newest first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from app.api.responses import ForecastSpeed
from app.core.bench import Spread
from app.decoding import decode

MOST_KEPT = 50
MOST_BYTES = 4 << 20
FigureName = Literal["ttft_s", "decode_tok_s", "prefill_tok_s", "total_tok_s"]


class StageMean(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one stage per answer, averaged over all answers."""

    machine: str
    first: int
    last: int  # exclusive
    busy_s: float
    wait_s: float
    bytes_in: float
    bytes_out: float
    steps: float = 0.0


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """The total power draw and energy use of all machines."""

    watts: float
    joules_per_token: float
    watt_hours: float = 0.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of all rounds at one concurrency level, as computed by `app.core.bench.figures`."""

    streams: int  # simultaneous answers
    runs: int
    stages: list[StageMean]
    ttft_s: Spread | None = None
    ttft_p99_s: float | None = None
    prefill_tok_s: Spread | None = None
    decode_tok_s: Spread | None = None
    total_tok_s: Spread | None = None
    tokens: list[int] = []
    reused_tokens: int = 0
    recoveries: int = 0
    node_ttft_s: Spread | None = None
    node_decode_tok_s: Spread | None = None
    energy: Energy | None = None  # None unless every machine reports its power draw

    def mean(self, name: FigureName) -> float | None:
        """Return the mean of a metric, or None if it was not measured."""
        measured: Spread | None = getattr(self, name)
        return measured.mean if measured else None


class HostAlone(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the same benchmark when run on the host alone."""

    results: list[Result]
    forecast: ForecastSpeed | None = None


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark with its model, machines, settings, results and forecast."""

    at: float  # Unix time
    version: str
    extent: str
    model: str
    machines: list[str]
    shape: str
    context: int
    prompt_tokens: int
    output_tokens: int
    results: list[Result]  # ordered by concurrency, starting with one stream
    forecast: ForecastSpeed | None = None  # for answers that ran one at a time
    one: HostAlone | None = None  # results of the host alone, if measured

    def __post_init__(self) -> None:
        if not self.results or (self.one is not None and not self.one.results):
            raise ValueError("a benchmark without results")

    @property
    def single(self) -> Result:
        """The result at concurrency 1."""
        return self.results[0]

    def mean(self, name: FigureName) -> float | None:
        """Return the mean of a metric at concurrency 1, or None if it was not measured."""
        return self.single.mean(name)

    def host_mean(self, name: FigureName) -> float | None:
        """Return the mean of a metric on the host alone, or None if it was not measured."""
        return self.one.results[0].mean(name) if self.one else None

    def speedup(self, name: FigureName) -> float | None:
        """Return the ratio of a metric to its value on the host alone, or None if either was not measured."""
        measured, host = self.mean(name), self.host_mean(name)
        return measured / host if measured and host else None

    def forecast_error(self, name: Literal["ttft_s", "decode_tok_s"]) -> float | None:
        """Return the relative deviation from the forecast (0.1 means 10 % higher), or None without a forecast."""
        forecast: float | None = getattr(self.forecast, name, None)
        measured = self.mean(name)
        return measured / forecast - 1 if forecast and measured else None


class _File(msgspec.Struct):
    benchmarks: list[Bench]


class BenchStore:
    """The file of stored benchmarks. An unreadable file is renamed, and the store starts empty."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "benchmarks.json"
        self.benchmarks: list[Bench] = self._read()

    def add(self, bench: Bench) -> None:
        """Store a benchmark as the newest one. Raises OSError."""
        self.replace_all([bench, *self.benchmarks])

    def replace_all(self, benches: Sequence[Bench]) -> None:
        """Replace all stored benchmarks. Raises OSError, but even then changes the list in memory."""
        self.benchmarks = list(benches[:MOST_KEPT])
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(_File(self.benchmarks)))
        os.replace(part, self._file)

    def _read(self) -> list[Bench]:
        try:
            with self._file.open("rb") as source:
                data = source.read(MOST_BYTES + 1)
            return decode(data, _File).benchmarks[:MOST_KEPT]
        except FileNotFoundError:
            return []
        except (OSError, ValueError):
            with suppress(OSError):  # on failure, the next benchmark overwrites it
                os.replace(self._file, self._file.with_suffix(".damaged"))
            return []
