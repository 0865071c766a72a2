"""One machine against the household: measures the placement, the host alone, and puts the first back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from app import __version__
from app.core.bench import is_same, order_on, same_orders
from app.core.errors import AppError
from app.gui.activity.bench.bench_run import BenchRun, Extent
from app.gui.activity.bench.bench_store import Bench
from app.gui.api.node_client import Call, NodeClient

Json = dict[str, Any]
TOGETHER, LOADING, ALONE, BACK = "together", "loading", "alone", "back"


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
