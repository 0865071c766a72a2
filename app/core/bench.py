"""A benchmark's requests and statistics, and the load requests that restore the original placement afterwards."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

WORK_FIELDS = ("busy_s", "wait_s", "bytes_in", "bytes_out", "steps")
BYTE_TOKENS = (3, 259)  # token ids that every byte-level vocabulary has, used if the size of the vocabulary is unknown
WARM_UP_TOKENS = 16
GREEDY = {"temperature": 0.0, "seed": 0}


class StageHolder(Protocol):
    """A machine that holds a stage. `machine` is its name."""

    @property
    def id(self) -> str: ...
    @property
    def machine(self) -> str: ...


class StageWork(Protocol):
    """The work of one stage for one answer. `machine` is the id or the name of the stage's machine."""

    @property
    def machine(self) -> str: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def busy_s(self) -> float: ...
    @property
    def wait_s(self) -> float: ...
    @property
    def bytes_in(self) -> float: ...
    @property
    def bytes_out(self) -> float: ...
    @property
    def steps(self) -> float: ...


class Answer(Protocol):
    """The final message of an answer, as the node reports it."""

    @property
    def token_ids(self) -> Sequence[int]: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def reused_tokens(self) -> int: ...
    @property
    def ttft_s(self) -> float | None: ...
    @property
    def decode_tok_s(self) -> float | None: ...
    @property
    def recoveries(self) -> int: ...
    @property
    def placement(self) -> Sequence[StageHolder]: ...
    @property
    def stages(self) -> Sequence[StageWork]: ...


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """An answer as timed by the client. Times are in seconds since the request."""

    first_seconds: float
    last_seconds: float
    answer: Answer

    @property
    def n_tokens(self) -> int:
        return len(self.answer.token_ids)

    @property
    def decode_tok_s(self) -> float | None:
        """Return the tokens per second after the first token, or None if there are fewer than two tokens.

        A busy client may receive several tokens at once and overestimate the rate, so the node's own rate is the upper
        limit.
        """
        if self.n_tokens < 2:
            return None
        took, made = self.last_seconds - self.first_seconds, self.answer.decode_tok_s
        heard = (self.n_tokens - 1) / took if took > 0 else None
        return min((rate for rate in (heard, made) if rate), default=None)


@dataclass(frozen=True, slots=True)
class BenchRound:
    """One round of concurrent answers. `seconds` is the time until the last of them ended."""

    timed: tuple[TimedAnswer, ...]
    seconds: float

    @property
    def total_tok_s(self) -> float:
        return sum(timing.n_tokens for timing in self.timed) / self.seconds


@dataclass(frozen=True, slots=True)
class Spread:
    """The statistics of several measurements.

    `deviation` is the sample standard deviation, or None for a single measurement.
    """

    mean: float
    deviation: float | None
    low: float
    high: float
    runs: int


def spread(values: Sequence[float]) -> Spread | None:
    """Return the statistics of `values`, or None if there are no values."""
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), deviation, min(values), max(values), len(values))


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the nearest-rank percentile of `values` for the fraction `share`, or None if there are no values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def prompt_ids(seed: int, stream_key: tuple[int, int, int], n: int, n_vocab: int | None) -> list[int]:
    """Return `n` pseudorandom token ids that are different for each `stream_key` (streams, run, stream).

    No prompt can therefore reuse the prefix of another.
    """
    low, high = (BYTE_TOKENS[0], n_vocab) if n_vocab and n_vocab > 64 else BYTE_TOKENS
    chance = hashlib.shake_256(f"{seed}/{stream_key}".encode()).digest(4 * n)
    drawn = (int.from_bytes(chance[4 * at : 4 * at + 4]) for at in range(n))
    return [low + number % (high - low) for number in drawn]


def ask_request(
    seed: int, stream_key: tuple[int, int, int], n_prompt: int, n_tokens: int, n_vocab: int | None
) -> dict[str, Any]:
    """Return the body of a `POST /ask` request with a new prompt and an answer of exactly `n_tokens` tokens."""
    return {
        "prompt_ids": prompt_ids(seed, stream_key, n_prompt, n_vocab),
        "raw": True,
        "max_tokens": n_tokens,
        "ignore_end": True,
        "guesses": False,  # random ids may repeat in a way that text does not
        "sampling": GREEDY,
    }


def figures(streams: int, rounds: Sequence[BenchRound]) -> dict[str, Any]:
    """Return the results of the rounds with this number of concurrent streams, in the form of the JSON output."""
    every = [timing for run in rounds for timing in run.timed]
    firsts = [timing.first_seconds for timing in every]
    rates = [timing.decode_tok_s for timing in every if timing.decode_tok_s is not None]
    return {
        "streams": streams,
        "runs": len(rounds),
        "ttft_s": _known(spread(firsts)),
        "ttft_p99_s": percentile(firsts, 0.99),
        "prefill_tok_s": _known(spread([o.answer.prompt_tokens / o.first_seconds for o in every])),
        "decode_tok_s": _known(spread(rates)),
        "total_tok_s": _known(spread([run.total_tok_s for run in rounds])),
        "tokens": [timing.n_tokens for timing in every],
        "reused_tokens": sum(timing.answer.reused_tokens for timing in every),
        "recoveries": sum(timing.answer.recoveries for timing in every),
        "node_ttft_s": _known(spread([o.answer.ttft_s for o in every if o.answer.ttft_s])),
        "node_decode_tok_s": _known(spread([o.answer.decode_tok_s for o in every if o.answer.decode_tok_s])),
        "stages": stages([timing.answer for timing in every]),
    }


def energy(watts: float | None, rounds: Sequence[BenchRound]) -> dict[str, float] | None:
    """Return the energy that all machines consumed during these rounds, or None if their power is unknown.

    watts: the mean power of all machines together. The total includes the energy for reading the prompts. The energy
    per token is the total divided by the number of generated tokens.
    """
    if watts is None:
        return None
    joules = watts * sum(run.seconds for run in rounds)
    n_tokens = sum(timing.n_tokens for run in rounds for timing in run.timed)
    return {"watts": watts, "watt_hours": joules / 3600, "joules_per_token": joules / max(1, n_tokens)}


def stages(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return the work of each stage, averaged over all answers."""
    held: dict[tuple[str, int, int], list[tuple[float, ...]]] = {}
    for answer in answers:
        for work in answer.stages:
            names = {stage.id: stage.machine for stage in answer.placement}
            machine = names.get(work.machine, work.machine)
            did = (work.busy_s, work.wait_s, work.bytes_in, work.bytes_out, work.steps)
            held.setdefault((machine, work.first, work.last), []).append(did)
    return [
        {
            "machine": machine,
            "first": first,
            "last": last,
            **dict(zip(WORK_FIELDS, (statistics.fmean(column) for column in zip(*did, strict=True)), strict=True)),
        }
        for (machine, first, last), did in sorted(held.items(), key=lambda item: item[0][1])
    ]


def _known(value: Spread | None) -> dict[str, Any] | None:
    return None if value is None else asdict(value)


Json = dict[str, Any]


Run = tuple[str, int, int]  # machine id, first layer, layer after the last


LOAD_SETTINGS = ("model", "context", "users", "kv", "number", "exact")  # settings that the next load keeps


SHAPE_NAMES = {"one machine": "one", "split": "split", "replicas": "replicas"}


def load_request_on(loaded: Mapping[str, Any], machines: Iterable[str], used: Iterable[str]) -> Json:
    """Return a load request that allows only `used` of all `machines` (ids).

    All other settings are copied from the loaded model.
    """
    kept = {name: loaded[name] for name in LOAD_SETTINGS if loaded.get(name) is not None}
    allowed = set(used)
    without = [machine for machine in machines if machine not in allowed]
    return kept | {"measure": False, "without": without}


def load_requests_like(loaded: Mapping[str, Any], machines: Iterable[str]) -> tuple[Json, ...]:
    """Return load requests that may reproduce the current placement, best first.

    The first request lets the planner choose the split, because it may choose the same placement again. If none of the
    requests reproduces the placement, use the first.
    """
    runs = runs_of(loaded)
    order = load_request_on(loaded, machines, {machine for machine, _, _ in runs})
    shape = SHAPE_NAMES.get(str(loaded.get("shape")))
    planned = order | ({"shape": shape} if shape else {})
    split = _first_pipeline(runs)
    if len(split) < 2:
        return (planned,)
    by_hand: Json = {"split": [last - first for _, first, last in split]}
    if not any(reason["code"] == "plan_forced" for reason in loaded.get("why", ())):
        by_hand["by_program"] = True
    return planned, order | by_hand | ({"shape": shape} if len(split) < len(runs) else {})


def has_same_layers(loaded: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
    """Return whether a plan assigns to every machine exactly the layers that it has now."""
    return runs_of(loaded) == runs_of(planned)


def runs_of(placed: Mapping[str, Any]) -> list[Run]:
    return [(stage["id"], stage["first"], stage["last"]) for stage in placed["stages"]]


def _first_pipeline(runs: Sequence[Run]) -> list[Run]:
    """Return the layer runs of the host's pipeline. The runs of replicas on other machines are excluded."""
    n_layers = max((last for _, _, last in runs), default=0)
    ends = next((place for place, (_, _, last) in enumerate(runs) if last == n_layers), 0)
    return list(runs[: ends + 1])


def is_still_loaded(loaded: Mapping[str, Any], now: Mapping[str, Any] | None) -> bool:
    """Return whether the same model is still ready, with the same placement and settings."""
    if now is None or now.get("state") != "ready" or not has_same_layers(loaded, now):
        return False
    return all(loaded.get(name) == now.get(name) for name in LOAD_SETTINGS)
