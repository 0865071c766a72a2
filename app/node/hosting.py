"""The host's side: one model placed over the pool, kept while it is wanted, asked by anybody here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Any

import msgspec

from app.catalog.shelf import GUIDE, Entry, Shelf
from app.catalog.stage_store import StageStore
from app.core.advice import advise
from app.core.errors import AppError, BadInput, DoesNotFit, Reason, Refused, StageLost, Unreachable
from app.core.household import Told
from app.core.ids import MachineId
from app.core.moving import kept_runs
from app.core.placement import ONE_PIPELINE, Candidate
from app.core.plan import Plan
from app.core.reasons import said
from app.core.recovery import MAX_RECOVERIES, Notice
from app.inference.chats import Delta, Question
from app.node import requests as asked
from app.node.answers import short_lender, worth_again
from app.node.asking import always, delta_json, question_of
from app.node.company import Company
from app.node.embeddings import Embeddings
from app.node.journal import Journal
from app.node.lender_news import LenderNews
from app.node.ndjson import Progress, hashing, with_progress
from app.node.opening import Sources
from app.node.outcomes import Outcomes
from app.node.outlook import Outlook, Speeds
from app.node.placing import Lenders
from app.node.planning import BATCH_ROWS, Planner, lends
from app.node.rebuilding import Option, notice_json
from app.node.running import Running
from app.node.snapshot import plan_json
from app.node.stoppable import in_thread, unless

log = logging.getLogger(__name__)

Json = dict[str, Any]


class Hosting:
    """Holds one model at a time. A new load, or `unload`, first ends the one before."""

    def __init__(
        self,
        shelf: Shelf,
        stages: StageStore,
        lenders: Lenders,
        outlook: Outlook,
        threads: int,
        group: asyncio.TaskGroup,
        journal: Journal,
        changed: Callable[[], None],
    ) -> None:
        self.embeddings = Embeddings(shelf, self._here, threads, changed)
        self._shelf = shelf
        self._sources = Sources(shelf, stages, lenders, self.embeddings.make_room)
        self.outlook, self._planner = outlook, Planner(outlook, threads)
        self._outcomes, self._lender_news = Outcomes(outlook, group), LenderNews()
        self._group, self._journal, self._changed = group, journal, changed
        self._turn = asyncio.Lock()  # one load or unload at a time
        self._stops: dict[asyncio.Event, str] = {}  # of loads that wait or are under way: of what
        self._closed = False
        self.n_asks = 0  # answers that are made or wanted
        self.rested: Callable[[], None] = lambda: None  # an answer is over
        self.ended: Callable[[Json], None] = lambda _: None  # it was made: the last line of it
        self._company = Company()
        self._n_measuring = 0  # plans and loads that measure speeds and links now
        self.running: Running | None = None

    def busy(self) -> bool:
        """Whether an answer is made or wanted, or a model comes or goes; a load that only measures yet
        is no reason not to measure."""
        wanted = self.n_asks > 0 or self._turn.locked() or self.embeddings.n_asks > 0
        return self.answering or (wanted and not self._n_measuring)

    @property
    def answering(self) -> bool:
        """Whether an answer is computed now."""
        return self.running is not None and self.running.n_answering > 0

    async def plan(self, order: asked.PlanModel, report: Progress) -> Json:
        """The placement a load would choose now, and what would help it most. Raises DoesNotFit or BadInput."""
        entry = await asyncio.to_thread(self._shelf.get, order.model)
        if not entry.model.writes:
            return self.embeddings.plan(entry, order)
        await self._planner.plan(entry.model, order, self.released(), {})
        speeds = await self._speeds(entry, order, report, measure=True)
        chosen = await self._planner.plan(entry.model, order, self.released(), speeds)
        host, *lenders = chosen.machines
        help_most = await asyncio.to_thread(
            advise, host, lenders, entry.model, chosen.workload, chosen
        )
        return plan_json(chosen, entry.model, lends(chosen), help_most)

    async def load(self, order: asked.LoadModel, report: Progress) -> Json:
        """Place the model and wait until it answers. Cancelling it leaves nothing loaded. Vectors come beside."""
        entry = await asyncio.to_thread(self._shelf.get, order.model, "" if self.running else None)
        if not entry.model.writes:
            return await self.embeddings.load(entry, order, report)
        running = await self._stoppable(entry.name, self._loaded(entry, order, report))
        return {"loaded": running.json()}

    async def unload(self, name: str | None = None) -> list[str]:
        """Give memory back, at once, of this model or of all: loads and answers under way end. What was there."""
        only = await asyncio.to_thread(self._shelf.get, name) if name else None
        vectors = await self.embeddings.unload(only.model.id if only else None)
        name, was = only.name if only else None, self.running.entry.name if self.running else None
        self._stop_all(name)
        if name not in (None, was):
            return [vectors] if vectors else []
        async with self._turn:
            mine = name is None or (self.running is not None and self.running.entry.name == name)
            was = (await self._unload() if mine else None) or was
        return [one for one in (was, vectors) if one]

    def without(self, machine: MachineId, why: StageLost) -> None:
        """That machine is no longer there for us: what it holds of the placement is lost."""
        if self.running is not None and self.running.uses(machine):
            self.running.give_up(why, machine)

    def lender_told(self, told: Told) -> None:
        """A lender that drains gets its memory back: its answers go on without it, or it waits for them."""
        is_new, running = self._lender_news.is_new(told), self.running
        if running is None:
            return
        if is_new:
            running.household_changed()
        why = None
        if told.lending == "draining":
            sentence = said(told.lending_reason) if told.lending_reason else ""
            why = StageLost("lend_taken_back", machine=told.name, why=sentence)
        running.give_up_when_unused(told.id, why)
        if why is not None and running.is_ready and running.uses(told.id):
            leaving = running.leave(told.id, why)
            self._group.create_task(leaving, name=f"do without {told.name}")

    def lender_left(self, machine: MachineId) -> None:
        """Its link has ended."""
        self._lender_news.left(machine)

    def close(self) -> None:
        """End what is under way and load nothing any more; `unload` then waits for the end."""
        self._closed = True
        self.embeddings.close()
        self._stop_all()

    def ask(self, order: asked.Ask) -> AsyncGenerator[Json, None]:
        """One answer as lines: progress while a model loads first, deltas, and what it cost."""
        return self.answered(order.model, always(question_of(order)))

    async def answered(
        self, wanted: str | None, ask: Callable[[Running], Awaitable[Question]]
    ) -> AsyncGenerator[Json, None]:
        """As `ask`, for a question that depends on the model."""
        self.n_asks += 1
        try:
            with ExitStack() as use:
                running = self._at_hand(wanted, use)
                if running is None:
                    work = partial(self._brought, wanted, use)
                    async with aclosing(with_progress(work)) as lines:
                        async for line in lines:
                            if "progress" in line:
                                yield line
                            running = line.get("done")
                assert running is not None
                async with aclosing(self._answer(await ask(running), running)) as answer:
                    async for line in answer:
                        yield line
        finally:
            self.n_asks -= 1
            self.rested()
            self._changed()

    def loaded_json(self) -> Json | None:
        return self.running.json() if self.running else None

    def answers(self) -> Json:
        """How many answers are made, and how many wait: for their model, their text or a slot."""
        running = min(self.n_asks, self.running.n_answering if self.running else 0)
        return {"running": running, "waiting": self.n_asks - running}

    def word(self, of_lending: str) -> str:
        """The state of this machine: an answer of its own is work as well."""
        own = self.answers()["running"] or self.embeddings.n_asks
        return "working" if own and of_lending in ("off", "ready", "lending") else of_lending

    async def _answer(self, question: Question, running: Running) -> AsyncGenerator[Json, None]:
        if running.answerer is None:
            raise BadInput("nothing_loaded")
        with (
            self._company.joined() as guest,
            self._journal.answering(running.entry.name, question.request, question.whose) as noted,
        ):
            self._changed()
            async with aclosing(running.answerer.answer(question)) as answer:
                async for part in answer:
                    if isinstance(part, Delta):
                        if noted.first is None:
                            self._changed()  # it has a slot, and waits no more
                        noted.came(len(part.token_ids))
                        yield delta_json(part)
                    elif isinstance(part, Notice):
                        yield {"recovery": notice_json(part)}
                    else:
                        ended = self._outcomes.ended(part, running, guest.alone)
                        noted.done(ended, guest.alone)
                        self.ended(ended)
                        yield {"done": ended}

    def _at_hand(self, wanted: str | None, use: ExitStack) -> Running | None:
        """What is ready, for a question that names no model, unless somebody waits for another."""
        running = self.running
        if wanted or running is None or not running.is_ready or self._turn.locked():
            return None
        use.enter_context(running.in_use())
        return running

    async def _brought(self, wanted: str | None, use: ExitStack, report: Progress) -> Running:
        """The wanted model, loaded if it is not there. It stays until `use` ends."""
        name = wanted or (self.running.entry.name if self.running else GUIDE)
        return await self._stoppable(name, self._used(wanted, use, report))

    async def _used(self, wanted: str | None, use: ExitStack, report: Progress) -> Running:
        async with self._turn:
            running = self.running
            if running is None or wanted:
                now = running.entry.name if running else None
                entry = await asyncio.to_thread(self._shelf.get, wanted or GUIDE, now)
            else:
                entry = running.entry
            same = running is not None and running.entry.model.id == entry.model.id
            if running is None or not (same and running.is_ready):
                if running is not None and running.is_ready:
                    await running.unused.wait()
                running = await self._swapped(entry, running if same else None, report)
            use.enter_context(running.in_use())
            return running

    async def _swapped(self, entry: Entry, lost: Running | None, report: Progress) -> Running:
        """Load for a question. `lost`: the placement of the same model that is to be made again."""
        order = await self._again(lost) if lost else asked.LoadModel(model=entry.name)
        try:
            return await self._load(entry, order, report)
        except BaseException:
            if lost is not None:  # the next question tries again, instead of asking another model
                self.running = lost
            raise

    async def _again(self, lost: Running) -> asked.LoadModel:
        """How a lost model was loaded; without its split when the machines for that are gone."""
        try:
            await self._planner.plan(lost.entry.model, lost.order, self.released(), {})
        except AppError:
            return msgspec.structs.replace(lost.order, split=None, shape=None)
        return lost.order

    async def _replan(
        self, running: Running, without: frozenset[MachineId], part: Plan | None = None
    ) -> list[Option]:
        """Where lost layers, or those of a part, may go: as ordered, if that can be, or else. Raises AppError."""
        entry, was = running.entry, running.order
        shape = None if running.is_several else was.shape  # of one of several, the split
        order = msgspec.structs.replace(was, without=[*was.without, *without], shape=shape)
        speeds = await self.outlook.speeds(entry, BATCH_ROWS, lambda _: None, known_only=True)
        given = entry.model, order, running.releases(), speeds, None, ONE_PIPELINE
        try:
            chosen = await self._planner.plan(*given)
        except AppError:
            if order.split is None and order.shape is None:
                raise
            order = msgspec.structs.replace(order, split=None, shape=None)
            chosen = await self._planner.plan(given[0], order, *given[2:])
        kept = await asyncio.to_thread(kept_runs, part or running.plan, chosen, entry.model)
        return [(one, plan_json(one, entry.model, lends(one))) for one in (chosen, *kept)]

    async def _loaded(self, entry: Entry, order: asked.LoadModel, report: Progress) -> Running:
        async with self._turn:
            return await self._load(entry, order, report)

    async def _stoppable(self, name: str, work: Coroutine[Any, Any, Running]) -> Running:
        """A load that `unload` and `close` can end while it waits, hashes or opens stages."""
        stop = asyncio.Event()
        if self._closed:
            work.close()
            raise Refused("node_stops")
        self._stops[stop] = name
        try:
            return await unless(stop, work, StageLost("load_stopped", model=name))
        except AppError as error:
            self._journal.note(Reason("log_model_failed", {"model": name, "why": said(error)}))
            raise
        except asyncio.CancelledError:
            self._journal.note(Reason("log_model_stopped", {"model": name}))
            raise
        finally:
            del self._stops[stop]

    def _stop_all(self, name: str | None = None) -> None:
        for stop, model in self._stops.items():
            if name in (None, model):
                stop.set()
        if self.running is not None and name in (None, self.running.entry.name):
            self.running.stop()

    async def _load(self, entry: Entry, order: asked.LoadModel, report: Progress) -> Running:
        entry = await in_thread(
            partial(self._shelf.verify, entry), lambda done, total: report(hashing(done, total))
        )
        # refused before anything is measured, and before what is loaded is given up
        await self._planner.plan(entry.model, order, self.released(), {})
        speeds = await self._speeds(entry, order, report, measure=order.split is None)
        released = self.released()
        await self._planner.plan(entry.model, order, released, speeds)
        await self._unload()
        limits: dict[MachineId, int] = {}
        for _ in range(MAX_RECOVERIES):
            try:
                return await self._place(entry, order, released, speeds, report, limits)
            except DoesNotFit as error:
                short = short_lender(error)
                if short is None or short[0] in limits:
                    raise
                limits |= dict([short])
            except (StageLost, Unreachable) as error:
                if not worth_again(error):
                    raise
                log.warning("%s is loaded again: %s", entry.name, error.reason)
        return await self._place(entry, order, released, speeds, report, limits)

    async def _place(
        self,
        entry: Entry,
        order: asked.LoadModel,
        released: Mapping[MachineId, int],
        speeds: Speeds,
        report: Progress,
        limits: Mapping[MachineId, int] | None = None,
    ) -> Running:
        chosen = await self._planner.plan(entry.model, order, released, speeds, limits)
        described = plan_json(chosen, entry.model, lends(chosen))
        sizes = self._planner.sizes(chosen, order, entry.model)
        running = Running(entry, order, chosen, described, sizes)
        self.running = running
        self._changed()
        work = running.run(self._sources, report, self._changed, partial(self._replan, running))
        task = self._group.create_task(work, name=f"placement of {entry.name}")
        try:
            await running.ready()
        except BaseException:
            running.stop()
            await asyncio.wait({task})
            raise
        finally:
            if not running.is_ready:
                self.running = None
            self._changed()
        return running

    async def _unload(self) -> str | None:
        running = self.running
        if running is None:
            return None
        running.stop()
        await running.ended.wait()
        self.running = None
        self._changed()
        return running.entry.name

    def released(self) -> Mapping[MachineId, int]:
        """What machines get back of what is loaded now."""
        return self.running.releases() if self.running else {}

    def _here(self) -> tuple[Candidate, int]:
        """This machine with all that its own models may use, and what the one that writes has of it."""
        host, _ = self.outlook.machines(released := self.released(), {})
        return host, released.get(host.id, 0)

    async def _speeds(
        self, entry: Entry, order: asked.PlanModel, report: Progress, *, measure: bool
    ) -> Speeds:
        """How fast each machine is; where nothing is to be chosen, only as far as that is known."""
        measure = measure if order.measure is None else order.measure
        self._n_measuring += measure
        try:
            return await self.outlook.speeds(entry, BATCH_ROWS, report, known_only=not measure)
        finally:
            self._n_measuring -= measure
