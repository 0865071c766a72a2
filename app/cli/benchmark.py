"""The benchmark of `poolhouse bench`: measures a node, and builds the tables of its results."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.api.models import Models
from app.api.plans import LoadedModel, Plan, Progress
from app.api.responses import AnswerLine, LoadResponse
from app.api.snapshot import Snapshot
from app.cli import terminal_text
from app.cli.node_calls import gather_first_error
from app.cli.terminal_text import milliseconds, seconds
from app.cli.views.placement_view import layer_numbers
from app.core.bench import (
    WARM_UP_TOKENS,
    BenchRound,
    TimedAnswer,
    ask_request,
    figures,
    has_same_layers,
    is_still_loaded,
    load_requests_like,
)
from app.core.errors import AppError, BadInput, Unreachable
from app.core.reasons import size

if TYPE_CHECKING:
    from app.client import NodeClient

Json = dict[str, Any]
ABSENT = "not measured"


@dataclass(frozen=True, slots=True)
class Task:
    """The measurements that a benchmark takes, by the method of DESIGN.md 8."""

    model: str
    prompt: int
    output: int
    streams: tuple[int, ...]
    runs: int
    seed: int
    load: Json  # the requested split, number, context and users; None for any

    @property
    def steps(self) -> int:
        """Return the number of answers in the whole benchmark, excluding the warm-up."""
        return self.runs * sum(self.streams)


class Bench:
    """A benchmark on one node. `on_progress` is called with the number of finished answers."""

    def __init__(self, node: NodeClient, task: Task, on_progress: Callable[[int], None]) -> None:
        self._node = node
        self._task = task
        self._on_progress = on_progress
        self._finished = 0
        self._model = task.model
        self._n_vocab: int | None = None
        self._before: LoadedModel | None = None  # the model that was loaded before the benchmark loaded its own
        self.has_loaded = False

    async def load(self, progress: Callable[[Progress], None]) -> LoadedModel:
        """Return the placement to measure: the loaded model if it is suitable, or a newly loaded one."""
        placed = (await self._node.get("/status", Snapshot)).loaded
        if placed is None or not self._is_enough(placed):
            self._before, self.has_loaded = placed, True
            body = {"model": self._task.model, **self._load_options()}
            placed = (await self._node.work("POST", "/load", body, progress, answer=LoadResponse)).loaded
        self._model = placed.model  # the requested name may be abbreviated
        shelf = (await self._node.get("/models", Models)).models
        self._n_vocab = next((model.n_vocab for model in shelf if model.name == placed.model), None)
        return placed

    async def restore(self, progress: Callable[[Progress], None]) -> None:
        """Reload the model that was loaded before the benchmark replaced it."""
        before = self._before
        if not self.has_loaded:
            return
        snapshot = await self._node.get("/status", Snapshot)
        if before is None or not before.stages:
            await self._node.post("/unload")
            return
        was = msgspec.to_builtins(before)
        if not is_still_loaded(was, msgspec.to_builtins(snapshot.loaded)):
            order = await self._reload_order(was, list(snapshot.machines))
            await self._node.work("POST", "/load", order, progress)

    async def _reload_order(self, was: Json, machines: list[str]) -> Json:
        """Return the load request that places every layer on its previous machine again.

        If no request can do this, leave the placement to the planner.
        """
        orders = load_requests_like(was, machines)
        for order in orders:
            with suppress(AppError):  # then another request restores it, or loading reports why it cannot be restored
                planned = await self._node.work("POST", "/plan", order, answer=Plan)
                if has_same_layers(was, msgspec.to_builtins(planned)):
                    return order
        return orders[0]

    def _load_options(self) -> Json:
        need = self._task.prompt + self._task.output
        requested = self._task.load
        return {
            "split": requested.get("split"),
            "number": requested.get("number") or "f16",
            "context": requested.get("context") or need,
            "users": requested.get("users") or max(self._task.streams),
        }

    def _is_enough(self, loaded: LoadedModel) -> bool:
        """Return whether the requested model is loaded with enough context and slots for all streams."""
        need = self._load_options()
        return (
            loaded.model == self._task.model
            and loaded.state in ("ready", "")
            and not any(value is not None for value in self._task.load.values())
            and loaded.context >= need["context"]
            and loaded.users >= need["users"]
        )

    async def measure(self) -> list[Json]:
        """Return the results for each number of streams. A warm-up precedes the measurements."""
        await self._answer((0, 0, 0), min(WARM_UP_TOKENS, self._task.output))
        results = []
        for streams in self._task.streams:
            rounds = [await self._round(streams, run) for run in range(self._task.runs)]
            results.append(figures(streams, rounds))
        return results

    async def _round(self, streams: int, run: int) -> BenchRound:
        began = time.perf_counter()
        timed = await gather_first_error(
            self._answer((streams, run, stream), self._task.output) for stream in range(streams)
        )
        seconds = time.perf_counter() - began
        return BenchRound(tuple(timed), seconds)

    async def _answer(self, sizes: tuple[int, int, int], n_tokens: int) -> TimedAnswer:
        task = self._task
        body = ask_request(task.seed, sizes, task.prompt, n_tokens, self._n_vocab)
        body["model"] = self._model
        began, first, last = time.perf_counter(), None, 0.0
        async with aclosing(self._node.stream("POST", "/ask", body, each=AnswerLine)) as lines:
            async for line in lines:
                if line.delta and line.delta.token_ids:
                    last = time.perf_counter() - began
                    first = last if first is None else first
                if line.done:
                    self._count(sizes)
                    if first is None:
                        raise BadInput("bench_silent", model=task.model)
                    return TimedAnswer(first, last, line.done)
        raise Unreachable("node_went_away")

    def _count(self, sizes: tuple[int, int, int]) -> None:
        if sizes[0]:  # the warm-up is not counted
            self._finished += 1
            self._on_progress(self._finished)


def bench_view(report: Json) -> RenderableType:
    """Show the speed for each number of streams, then the work done by each stage."""
    model = terminal_text.name(report["model"])
    title = f"{model} · {report['prompt_tokens']}-token prompts · {report['output_tokens']}-token answers"
    rows: list[RenderableType] = [Text(title, style="bold"), _speeds(report)]
    for result in report["results"]:
        if result["stages"]:
            at_once = f" with {result['streams']} answers at once" if result["streams"] > 1 else ""
            heading = Text(f"Stages{at_once}, mean per answer", style="dim")
            rows += [Text(), heading, _stages(result["stages"])]
    return Group(*rows, *_warnings(report))


def _table(*headers: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for header in headers:
        table.add_column(header, justify="right", overflow="fold")
    return table


def _speeds(report: Json) -> Table:
    table = _table("At once", "First token", "p99", "tok/s each", "tok/s total", "Runs")
    for result in report["results"]:
        p99 = result["ttft_p99_s"]
        table.add_row(
            str(result["streams"]),
            _spread(result["ttft_s"], " s", 2),
            seconds(p99) if p99 is not None else ABSENT,
            _spread(result["decode_tok_s"], "", 1),
            _spread(result["total_tok_s"], "", 1),
            str(result["runs"]),
        )
    return table


def _spread(value: Json | None, unit: str, digits: int) -> str:
    if value is None:
        return ABSENT
    mean = f"{value['mean']:.{digits}f}"
    if value["deviation"] is None:
        return mean + unit
    return f"{mean} ± {value['deviation']:.{digits}f}{unit}"


def _stages(stages: list[Json]) -> Table:
    table = _table("Machine", "Layers", "Compute", "Wait", "In", "Out")
    table.columns[0].justify = "left"
    for stage in stages:
        table.add_row(
            terminal_text.name(stage["machine"]),
            layer_numbers([(stage["first"], stage["last"])]),
            milliseconds(stage["busy_s"]) if stage["busy_s"] < 1 else seconds(stage["busy_s"]),
            milliseconds(stage["wait_s"]) if stage["wait_s"] < 1 else seconds(stage["wait_s"]),
            size(round(stage["bytes_in"])),
            size(round(stage["bytes_out"])),
        )
    return table


def _warnings(report: Json) -> list[Text]:
    """Return sentences about events that make these results less reliable."""
    sentences = []
    for result in report["results"]:
        subject = f"With {result['streams']} answer{'s' if result['streams'] > 1 else ''} at once,"
        if result["reused_tokens"]:
            sentences.append(f"{subject} {result['reused_tokens']} prompt tokens were reused, not computed.")
        if min(result["tokens"]) < report["output_tokens"]:
            sentences.append(f"{subject} an answer ended early, after {min(result['tokens'])} tokens.")
        if result["recoveries"]:
            sentences.append(f"{subject} the pool recovered {result['recoveries']} times.")
    return [Text(sentence, style="yellow") for sentence in sentences]
