"""One benchmark on the loaded model: a warm-up, then rounds of answers asked together, within a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app import __version__
from app.core.bench import (
    WARM_UP_TOKENS,
    BenchRound,
    TimedAnswer,
    energy,
    figures,
    is_same,
    order_on,
    question,
    same_orders,
    spread,
)
from app.core.errors import AppError, BadInput
from app.gui.activity.bench_store import Bench
from app.gui.activity.journal_feed import StageDid
from app.gui.api.node_client import Call, NodeClient

Json = dict[str, Any]
Which = tuple[int, int, int]  # streams, run, stream
SETTLE_S = 11.0  # what a machine tells is up to five seconds old, and the mean of five before
PACE_MS = 1000
TOGETHER, LOADING, ALONE, BACK = "together", "loading", "alone", "back"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is asked: tokens of a prompt and of an answer, answers at once, at most so many rounds.

    seconds: after them no other round begins; each kind of round happens at least once.
    """

    name: str
    prompt: int
    output: int
    streams: tuple[int, ...]
    runs: int
    seconds: float


QUICK = Extent("quick", prompt=128, output=64, streams=(1,), runs=5, seconds=25.0)
FULL = Extent("full", prompt=512, output=256, streams=(1, 8), runs=5, seconds=280.0)
SLOTS = 4  # conversations that every placement keeps room for


def fitted(extent: Extent, context: int, users: int) -> Extent:
    """What of it a placement has room for."""
    whole = extent.prompt + extent.output
    shrink = min(1.0, context / whole)
    prompt, output = max(1, int(extent.prompt * shrink)), max(2, int(extent.output * shrink))
    room = context * users // (prompt + output)
    streams = tuple(n for n in dict.fromkeys(min(n, max(users, SLOTS), room) for n in extent.streams) if n)
    return Extent(extent.name, prompt, output, streams or (1,), extent.runs, extent.seconds)


def expected_s(extent: Extent, loaded: Json | None) -> float:
    """How long it will take for what is loaded, by its forecast; without one, all the time that it has."""
    forecast = (loaded or {}).get("forecast") or {}
    first = (loaded or {}).get("first_token") or {}
    if not loaded or not forecast.get("decode_tok_s") or not first.get("prompt_tokens"):
        return extent.seconds
    extent = fitted(extent, loaded["context"], loaded["users"])
    reads = float(first["ttft_s"]) * extent.prompt / int(first["prompt_tokens"])
    one: float = reads + extent.output / forecast["decode_tok_s"]
    rounds = [one * streams for streams in extent.streams]  # as if nothing were shared
    return max(sum(rounds), min(extent.runs * sum(rounds), extent.seconds))


@dataclass(frozen=True, slots=True)
class Held:
    """Which machine held a stage."""

    id: str
    machine: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an answer, as app/core/bench.py reads it."""

    token_ids: tuple[int, ...]
    prompt_tokens: int
    reused_tokens: int
    ttft_s: float | None
    decode_tok_s: float | None
    recoveries: int
    placement: tuple[Held, ...]
    stages: tuple[StageDid, ...]
    predicted: tuple[float, float] | None  # seconds to the first token, tokens a second

    @classmethod
    def of(cls, told: Json) -> Ended:
        said = told.get("predicted")
        return cls(
            token_ids=tuple(told["token_ids"]),
            prompt_tokens=told["prompt_tokens"],
            reused_tokens=told["reused_tokens"],
            ttft_s=told["ttft_s"],
            decode_tok_s=told["decode_tok_s"],
            recoveries=told["recoveries"],
            placement=tuple(Held(one["id"], one["machine"]) for one in told["placement"]),
            stages=tuple(StageDid(**one) for one in told["stages"]),
            predicted=(said["ttft_s"], said["decode_tok_s"]) if said else None,
        )


class Asking(QObject):
    """One answer, timed as its asker sees it."""

    def __init__(
        self,
        client: NodeClient,
        body: Json,
        done: Callable[[TimedAnswer], object],
        failed: Callable[[AppError], object],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._done, self._failed, self._model = done, failed, str(body.get("model"))
        self._first: float | None = None
        self._last = 0.0
        self._began = time.perf_counter()
        self._call: Call | None = client.call("POST", "/ask", body, self._ended, self._broke, self._line)

    def cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _line(self, line: Json) -> None:
        if line.get("delta", {}).get("token_ids"):
            self._last = time.perf_counter() - self._began
            if self._first is None:
                self._first = self._last

    def _ended(self, told: Json) -> None:
        self._call = None
        if self._first is None:
            self._failed(BadInput("bench_silent", model=self._model))
        else:
            self._done(TimedAnswer(self._first, self._last, Ended.of(told)))

    def _broke(self, error: AppError) -> None:
        self._call = None
        self._failed(error)


class BenchRun(QObject):
    """Runs until `finished` or `failed`; after `cancel` neither comes."""

    progressed = Signal(float, int)  # share of the whole, answers so far
    finished = Signal(object)  # list[Json]: the figures of each kind of round
    failed = Signal(object)  # AppError

    def __init__(
        self,
        client: NodeClient,
        loaded: Json,
        extent: Extent,
        n_vocab: int | None,
        seed: int,
        watts: Callable[[Json], float | None] = lambda _: None,
    ) -> None:
        super().__init__(client)
        self._meter = Meter(lambda: watts(loaded), self)
        self._client, self._model = client, str(loaded["model"])
        self.extent = fitted(extent, loaded["context"], loaded["users"])
        self._n_vocab, self._seed = n_vocab, seed
        self._left = list(self.extent.streams)
        self._rounds: list[BenchRound] = []
        self._results: list[Json] = []
        self._predicted: list[tuple[float, float]] = []
        self._timed: list[TimedAnswer] = []
        self._asking: list[Asking] = []
        self._answers = 0
        self._began = self._round_began = 0.0

    def start(self) -> None:
        """Warm up, then measure."""
        self._began = time.perf_counter()
        self._ask((0, 0, 0), min(WARM_UP_TOKENS, self.extent.output), self._warm)

    def cancel(self) -> None:
        for asking in self._asking:
            asking.cancel()
        self._asking.clear()
        self._meter.end()
        self.deleteLater()

    @property
    def forecast(self) -> Json | None:
        """What was forecast for an answer alone; the mean of its runs."""
        first, speed = (spread([one[n] for one in self._predicted]) for n in (0, 1))
        if first is None or speed is None:
            return None
        return {"ttft_s": first.mean, "decode_tok_s": speed.mean}

    def _warm(self, _: TimedAnswer) -> None:
        self._asking.clear()
        self._began = time.perf_counter()
        self._meter.begin()
        self._next_round()

    def _next_round(self) -> None:
        streams, run = self._left[0], len(self._rounds)
        self._round_began, self._timed = time.perf_counter(), []
        for stream in range(streams):
            self._ask((streams, run, stream), self.extent.output, self._answered)

    def _ask(self, which: Which, n_tokens: int, done: Callable[[TimedAnswer], object]) -> None:
        body = question(self._seed, which, self.extent.prompt, n_tokens, self._n_vocab)
        body["model"] = self._model
        self._asking.append(Asking(self._client, body, done, self._broke, self))

    def _answered(self, timed: TimedAnswer) -> None:
        self._timed.append(timed)
        self._answers += 1
        answer = timed.answer
        if self._left[0] == 1 and isinstance(answer, Ended) and answer.predicted is not None:
            self._predicted.append(answer.predicted)
        self.progressed.emit(self._share(), self._answers)
        if len(self._timed) == self._left[0]:
            self._round_over()

    def _round_over(self) -> None:
        took = time.perf_counter() - self._round_began
        for asking in self._asking:
            asking.deleteLater()
        self._asking.clear()
        self._rounds.append(BenchRound(tuple(self._timed), took))
        if len(self._rounds) < self.extent.runs and self._has_time_for(took):
            self._next_round()
            return
        drew = energy(self._meter.end(), self._rounds)
        self._results.append(figures(self._left.pop(0), self._rounds) | {"energy": drew})
        self._rounds = []
        if self._left:
            self._meter.begin()
            self._next_round()
        else:
            self.finished.emit(self._results)
            self.deleteLater()

    def _has_time_for(self, seconds: float) -> bool:
        """Whether another such round ends in time; the kinds of rounds share what there is."""
        kinds = len(self.extent.streams)
        ends = self.extent.seconds * (kinds - len(self._left) + 1) / kinds
        return time.perf_counter() - self._began + seconds <= ends

    def _share(self) -> float:
        """Of the rounds, or of the time where that runs out first."""
        whole = self.extent.runs * sum(self.extent.streams)
        passed = (time.perf_counter() - self._began) / self.extent.seconds
        return min(0.99, max(self._answers / whole, passed))

    def _broke(self, error: AppError) -> None:
        self.cancel()
        self.failed.emit(error)


def drawn(snapshot: Json, loaded: Json) -> float | None:
    """Watts of all machines together; None unless each of them tells its own."""
    machines = snapshot.get("machines") or {}
    ids = {stage["id"] for stage in loaded["stages"]}
    told: list[float] = [(machines.get(one) or {}).get("watts") or 0.0 for one in ids]
    return sum(told) if told and all(told) else None


class Meter(QObject):
    """Reads again and again, from a while after `begin`, when what was before is not in it any more."""

    def __init__(
        self,
        read: Callable[[], float | None],
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._read, self._clock = read, clock
        self._seen: list[float | None] = []
        self._began = 0.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.look)

    def begin(self) -> None:
        self._seen.clear()
        self._began = self._clock()
        self._timer.start(PACE_MS)

    def look(self) -> None:
        """Once; the timer does it as long as it runs."""
        if self._clock() - self._began >= SETTLE_S:
            self._seen.append(self._read())

    def end(self) -> float | None:
        """The mean; None where it was over too soon, or a machine did not tell at some time."""
        self._timer.stop()
        known = [watts for watts in self._seen if watts is not None]
        return statistics.fmean(known) if known and len(known) == len(self._seen) else None


def bench_of(loaded: Json, run: BenchRun, results: list[Json]) -> Bench:
    """What one run measured, as it is kept."""
    return Bench(
        at=time.time(),
        version=__version__,
        extent=run.extent.name,
        model=loaded["model"],
        machines=tuple(dict.fromkeys(stage["machine"] for stage in loaded["stages"])),
        shape=loaded["shape"],
        context=loaded["context"],
        prompt_tokens=run.extent.prompt,
        output_tokens=run.extent.output,
        forecast=run.forecast,
        results=tuple(results),
    )


def alone_order(loaded: Json, machines: list[str]) -> Json:
    """What loads the same model on its host alone. machines: the ids of all there are."""
    return order_on(loaded, machines, [loaded["stages"][0]["id"]])


class Comparison(QObject):
    """Runs until `finished` or `failed`. Whatever happens, what was loaded is loaded again first; where
    that alone fails, both come.
    """

    progressed = Signal(float, str)  # share of the whole, and which step
    finished = Signal(object)  # Bench of the household, with the host alone inside
    failed = Signal(object)  # AppError

    def __init__(
        self,
        client: NodeClient,
        loaded: Json,
        machines: list[str],
        extent: Extent,
        n_vocab: int | None,
        seed: int,
        watts: Callable[[Json], float | None] = lambda _: None,
    ) -> None:
        super().__init__(client)
        self._client, self._loaded, self._machines = client, loaded, machines
        self._extent, self._n_vocab, self._seed = extent, n_vocab, seed
        self._watts = watts
        self._run: BenchRun | None = None
        self._call: Call | None = None
        self._step = TOGETHER
        self._orders = list(same_orders(loaded, machines))
        self._back = self._orders[0]  # what loads it again as it was
        self._made: list[Bench] = []
        self._why: AppError | None = None

    @property
    def step(self) -> str:
        return self._step

    def start(self) -> None:
        """The placement of now, measured first: it is what its owner chose."""
        self._plan()

    def cancel(self) -> None:
        """Stop measuring; what was loaded comes back, and then `failed` says nothing: neither comes."""
        if self._run is not None:
            self._run.cancel()
            self._run = None
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self._step in (LOADING, ALONE, BACK):
            self._client.call("POST", "/load", self._back, _nothing, _nothing)
        self.deleteLater()

    # inside

    def _plan(self) -> None:
        """Which order would put it where it lies: it is known before anything is changed."""
        if not self._orders:
            self._measure(self._loaded)
            return
        order = self._orders.pop(0)
        self._call = self._client.call(
            "POST", "/plan", order, lambda told: self._planned(order, told), lambda _: self._plan()
        )

    def _planned(self, order: Json, told: Json) -> None:
        if not is_same(self._loaded, told):
            self._plan()
            return
        self._back = order
        self._measure(self._loaded)

    def _measure(self, loaded: Json) -> None:
        self._call = None
        run = BenchRun(self._client, loaded, self._extent, self._n_vocab, self._seed, self._watts)
        self._run = run
        run.progressed.connect(lambda share, _: self._tell(share))
        run.finished.connect(lambda results: self._measured(loaded, run, results))
        run.failed.connect(self._broke)
        self._tell(0.0)
        run.start()

    def _measured(self, loaded: Json, run: BenchRun, results: list[Json]) -> None:
        self._run = None
        self._made.append(bench_of(loaded, run, results))
        if self._step == TOGETHER:
            self._load(LOADING, alone_order(self._loaded, self._machines))
        else:
            self._load(BACK, self._back)

    def _load(self, step: str, order: Json) -> None:
        self._step = step
        self._tell(0.0)
        self._call = self._client.call("POST", "/load", order, self._placed, self._broke)

    def _placed(self, told: Json) -> None:
        self._call = None
        if self._step == LOADING:
            self._step = ALONE
            self._measure(told["loaded"])
        else:
            self._end()

    def _broke(self, error: AppError) -> None:
        self._call = self._run = None
        self._why = self._why or error
        if self._step in (TOGETHER, BACK):
            self._end()
        else:
            self._load(BACK, self._back)

    def _end(self) -> None:
        if len(self._made) > 1:  # also where only the layers did not come back
            together, alone = self._made
            one = {"forecast": alone.forecast, "results": list(alone.results)}
            self.finished.emit(replace(together, one=one))
        if self._why is not None:
            self.failed.emit(self._why)
        self.deleteLater()

    def _tell(self, share: float) -> None:
        begins, takes = {TOGETHER: (0.0, 0.4), LOADING: (0.4, 0.1), ALONE: (0.5, 0.4), BACK: (0.9, 0.1)}[self._step]
        self.progressed.emit(begins + takes * share, self._step)


def _nothing(_: object) -> None:
    """Nobody waits for this any more."""
