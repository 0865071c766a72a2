"""Journal entries and benchmarks for tests."""

from __future__ import annotations

from typing import Any

from app.api.computer import AnswerEntry
from app.api.responses import ForecastSpeed
from app.decoding import convert
from app.gui.activity.bench_store import Bench, Result

Json = dict[str, Any]


def stage(machine: str, first: int, last: int, busy_s: float, wait_s: float) -> Json:
    return {
        "machine": machine, "first": first, "last": last, "busy_s": busy_s, "wait_s": wait_s,
        "bytes_out": 10, "bytes_in": 20, "steps": 3,
    }  # fmt: skip


STAGES = [
    stage("den", 0, 2, 0.2, 0.0), stage("attic", 2, 6, 1.0, 0.2), stage("den", 6, 8, 0.3, 0.0),
]  # fmt: skip


def answer(**changed: Any) -> AnswerEntry:
    """An answer of the journal."""
    plain = {
        "number": 1, "at": 1_700_000_000.0, "seconds": 3.0, "model": "guide", "end": "stop",
        "tokens": 20, "alone": True, "prompt_tokens": 5, "reused_tokens": 0, "queued_s": 0.0,
        "ttft_s": 0.5, "decode_tok_s": 10.0, "forecast_ttft_s": 0.5, "forecast_tok_s": 10.0,
        "stages": STAGES,
    }  # fmt: skip
    return convert(plain | changed, AnswerEntry)


def spread(mean: float, deviation: float | None = 0.1) -> Json:
    return {"mean": mean, "deviation": deviation, "low": mean, "high": mean, "runs": 3}


def figures(streams: int = 1, tok_s: float = 20.0, **changed: Any) -> Result:
    """The figures of three runs."""
    plain = {
        "streams": streams, "runs": 3, "ttft_s": spread(0.5), "ttft_p99_s": 0.9,
        "prefill_tok_s": spread(200.0), "decode_tok_s": spread(tok_s), "total_tok_s": spread(40.0),
        "tokens": [64], "reused_tokens": 0, "recoveries": 0, "stages": STAGES,
    }  # fmt: skip
    return convert(plain | changed, Result)


def bench(**changed: Any) -> Bench:
    """A benchmark on two machines."""
    plain: Json = {
        "at": 1_700_000_000.0, "version": "1.0", "extent": "quick", "model": "guide",
        "machines": ["den", "attic"], "shape": "split", "context": 1024, "prompt_tokens": 128,
        "output_tokens": 64, "forecast": ForecastSpeed(0.4, 25.0), "results": [figures()],
    }  # fmt: skip
    return Bench(**plain | changed)
