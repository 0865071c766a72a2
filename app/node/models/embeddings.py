"""The embedding model or reranker, which is loaded on this machine next to the chat models and unloaded when idle."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from msgspec import structs

from app.api import requests
from app.api.plans import LoadedEmbedder
from app.api.responses import LoadEmbedderResponse
from app.catalog.shelf import Entry, Shelf
from app.core.errors import AppError, BadInput, DoesNotFit, Reason, StageFailed, StageLost
from app.core.model import Model
from app.core.nearest_names import MODEL_UNKNOWN
from app.core.planner.placement import Candidate, Plan, Workload
from app.core.planner.stage_memory import embedding_work_bytes, planned_stage
from app.core.recovery.recovery import death_facts
from app.inference.worker.embedder import Embedder, Score, Text, Vector
from app.machine.hardware import devices
from app.node.cancellation import in_thread, run_until
from app.node.control.json_bodies import Report, hashing_progress
from app.node.models.load_queue import blame_model
from app.node.snapshot import describe_plan, with_limits
from app.node.verification.spare_memory import SpareMemory
from backends.contract import Layers, Role

log = logging.getLogger(__name__)

T = TypeVar("T")  # one input of a request
R = TypeVar("R")  # the result for one input

MOST_CONTEXT = 2048  # limit of tokens per text, because a pass needs memory for every pair of tokens
IDLE_SECONDS = 300.0
DIED = ("worker_died", "worker_crashed")  # reasons of a worker that was not stopped on purpose


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of some texts, in the order of the texts."""

    model: str
    vectors: tuple[Vector, ...]

    @property
    def n_tokens(self) -> int:
        return sum(vector.n_tokens for vector in self.vectors)


@dataclass(frozen=True, slots=True)
class Ranked:
    """The relevance of some texts to a query, in the order of the texts."""

    model: str
    scores: tuple[Score, ...]

    @property
    def n_tokens(self) -> int:
        return sum(score.n_tokens for score in self.scores)


@dataclass(slots=True, eq=False)
class EmbedderPlacement:
    """An embedding model that is loaded or loading. If `wished` is set, the user loaded it, so it stays loaded when
    idle."""

    entry: Entry
    plan: Plan
    wished: bool = False
    embedder: Embedder | None = None
    seconds: float = 0.0  # duration of the load

    @property
    def is_gone(self) -> bool:
        return self.embedder is not None and not self.embedder.alive

    @property
    def total_bytes(self) -> int:
        return self.plan.stages[0].total_bytes

    def serves(self, model: Model, context: int) -> bool:
        mine = (self.entry.model.id, self.plan.workload.context)
        return mine == (model.id, context) and not self.is_gone

    def describe(self, n_asks: int = 0) -> LoadedEmbedder:
        """Return the API's description of the model. `n_asks` is the number of requests in progress."""
        (machine,) = self.plan.machines
        return LoadedEmbedder(
            **structs.asdict(describe_plan(self.plan, self.entry.model, {machine.id: machine.lends_bytes})),
            state="ready" if self.embedder else "loading",
            wished=self.wished,
            ranks=self.entry.model.ranks,
            loaded_seconds=round(self.seconds, 3),
            asks=n_asks,
        )


class Embeddings:
    """The embedding model of this host. Loading another one replaces it.

    here: returns this machine with the memory for its own models, and how many bytes of it the chat models use.
    """

    def __init__(
        self,
        shelf: Shelf,
        here: Callable[[], tuple[Candidate, int]],
        threads: int,
        changed: Callable[[], None],
        spare_memory: SpareMemory,
    ) -> None:
        self._shelf, self._here, self._threads, self._changed = shelf, here, threads, changed
        self._spare_memory = spare_memory
        self._turn = asyncio.Lock()
        self._stop = asyncio.Event()  # ends the load in progress
        self._n_ending = 0  # callers that are unloading; nothing is loaded until they are done
        self._coming: Entry | None = None  # the model that is being verified or loaded
        self._held: EmbedderPlacement | None = None
        self._idle: asyncio.TimerHandle | None = None
        self.n_asks = 0  # running and waiting requests

    @property
    def held(self) -> EmbedderPlacement | None:
        """The model that currently occupies memory."""
        return None if self._held is None or self._held.is_gone else self._held

    def uses(self) -> tuple[int, int]:
        """Return how many bytes the model uses or will use, and how many of these are not allocated yet."""
        held = self.held
        if held is None:
            return 0, 0
        return held.total_bytes, 0 if held.embedder else held.total_bytes

    def describe(self) -> LoadedEmbedder | None:
        """Return the API's description of the loaded model, or None."""
        if self.held is None:
            return None
        return with_limits(self.held.describe(self.n_asks), self._here()[0])

    async def model(self, name: str) -> Entry:
        """Return the embedding model with this name, or the only one if `name` is empty. Raises BadInput."""
        name = name.removesuffix(":latest")
        entries = await asyncio.to_thread(self._shelf.entries)
        embed = [entry for entry in entries if entry.model.embeds]
        if not embed:
            raise BadInput("embedding_model_missing")
        there = ", ".join(entry.name for entry in embed)
        if name in ("", "default"):
            if len(embed) > 1:
                raise BadInput("embedding_model_unnamed", there=there)
            return embed[0]
        try:
            entry = await asyncio.to_thread(self._shelf.get, name)
        except BadInput as error:
            if error.reason.code not in MODEL_UNKNOWN:
                raise
            raise BadInput("embedding_model_unknown", name=name[:100], there=there) from None
        if not entry.model.embeds:
            raise BadInput("model_embeds_not", name=entry.name, there=there)
        return entry

    async def reranker(self, name: str) -> Entry:
        """Return the reranker with this name, or the only one if `name` is empty. Raises BadInput."""
        name = name.removesuffix(":latest")
        entries = await asyncio.to_thread(self._shelf.entries)
        rank = [entry for entry in entries if entry.model.ranks]
        there = ", ".join(entry.name for entry in rank)
        if name in ("", "default"):
            if len(rank) > 1:
                raise BadInput("reranker_unnamed", there=there)
            if not rank:
                raise BadInput("reranker_missing")
            return rank[0]
        entry = await asyncio.to_thread(self._shelf.get, name)
        if not entry.model.ranks:
            if not rank:
                raise BadInput("model_ranks_not_alone", name=entry.name)
            raise BadInput("model_ranks_not", name=entry.name, there=there)
        return entry

    def plan(self, entry: Entry, order: requests.PlanModel) -> LoadedEmbedder:
        """Return a description of the model as it would be loaded. Raises BadInput or DoesNotFit."""
        return EmbedderPlacement(entry, self._planned(entry.model, order)).describe()

    async def load(self, entry: Entry, order: requests.PlanModel, report: Report) -> LoadEmbedderResponse:
        """Load a model at the user's request. It stays loaded until it is unloaded or a chat model needs its memory.

        Raises AppError.
        """
        async with self._turn:
            held = await self._ready(entry, order, report)
            self._keep()
            held.wished = True
            self._changed()
            return LoadEmbedderResponse(held.describe())

    async def embed(
        self,
        entry: Entry,
        texts: Sequence[Text],
        size: int | None,
        *,
        cut: bool,
        read: Callable[[int], None] = lambda _: None,
    ) -> Embedded:
        """Return one vector per text. `read` is called with the token count of each text. Raises BadInput, DoesNotFit,
        Damaged or StageLost."""
        if size is not None and size > entry.model.width:
            raise BadInput("embedding_size", most=entry.model.width)

        async def one(embedder: Embedder, text: Text) -> Vector:
            return await embedder.embed(text, size or embedder.width, cut=cut)

        vectors = await self._each(entry, texts, one, lambda vector: read(vector.n_tokens))
        return Embedded(entry.name, vectors)

    async def rank(
        self, entry: Entry, query: str, texts: Sequence[str], read: Callable[[int], None] = lambda _: None
    ) -> Ranked:
        """Return the relevance of each text to the query. `read` and the errors are those of `embed`."""

        async def one(embedder: Embedder, text: str) -> Score:
            return await embedder.rank(query, text)

        scores = await self._each(entry, texts, one, lambda score: read(score.n_tokens))
        return Ranked(entry.name, scores)

    async def unload(self, model_id: str | None = None) -> str | None:
        """Unload the model with this ID, or any model if None, and immediately end its load or requests. Return the
        model's name."""
        was = self._coming or (self.held.entry if self.held else None)
        if was is None or model_id not in (None, was.model.id):
            return None
        self._n_ending += 1
        try:
            self._end()
            async with self._turn:
                await self._close()
        finally:
            self._n_ending -= 1
        return was.name

    def close(self) -> None:
        """End all work and refuse new loads. Call `unload` to wait until the work has ended."""
        self._n_ending += 1
        self._end()

    async def make_room(self, own_bytes: int) -> None:
        """Unload the embedding model if it does not fit next to a chat model of this size. A load or sample check
        is stopped, but the text in progress is finished.
        """
        async with self._spare_memory.reserve():
            await self._make_room(own_bytes)

    async def _make_room(self, own_bytes: int) -> None:
        held = self.held
        if held is None:
            return
        here, taken = self._here()
        if max(own_bytes, taken) + held.total_bytes <= here.lends_bytes:
            return
        self._stop.set()
        async with self._turn:
            await self._close()

    async def _each(
        self,
        entry: Entry,
        texts: Sequence[T],
        compute: Callable[[Embedder, T], Awaitable[R]],
        count: Callable[[R], None],
    ) -> tuple[R, ...]:
        """Return the result of `compute` for each text. Concurrent requests take turns. `count` is called with each
        result as it becomes available."""
        self._count(1)
        try:
            async with self._turn:
                self._keep()
                try:
                    return await self._all(entry, texts, compute, count)
                finally:
                    self._rest()
        finally:
            self._count(-1)

    async def _all(
        self,
        entry: Entry,
        texts: Sequence[T],
        compute: Callable[[Embedder, T], Awaitable[R]],
        count: Callable[[R], None],
    ) -> tuple[R, ...]:
        order = requests.PlanModel(model=entry.name)
        now = self.held
        if now is not None and now.wished and now.entry.model.id == entry.model.id:
            order = requests.PlanModel(model=entry.name, context=now.plan.workload.context)
        held = await self._ready(entry, order, lambda _: None)
        assert held.embedder is not None
        made: list[R] = []
        for text in texts:
            if self._stop.is_set():  # a chat model may be waiting for this memory, and a text takes long
                raise StageLost("embedding_gave_way", model=entry.name)
            try:
                made.append(await compute(held.embedder, text))
            except BadInput as error:
                if error.reason.code != "numbers_not_finite":
                    raise
                raise blame_model(error, entry.name) from None
            except StageLost as error:
                if error.reason.code not in DIED:
                    raise
                log.warning("%s is loaded again because its worker died: %s", entry.name, error.reason)
                held = await self._ready(entry, order, lambda _: None)
                assert held.embedder is not None
                try:
                    made.append(await compute(held.embedder, text))
                except StageLost as error:  # if the worker was stopped, that is the reason to report
                    if error.reason.code != "worker_crashed":
                        raise
                    facts = death_facts(error.reason)
                    raise StageFailed("answer_ends_process", **facts) from None
            count(made[-1])
        return tuple(made)

    async def _ready(self, entry: Entry, order: requests.PlanModel, report: Report) -> EmbedderPlacement:
        stopped = StageLost("load_stopped", model=entry.name)
        if self._n_ending:
            raise stopped
        if self._held is not None and self._held.serves(entry.model, _context(entry.model, order)):
            return self._held
        self._stop.clear()
        self._coming = entry
        try:
            return await run_until(self._stop, self._loaded(entry, order, report), stopped)
        finally:
            self._coming = None

    async def _loaded(self, entry: Entry, order: requests.PlanModel, report: Report) -> EmbedderPlacement:
        entry = await in_thread(
            partial(self._shelf.verify, entry), lambda done, total: report(hashing_progress(done, total))
        )
        plan = self._planned(entry.model, order)  # raises before the loaded model is given up
        await self._close()
        held = self._held = EmbedderPlacement(entry, plan)
        self._changed()
        begun, context = time.monotonic(), plan.workload.context
        try:
            async with self._spare_memory.reserve():
                held.embedder = await Embedder.open(entry.path, context, self._threads, held.total_bytes)
        except BaseException as error:
            self._held = None
            if isinstance(error, AppError):
                raise blame_model(error, entry.name) from error
            raise
        finally:
            held.seconds = time.monotonic() - begun
            self._changed()
        log.info("%s is loaded as %s", entry.name, "a reranker" if entry.model.ranks else "an embedding model")
        return held

    def _planned(self, model: Model, order: requests.PlanModel) -> Plan:
        """Plan the whole model on this machine next to the chat models. Raises BadInput or DoesNotFit."""
        here, taken = self._here()
        if order.split is not None or order.shape not in (None, "one"):
            raise BadInput("embedding_only_whole", model=model.name)
        if here.id in order.without:
            raise BadInput("host_not_left_out", machine=here.name)
        most = devices.memory().total_bytes if order.anyway else here.lends_bytes
        work = Workload(_context(model, order))
        whole = planned_stage(here, Role.WHOLE, Layers(0, model.n_layers), model, work)
        reading = embedding_work_bytes(model.width, model.n_vocab, work.context)
        whole = replace(whole, work_bytes=reading)
        if whole.total_bytes > (room := max(0, most - taken)):
            raise DoesNotFit("embedding_no_room", model=model.name, need_bytes=whole.total_bytes, free_bytes=room)
        why = Reason("unforecast_ranks" if model.ranks else "unforecast_embeds", {"model": model.name})
        return Plan((whole,), work, (why,), machines=(here,))

    async def _close(self) -> None:
        self._keep()
        held, self._held = self._held, None
        if held is not None and held.embedder is not None:
            await held.embedder.close()
            self._changed()

    def _end(self) -> None:
        self._stop.set()
        if self._held is not None and self._held.embedder is not None:
            self._held.embedder.kill()

    def _count(self, more: int) -> None:
        before, self.n_asks = self.n_asks, self.n_asks + more
        if not (before and self.n_asks):  # only for the first and the last request
            self._changed()

    def _keep(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _rest(self) -> None:
        if self._held is not None and not self._held.wished:
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._give_back)

    def _give_back(self) -> None:
        self._end()
        self._held = None
        self._changed()


def _context(model: Model, order: requests.PlanModel) -> int:
    return min(order.context or MOST_CONTEXT, MOST_CONTEXT, model.context_length)
