"""Benchmarks that were made: one small file of the window's own, newest first."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from app.decoding import decode

Json = dict[str, Any]

MOST_KEPT = 50
MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark: what was measured, on what, beside its forecast.

    results: as app/core/bench.py makes them, one for each number of answers at once.
    one: the same of the host alone, where it was measured: `results` and `forecast`.
    """

    at: float  # Unix time
    version: str
    extent: str
    model: str
    machines: tuple[str, ...]
    shape: str
    context: int
    prompt_tokens: int
    output_tokens: int
    forecast: Json | None
    results: tuple[Json, ...]
    one: Json | None = None

    @property
    def alone(self) -> Json:
        """The figures of one answer at a time."""
        return self.results[0]

    def mean(self, name: str) -> float | None:
        """Of one answer at a time: `ttft_s`, `decode_tok_s`, `prefill_tok_s` or `total_tok_s`."""
        found = self.alone.get(name)
        return None if found is None else float(found["mean"])

    @property
    def energies(self) -> list[tuple[int, float, float]]:
        """Answers at once, joules for a token, watts: where all machines' systems tell what they draw."""
        return _energies(self.results)

    @property
    def one_energies(self) -> list[tuple[int, float, float]]:
        """As `energies`, of the host alone."""
        return _energies(self.one["results"] if self.one else ())

    def times(self, name: str) -> float | None:
        """How many times the figure of the host alone. None: that was not measured."""
        found = self.one["results"][0].get(name) if self.one else None
        real = self.mean(name)
        return None if not found or not real else real / float(found["mean"])

    def one_mean(self, name: str) -> float | None:
        """As `mean`, of the host alone."""
        found = self.one["results"][0].get(name) if self.one else None
        return float(found["mean"]) if found else None

    def beyond(self, name: str) -> float | None:
        """Measured against forecast, as a share: 0.1 is a tenth more than said. None: no forecast."""
        told, real = (self.forecast or {}).get(name), self.mean(name)
        if not told or not real:
            return None
        return float(real / told) - 1


class BenchStore:
    """What cannot be read is as if it had never been made; it is kept aside."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "benchmarks.json"
        self.kept: list[Bench] = self._read()

    def add(self, made: Bench) -> None:
        """Keep one more. Raises OSError."""
        self.keep([made, *self.kept])

    def keep(self, kept: list[Bench]) -> None:
        """Keep these, and no others. Raises OSError; they are still known until the end."""
        self.kept = kept[:MOST_KEPT]
        self._write()

    def _read(self) -> list[Bench]:
        try:
            with self._file.open("rb") as source:
                data = source.read(MOST_BYTES + 1)
            found = [_bench(one) for one in decode(data, _Kept).benchmarks]
        except FileNotFoundError:
            return []
        except (OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            self._set_aside()
            return []
        return found[:MOST_KEPT]

    def _set_aside(self) -> None:
        with suppress(OSError):  # else it is overwritten by the next one
            os.replace(self._file, self._file.with_suffix(".damaged"))

    def _write(self) -> None:
        content = json.dumps({"benchmarks": [_json(one) for one in self.kept]})
        part = self._file.with_suffix(".part")
        part.write_text(content, encoding="utf-8")
        os.replace(part, self._file)


def _energies(results: Sequence[Json]) -> list[tuple[int, float, float]]:
    return [
        (int(one["streams"]), float(drew["joules_per_token"]), float(drew["watts"]))
        for one in results
        if (drew := one.get("energy"))
    ]


def _json(one: Bench) -> Json:
    return {name: getattr(one, name) for name in Bench.__slots__}


class _Kept(msgspec.Struct):
    """The file."""

    benchmarks: list[Json]


def _bench(read: Json) -> Bench:
    """Raises ValueError, KeyError or TypeError for anything else."""
    made = Bench(
        **{
            **read,
            "at": float(read["at"]),
            "results": tuple(read["results"]),
            "machines": tuple(map(str, read["machines"])),
        }
    )
    if not made.results or not all(isinstance(one["stages"], list) for one in made.results):
        raise ValueError("a benchmark without results")
    for name in ("ttft_s", "decode_tok_s", "prefill_tok_s", "total_tok_s"):
        made.mean(name)
        made.beyond(name)
        made.times(name)
    _ = made.energies, made.one_energies
    return made
