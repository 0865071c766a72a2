"""Benchmarks of a loaded model. A warm-up is followed by rounds of concurrent answers within a time budget."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app import __version__
from app.api.plans import LoadedModel, Plan
from app.api.responses import Answer, AnswerLine, ForecastSpeed, LoadResponse
from app.api.snapshot import Snapshot
from app.core.bench import (
    WARM_UP_TOKENS,
    BenchRound,
    TimedAnswer,
    ask_request,
    energy,
    figures,
    has_same_layers,
    load_request_on,
    load_requests_like,
    spread,
)
from app.core.errors import AppError, BadInput
from app.decoding import convert
from app.gui.activity.bench_store import Bench, HostAlone, Result
from app.gui.api.node_client import Call, NodeClient

StreamKey = tuple[int, int, int]  # number of streams, round, stream
Watts = Callable[[LoadedModel], float | None]  # current power draw of a loaded model's machines, or None if unknown
SETTLE_S = 11.0  # a reading is up to five seconds old and averages the five seconds before
METER_MS = 1000
TOGETHER, LOADING, ALONE, BACK = "together", "loading", "alone", "back"


@dataclass(frozen=True, slots=True)
class BenchmarkSize:
    """The size of a benchmark: its token counts, concurrency levels and maximum number of rounds.

    seconds: the time budget. A round starts only if it is expected to end in time, but each concurrency level gets at
    least one round.
    """

    name: str
    prompt: int
    output: int
    streams: tuple[int, ...]
    runs: int
    seconds: float


QUICK = BenchmarkSize("quick", prompt=128, output=64, streams=(1,), runs=5, seconds=25.0)
FULL = BenchmarkSize("full", prompt=512, output=256, streams=(1, 8), runs=5, seconds=280.0)
SLOTS = 4  # simultaneous conversations that every placement supports


def fitted(extent: BenchmarkSize, context: int, users: int) -> BenchmarkSize:
    """Return the benchmark size, reduced to fit into the context and the slots of a placement."""
    whole = extent.prompt + extent.output
    shrink = min(1.0, context / whole)
    prompt, output = max(1, int(extent.prompt * shrink)), max(2, int(extent.output * shrink))
    room = context * users // (prompt + output)
    streams = tuple(n for n in dict.fromkeys(min(n, max(users, SLOTS), room) for n in extent.streams) if n)
    return BenchmarkSize(extent.name, prompt, output, streams or (1,), extent.runs, extent.seconds)


def expected_seconds(extent: BenchmarkSize, loaded: LoadedModel | None) -> float:
    """Return the expected duration, based on the loaded model's forecast. Without one, return the time budget."""
    if loaded is None or loaded.forecast is None or not loaded.forecast.decode_tok_s:
        return extent.seconds
    first = loaded.first_token
    if first is None or not first.prompt_tokens:
        return extent.seconds
    extent = fitted(extent, loaded.context, loaded.users)
    prefill_s = first.ttft_s * extent.prompt / first.prompt_tokens
    answer_s = prefill_s + extent.output / loaded.forecast.decode_tok_s
    # pessimistic: assumes that concurrent streams are not batched
    rounds = [answer_s * streams for streams in extent.streams]
    return max(sum(rounds), min(extent.runs * sum(rounds), extent.seconds))


class TimedRequest(QObject):
    """A request to the node. The client measures when its tokens arrive."""

    def __init__(
        self,
        client: NodeClient,
        body: dict[str, Any],
        done: Callable[[TimedAnswer], object],
        failed: Callable[[AppError], object],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._done, self._failed, self._model = done, failed, str(body.get("model"))
        self._first: float | None = None
        self._last = 0.0
        self._began = time.perf_counter()
        self._call: Call | None = client.call(
            "POST", "/ask", body, self._ended, self._broke, self._line, answer=Answer, each=AnswerLine
        )

    def cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _line(self, line: AnswerLine) -> None:
        if line.delta is not None and line.delta.token_ids:
            self._last = time.perf_counter() - self._began
            if self._first is None:
                self._first = self._last

    def _ended(self, answer: Answer) -> None:
        self._call = None
        if self._first is None:
            self._failed(BadInput("bench_silent", model=self._model))
        else:
            self._done(TimedAnswer(self._first, self._last, answer))

    def _broke(self, error: AppError) -> None:
        self._call = None
        self._failed(error)


class BenchRun(QObject):
    """A benchmark in progress. Either `finished` or `failed` is emitted; after `cancel`, neither is."""

    progressed = Signal(float, int)  # finished fraction, answers so far
    finished = Signal(object)  # list[Result], one for each level of concurrency
    failed = Signal(object)  # AppError

    def __init__(
        self,
        client: NodeClient,
        loaded: LoadedModel,
        extent: BenchmarkSize,
        n_vocab: int | None,
        seed: int,
        watts: Watts = lambda _: None,
    ) -> None:
        super().__init__(client)
        self._meter = PowerMeter(lambda: watts(loaded), self)
        self._client, self._model = client, loaded.model
        self.extent = fitted(extent, loaded.context, loaded.users)
        self._n_vocab, self._seed = n_vocab, seed
        self._left = list(self.extent.streams)
        self._rounds: list[BenchRound] = []
        self._results: list[Result] = []
        self._predicted: list[ForecastSpeed] = []
        self._timed: list[TimedAnswer] = []
        self._requests: list[TimedRequest] = []
        self._answers = 0
        self._began = self._round_began = 0.0

    def start(self) -> None:
        """Run the warm-up, then the measured rounds."""
        self._began = time.perf_counter()
        self._ask((0, 0, 0), min(WARM_UP_TOKENS, self.extent.output), self._warm)

    def cancel(self) -> None:
        for request in self._requests:
            request.cancel()
        self._requests.clear()
        self._meter.end()
        self.deleteLater()

    @property
    def forecast(self) -> ForecastSpeed | None:
        """The mean forecast for answers at concurrency 1."""
        first = spread([predicted.ttft_s for predicted in self._predicted])
        speed = spread([predicted.decode_tok_s for predicted in self._predicted])
        return ForecastSpeed(first.mean, speed.mean) if first is not None and speed is not None else None

    def _warm(self, _: TimedAnswer) -> None:
        self._requests.clear()
        self._began = time.perf_counter()
        self._meter.begin()
        self._next_round()

    def _next_round(self) -> None:
        streams, run = self._left[0], len(self._rounds)
        self._round_began, self._timed = time.perf_counter(), []
        for stream in range(streams):
            self._ask((streams, run, stream), self.extent.output, self._answered)

    def _ask(self, key: StreamKey, n_tokens: int, done: Callable[[TimedAnswer], object]) -> None:
        body = ask_request(self._seed, key, self.extent.prompt, n_tokens, self._n_vocab)
        body["model"] = self._model
        self._requests.append(TimedRequest(self._client, body, done, self._broke, self))

    def _answered(self, timed: TimedAnswer) -> None:
        self._timed.append(timed)
        self._answers += 1
        answer = timed.answer
        predicted = answer.predicted if isinstance(answer, Answer) else None
        if self._left[0] == 1 and predicted is not None and not predicted.too_small:
            self._predicted.append(predicted)
        self.progressed.emit(self._share(), self._answers)
        if len(self._timed) == self._left[0]:
            self._end_round()

    def _end_round(self) -> None:
        round_s = time.perf_counter() - self._round_began
        for request in self._requests:
            request.deleteLater()
        self._requests.clear()
        self._rounds.append(BenchRound(tuple(self._timed), round_s))
        if len(self._rounds) < self.extent.runs and self._has_time_for(round_s):
            self._next_round()
            return
        drawn = energy(self._meter.end(), self._rounds)
        self._results.append(convert(figures(self._left.pop(0), self._rounds) | {"energy": drawn}, Result))
        self._rounds = []
        if self._left:
            self._meter.begin()
            self._next_round()
        else:
            self.finished.emit(self._results)
            self.deleteLater()

    def _has_time_for(self, seconds: float) -> bool:
        """Return whether there is time for a round of this duration.

        The time budget is divided equally among the concurrency levels.
        """
        kinds = len(self.extent.streams)
        ends = self.extent.seconds * (kinds - len(self._left) + 1) / kinds
        return time.perf_counter() - self._began + seconds <= ends

    def _share(self) -> float:
        """Return the progress as the fraction of the answers or of the time budget, whichever is larger."""
        whole = self.extent.runs * sum(self.extent.streams)
        passed = (time.perf_counter() - self._began) / self.extent.seconds
        return min(0.99, max(self._answers / whole, passed))

    def _broke(self, error: AppError) -> None:
        self.cancel()
        self.failed.emit(error)


def power_draw_watts(snapshot: Snapshot, loaded: LoadedModel) -> float | None:
    """Return the total power draw of the machines that run a model, or None unless all of them report it."""
    machines = {stage.id: snapshot.machines.get(stage.id) for stage in loaded.stages}
    watts = [machine.watts if machine is not None else None for machine in machines.values()]
    known = [value for value in watts if value]
    return sum(known) if known and len(known) == len(watts) else None


class PowerMeter(QObject):
    """A meter that averages the power draw.

    The first seconds after `begin` are skipped, because the readings still include the power drawn before `begin`.
    """

    def __init__(
        self,
        read: Callable[[], float | None],
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._read, self._clock = read, clock
        self._readings: list[float | None] = []
        self._began = 0.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.sample)

    def begin(self) -> None:
        self._readings.clear()
        self._began = self._clock()
        self._timer.start(METER_MS)

    def sample(self) -> None:
        """Take a reading. The timer calls this every second."""
        if self._clock() - self._began >= SETTLE_S:
            self._readings.append(self._read())

    def end(self) -> float | None:
        """Stop, and return the mean power draw, or None if no reading was taken or any reading was unknown."""
        self._timer.stop()
        known = [watts for watts in self._readings if watts is not None]
        return statistics.fmean(known) if known and len(known) == len(self._readings) else None


def bench_record(loaded: LoadedModel, run: BenchRun, results: Sequence[Result]) -> Bench:
    """Return the record of a finished run for storage."""
    return Bench(
        at=time.time(),
        version=__version__,
        extent=run.extent.name,
        model=loaded.model,
        machines=list(dict.fromkeys(stage.machine for stage in loaded.stages)),
        shape=loaded.shape,
        context=loaded.context,
        prompt_tokens=run.extent.prompt,
        output_tokens=run.extent.output,
        forecast=run.forecast,
        results=list(results),
    )


def host_only_request(loaded: LoadedModel, machines: Sequence[str]) -> dict[str, Any]:
    """Return a request that loads the model on its host alone.

    machines: the IDs of all machines.
    """
    return load_request_on(msgspec.to_builtins(loaded), machines, [loaded.stages[0].id])


class Comparison(QObject):
    """A benchmark of the current placement and then of the host alone. Afterwards, the placement is restored.

    Either `finished` or `failed` is emitted at the end. If the benchmark succeeds but the placement cannot be
    restored, both are emitted.
    """

    progressed = Signal(float, str)  # finished fraction, current step
    finished = Signal(object)  # Bench of the household, with the results of the host alone
    failed = Signal(object)  # AppError

    def __init__(
        self,
        client: NodeClient,
        loaded: LoadedModel,
        machines: Sequence[str],
        extent: BenchmarkSize,
        n_vocab: int | None,
        seed: int,
        watts: Watts = lambda _: None,
    ) -> None:
        super().__init__(client)
        self._client, self._loaded, self._machines = client, loaded, machines
        self._extent, self._n_vocab, self._seed = extent, n_vocab, seed
        self._watts = watts
        self._run: BenchRun | None = None
        self._call: Call | None = None
        self._step = TOGETHER
        self._orders = list(load_requests_like(msgspec.to_builtins(loaded), machines))
        self._restore = self._orders[0]  # until a plan shows which request reproduces the placement
        self._benches: list[Bench] = []
        self._error: AppError | None = None

    @property
    def step(self) -> str:
        return self._step

    def start(self) -> None:
        """Start by measuring the current placement."""
        self._plan()

    def cancel(self) -> None:
        """Stop measuring and restore the placement. Neither `finished` nor `failed` is emitted."""
        if self._run is not None:
            self._run.cancel()
            self._run = None
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self._step in (LOADING, ALONE, BACK):
            self._client.call("POST", "/load", self._restore, _ignore, _ignore)
        self.deleteLater()

    def _plan(self) -> None:
        """Plan candidate load requests until one reproduces the current placement. Nothing is changed before that."""
        if not self._orders:
            self._measure(self._loaded)
            return
        order = self._orders.pop(0)
        self._call = self._client.call(
            "POST", "/plan", order, lambda plan: self._planned(order, plan), lambda _: self._plan(), answer=Plan
        )

    def _planned(self, order: dict[str, Any], plan: Plan) -> None:
        if not has_same_layers(msgspec.to_builtins(self._loaded), msgspec.to_builtins(plan)):
            self._plan()
            return
        self._restore = order
        self._measure(self._loaded)

    def _measure(self, loaded: LoadedModel) -> None:
        self._call = None
        run = BenchRun(self._client, loaded, self._extent, self._n_vocab, self._seed, self._watts)
        self._run = run
        run.progressed.connect(lambda share, _: self._report(share))
        run.finished.connect(lambda results: self._measured(loaded, run, results))
        run.failed.connect(self._broke)
        self._report(0.0)
        run.start()

    def _measured(self, loaded: LoadedModel, run: BenchRun, results: Sequence[Result]) -> None:
        self._run = None
        self._benches.append(bench_record(loaded, run, results))
        if self._step == TOGETHER:
            self._load(LOADING, host_only_request(self._loaded, self._machines))
        else:
            self._load(BACK, self._restore)

    def _load(self, step: str, order: dict[str, Any]) -> None:
        self._step = step
        self._report(0.0)
        self._call = self._client.call("POST", "/load", order, self._placed, self._broke, answer=LoadResponse)

    def _placed(self, answer: LoadResponse) -> None:
        self._call = None
        if self._step == LOADING:
            self._step = ALONE
            self._measure(answer.loaded)
        else:
            self._end()

    def _broke(self, error: AppError) -> None:
        self._call = self._run = None
        self._error = self._error or error
        if self._step in (TOGETHER, BACK):
            self._end()
        else:
            self._load(BACK, self._restore)

    def _end(self) -> None:
        if len(self._benches) > 1:  # report the results even if restoring the placement failed
            together, alone = self._benches
            host = HostAlone(results=alone.results, forecast=alone.forecast)
            self.finished.emit(msgspec.structs.replace(together, one=host))
        if self._error is not None:
            self.failed.emit(self._error)
        self.deleteLater()

    def _report(self, share: float) -> None:
        begin, part = {TOGETHER: (0.0, 0.4), LOADING: (0.4, 0.1), ALONE: (0.5, 0.4), BACK: (0.9, 0.1)}[self._step]
        self.progressed.emit(begin + part * share, self._step)


def _ignore(_: object) -> None:
    pass
