"""The host's side: models placed over the pool, kept while they are wanted, asked by anybody here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, aclosing, suppress
from functools import partial
from typing import Any

import msgspec

from app.api import requests
from app.catalog.shelf import GUIDE, Entry, Shelf
from app.core.errors import AppError, BadInput, Fact, Reason, StageLost
from app.core.household.household import Described
from app.core.ids import MachineId
from app.core.planner.advice import advise
from app.core.planner.placement import ONE_PIPELINE, Plan
from app.core.planner.placement_change import kept_runs
from app.core.recovery.recovery import Notice
from app.inference.pipeline.completion import Delta, GenerationRequest
from app.machine.hardware.cores import Threads
from app.node.cancellation import in_thread
from app.node.control.asking import always, by_another, delta_json, question_of
from app.node.control.ndjson import Progress, hashing, with_progress
from app.node.journal import Journal
from app.node.models.embeddings import Embeddings
from app.node.models.load_queue import Load, LoadQueue
from app.node.models.load_retries import LoadRetries
from app.node.models.loaded_models import MOST_MODELS, HostMemory, LoadedModels, alive, releases, to_load, with_others
from app.node.models.outcomes import Outcomes, counted
from app.node.placement.failover import Option, notice_json
from app.node.placement.placement import Placement
from app.node.placement.placement_state import IdleTracker
from app.node.placement.stages import Reservation, Sources
from app.node.planning.planner_inputs import PlannerInputs, Speeds
from app.node.planning.planning import BATCH_ROWS, Planner, lends
from app.node.snapshot import plan_json, reason_json, with_limits

log = logging.getLogger(__name__)

Known = tuple[str, int, int, str, str]  # name, what it lends, what is used, what it does, engine
Json = dict[str, Any]
Ask = Callable[[Placement], Awaitable[GenerationRequest]]
STOPPED = frozenset({"load_stopped", "node_stops"})  # by somebody, on purpose

# Where a model that was placed once may go again: as it was ordered, if that can be, or else.


class Replanner:
    """What other models hold stays theirs, but for what lies ahead of a loss: one that is lost needs it more."""

    def __init__(self, planner: Planner, outlook: PlannerInputs, loaded: LoadedModels) -> None:
        self._planner, self._outlook, self._loaded = planner, outlook, loaded

    async def order(self, lost: Placement) -> requests.LoadModel:
        """How a lost model was loaded; without its split when the machines for that are gone."""
        try:
            back = releases([lost], self._loaded.but(lost))
            await self._planner.plan(lost.entry.model, lost.order, back, {})
        except AppError:
            return msgspec.structs.replace(lost.order, split=None, shape=None)
        return lost.order

    async def options(
        self, running: Placement, without: frozenset[MachineId], part: Plan | None = None
    ) -> list[Option]:
        """Where lost layers, or those of a part, may go: as ordered, if that can be, or else. Raises AppError."""
        entry, was = running.entry, running.order
        shape = None if running.state.is_several else was.shape  # of one of several, the split
        order = msgspec.structs.replace(was, without=[*was.without, *without], shape=shape)
        speeds = await self._outlook.speeds(entry, BATCH_ROWS, lambda _: None, known_only=True)
        back = releases([running], self._loaded.but(running) if running.news else ())
        given = entry.model, order, back, speeds, None, ONE_PIPELINE
        try:
            chosen = await self._planner.plan(*given)
        except AppError:
            if order.split is None and order.shape is None:
                raise
            order = msgspec.structs.replace(order, split=None, shape=None)
            chosen = await self._planner.plan(given[0], order, *given[2:])
        kept = await asyncio.to_thread(kept_runs, part or running.plan, chosen, entry.model)
        return [(one, plan_json(one, entry.model, lends(one))) for one in (chosen, *kept)]


# What lenders told last, as far as plans depend on it: other news of them is no reason to plan anew.


class LenderChanges:
    """Of those that are linked. Watts and degrees change all the time."""

    def __init__(self) -> None:
        self._known: dict[MachineId, Known] = {}

    def is_new(self, told: Described) -> bool:
        """Whether a plan may be another one after this."""
        about = (told.name, told.lends_bytes, told.used_bytes, told.lending, told.about.engine)
        before, self._known[told.id] = self._known.get(told.id), about
        return about != before

    def left(self, machine: MachineId) -> None:
        """When it comes again, that is news, whatever it says."""
        self._known.pop(machine, None)


def wants_back(told: Described) -> StageLost | None:
    """What ends a run there, if its owner takes the memory back."""
    if told.lending != "draining":
        return None
    return StageLost("lend_taken_back", machine=told.name, why=told.lending_reason or "")


class ModelManager:
    """Holds one model, or a few beside each other. A load first ends those before, unless it comes beside them."""

    def __init__(
        self,
        loaded: LoadedModels,
        shelf: Shelf,
        sources: Callable[[Reservation], Sources],
        outlook: PlannerInputs,
        threads: Threads,
        group: asyncio.TaskGroup,
        journal: Journal,
        changed: Callable[[], None],
    ) -> None:
        self.loaded, self._quiet = loaded, IdleTracker()
        here = lambda: self.rooms.here()  # noqa: E731, PLW0108  made later
        self.embeddings = Embeddings(shelf, here, threads.begin or threads.most, changed, outlook.checks)
        self.rooms: HostMemory = HostMemory(self.loaded, outlook, self.embeddings.make_room, self._quiet)
        self._shelf = shelf
        self._sources = sources
        self.outlook, self._planner = outlook, Planner(outlook, threads)
        self._elsewhere = Replanner(self._planner, outlook, self.loaded)
        self._outcomes, self._lender_news = Outcomes(outlook, group, changed), LenderChanges()
        self._group, self._journal, self._changed = group, journal, changed
        self._loads = LoadQueue(self.loaded, journal)
        self._load_failed: Reason | None = None  # why what was to be loaded last is not
        self.n_asks = 0  # answers that are made or wanted
        self.rested: Callable[[], None] = lambda: None  # an answer is over
        self.ended: Callable[[Json], None] = lambda _: None  # it was made: its last line
        self._n_measuring = 0  # plans and loads that measure now

    def busy(self) -> bool:
        """Whether an answer is made or wanted, or a model comes or goes; a load that only measures yet
        is no reason not to measure."""
        wanted = self.n_asks > 0 or self._loads.turn.locked() or self.embeddings.n_asks > 0
        return self.loaded.answering or (wanted and not self._n_measuring)

    @property
    def loading(self) -> bool:
        """Whether a model is on its way, wished by a person or brought by a question."""
        return len(self._loads) > 0

    async def plan(self, order: requests.PlanModel, report: Progress) -> Json:
        """The placement a load would choose now, and what would help it most. Raises DoesNotFit or BadInput."""
        entry = await asyncio.to_thread(self._shelf.get, order.model)
        if not entry.model.writes:
            return self.embeddings.plan(entry, order)
        stays = self._stays(entry, order)
        await self._planner.plan(entry.model, order, self.released(stays), {})
        speeds = await self._speeds(entry, order, report, measure=True)
        chosen = await self._planner.plan(entry.model, order, self.released(stays), speeds)
        chosen = with_others(chosen, stays)
        host, *lenders = chosen.machines
        helps = await asyncio.to_thread(advise, host, lenders, entry.model, chosen.workload, chosen)
        return plan_json(chosen, entry.model, lends(chosen), helps)

    async def load(self, order: requests.LoadModel, report: Progress) -> Json:
        """Place the model and wait until it answers. Cancelling it leaves nothing loaded. Vectors come beside."""
        entry = await asyncio.to_thread(to_load, self._shelf, order, self.loaded.names)
        if not entry.model.writes:
            return await self.embeddings.load(entry, order, report)
        self.outlook.failures.forget()
        try:
            loading = self._loaded(entry, order, report)
            running = await self._loads.stoppable(Load(entry.name), loading)
        except AppError as error:
            if entry.name != GUIDE and error.reason.code not in STOPPED:
                facts: dict[str, Fact] = {"model": entry.name, "why": error.reason}
                self._load_failed = Reason("last_load_failed", facts)
                self._changed()  # nobody answers now, and every face is to say so
            raise
        return {"loaded": running.json()}

    def forget_failed(self, name: str) -> None:
        """The model of that name is removed: that it could not be loaded stands in nobody's way any more."""
        if self._load_failed is not None and self._load_failed.facts["model"] == name:
            self._load_failed = None
            self._changed()

    async def unload(self, name: str | None = None) -> list[str]:
        """Give memory back, at once, of this model or of all: loads and answers under way end. What was there."""
        only = await asyncio.to_thread(self._shelf.get, name) if name else None
        self._load_failed = None
        vectors = await self.embeddings.unload(only.model.id if only else None)
        was = self._end_soon(only.name if only else None)
        for over in self._loads.stop(only.name if only else None):
            await over.wait()
        await self._end(self._end_soon(only.name if only else None))
        return [*(one.entry.name for one in was), *([vectors] if vectors else [])]

    def without(self, machine: MachineId, why: StageLost) -> None:
        """That machine is no longer there for us: what it holds of placements is lost."""
        for running in self.loaded:
            if running.uses(machine):
                running.give_up(why, machine)

    def lender_told(self, told: Described) -> None:
        """A lender that drains gets its memory back: its answers go on without it, or it waits for them."""
        is_new, why = self._lender_news.is_new(told), wants_back(told)
        for running in self.loaded:
            if is_new:
                running.household_changed()
            running.give_up_when_unused(told.id, why)
            if why is not None and running.is_ready and running.uses(told.id):
                leaving = running.leave(told.id, why)
                self._group.create_task(leaving, name=f"do without {told.name}")

    def lender_left(self, machine: MachineId) -> None:
        """Its link has ended."""
        self._lender_news.left(machine)

    def close(self) -> None:
        """End what is under way and load nothing any more; `unload` then waits for the end."""
        self.embeddings.close()
        self._loads.close()
        self._end_soon()

    def ask(self, order: requests.Ask) -> AsyncGenerator[Json, None]:
        """One answer as lines: progress while a model loads first, deltas, and what it cost."""
        return self.answered(order.model, always(question_of(order)))

    async def answered(self, wanted: str | None, ask: Ask, *, brings: bool = True) -> AsyncGenerator[Json, None]:
        """As `ask`, for a question that depends on the model. Nothing is loaded for one that `brings` none.

        The first line says so where another model answers than was named, or the Guide unasked.
        """
        self.n_asks += 1
        try:
            with ExitStack() as use:
                running, told = self._at_hand(wanted, use), ""
                if running is None and brings:
                    told = await self._comes(wanted)
                    if told and (words := by_another(wanted, told)):
                        yield {"by": {"model": told, "text": words}}
                if running is None:
                    work = partial(self._brought, wanted, brings, use)
                    async with aclosing(with_progress(work)) as lines:
                        async for line in lines:
                            if "progress" in line:
                                yield line
                            running = line.get("done")
                if running is None:
                    there = ", ".join(self.loaded.names) or Reason("none")
                    raise BadInput("api_model_not_loaded", name=wanted or GUIDE, loaded=there)
                words = by_another(wanted, running.entry.name)
                if words and running.entry.name != told:
                    yield {"by": {"model": running.entry.name, "text": words}}
                async with aclosing(self._answer(await ask(running), running)) as answer:
                    async for line in answer:
                        yield line
        finally:
            self.n_asks -= 1
            self.rested()
            self._changed()

    def loaded_json(self) -> Json:
        """With what each machine lends now: its owner may have chosen another limit since it was placed."""
        here = self.outlook.machines(self.released(), {})
        first, beside = self.loaded.json(lambda told: with_limits(told, *here))
        failed = self._load_failed if self.loaded.first is None else None
        told = failed and {**reason_json(failed), "model": failed.facts["model"]}
        return {"loaded": first, "beside": beside, "load_failed": told}

    def answers(self) -> Json:
        """How many answers are made, and how many wait: for their model, their text or a slot."""
        running = min(self.n_asks, self.loaded.n_answering)
        return {"running": running, "waiting": self.n_asks - running}

    def word(self, of_lending: str) -> str:
        """The state of this machine: an answer of its own is work as well."""
        own = self.answers()["running"] or self.embeddings.n_asks
        return "working" if own and of_lending in ("off", "ready", "lending") else of_lending

    async def _answer(self, question: GenerationRequest, running: Placement) -> AsyncGenerator[Json, None]:
        if running.answerer is None:
            raise BadInput("nothing_loaded")
        with (
            self._outcomes.company.joined() as guest,
            self._journal.answering(running.entry.name, question.request, question.whose) as noted,
        ):
            self._changed()
            async with aclosing(counted(running.answerer, question, self.ended)) as answer:
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

    def _at_hand(self, wanted: str | None, use: ExitStack) -> Placement | None:
        """What is ready, unless somebody waits for another in its place."""
        running = self.loaded.named(wanted)
        if running is None or not running.is_ready:
            return None
        if self._loads.turn.concerns(running, by_name=bool(wanted)):
            return None
        use.enter_context(running.in_use())
        return running

    async def _brought(self, wanted: str | None, brings: bool, use: ExitStack, report: Progress) -> Placement | None:
        """The wanted model, loaded if it is not there and may be. It stays until `use` ends."""
        first = self.loaded.first
        load = Load(wanted or (first.entry.name if first else GUIDE))
        return await self._loads.stoppable(load, self._used(wanted, load, brings, use, report))

    async def _used(
        self, wanted: str | None, load: Load, brings: bool, use: ExitStack, report: Progress
    ) -> Placement | None:
        if wanted:  # half its name may be given, and something else loaded beside it
            load.model = (await self._meant(wanted)).name
            if (running := self._at_hand(load.model, use)) is not None:
                return running
        async with self._loads.turn:
            running = self.loaded.named(load.model if wanted else None)
            entry = running.entry if running else await self._meant(wanted)
            load.model = entry.name
            if running is None or not running.is_ready:
                if not brings:
                    return None
                stays = self.loaded.but(running) if running else ()
                with self._loads.turn.sparing(stays):
                    for one in self.loaded.but(*stays):
                        if one.is_ready:
                            await one.state.unused.wait()
                    running = await self._swapped(entry, running, stays, report)
            use.enter_context(running.in_use())
            return running

    async def _comes(self, wanted: str | None) -> str:
        """The model that is loaded for this, so that it can be said before; empty where there is none."""
        if (running := self.loaded.named(wanted)) is not None:
            return running.entry.name
        with suppress(AppError):  # the load raises the same, and notes it
            return (await self._meant(wanted)).name
        return ""

    async def _meant(self, wanted: str | None) -> Entry:
        """Raises BadInput, also where a model was to be loaded and could not be: the Guide is no stand-in for it."""
        if not wanted:
            self.check_not_failed()
        there = self.loaded.names or None
        return await asyncio.to_thread(self._shelf.get, wanted or GUIDE, there)

    def check_not_failed(self) -> None:
        """Raises BadInput where nothing is loaded because the last load failed."""
        if self._load_failed is not None and self.loaded.first is None:
            raise BadInput(self._load_failed.code, **self._load_failed.facts)

    async def _swapped(
        self, entry: Entry, lost: Placement | None, stays: tuple[Placement, ...], report: Progress
    ) -> Placement:
        """Load for a question. `lost`: the placement of the same model that is to be made again."""
        if lost is None:
            brought = await self._load(entry, requests.LoadModel(model=entry.name), stays, report)
            brought.by_question = True
            return brought
        order, before = await self._elsewhere.order(lost), self.loaded.ids
        try:
            return await self._load(entry, order, stays, report)
        except BaseException:  # the next question tries again, instead of asking another model
            self.loaded.drop(lost)
            self.loaded.add(lost)
            raise
        finally:
            self.loaded.in_order(before)

    def _stays(self, entry: Entry, order: requests.PlanModel) -> tuple[Placement, ...]:
        """What a load of that leaves as it is."""
        return self.loaded.but(self.loaded.of(entry.model.id)) if order.beside else ()

    async def _loaded(self, entry: Entry, order: requests.LoadModel, report: Progress) -> Placement:
        async with self._loads.turn:
            return await self._load(entry, order, self._stays(entry, order), report)

    async def _load(
        self, entry: Entry, order: requests.LoadModel, stays: tuple[Placement, ...], report: Progress
    ) -> Placement:
        """In place of all but those that stay. In its turn only."""
        if len(alive(stays)) >= MOST_MODELS:
            raise BadInput("models_enough", most=MOST_MODELS)
        with self._loads.turn.sparing(stays), self._quiet.broken(), self._outcomes.company.joined():
            # nothing is done ahead, or learnt
            running = await self._planned_and_placed(entry, order, stays, report)
        self._load_failed = None
        return running

    async def _planned_and_placed(
        self, entry: Entry, order: requests.LoadModel, stays: tuple[Placement, ...], report: Progress
    ) -> Placement:
        entry = await in_thread(partial(self._shelf.verify, entry), lambda done, total: report(hashing(done, total)))
        # refused before anything is measured, and before what is loaded is given up
        await self._planner.plan(entry.model, order, self.released(stays), {})
        speeds = await self._speeds(entry, order, report, measure=order.split is None)
        await self._planner.plan(entry.model, order, self.released(stays), speeds)
        await self._end(goes := self.loaded.but(*stays))
        tries = LoadRetries(entry.name)
        while True:
            try:
                running = await self._place(entry, order, goes, speeds, report, tries)
                break
            except AppError as error:
                if not tries.go_on(error):
                    raise tries.told(error) from error
                log.warning("%s is loaded again: %s", entry.name, error.reason)
        for event in tries.events(running.plan):
            self._journal.note(event)
        return running

    async def _place(
        self,
        entry: Entry,
        order: requests.LoadModel,
        gone: Sequence[Placement],
        speeds: Speeds,
        report: Progress,
        tries: LoadRetries,
    ) -> Placement:
        async with self.rooms.choosing:
            back = releases(gone, self._loads.turn.spared)
            chosen = await self._chosen(entry, order, back, speeds, tries)
            tries.begin(chosen)
            chosen = with_others(chosen, self._loads.turn.spared)
            described = plan_json(chosen, entry.model, lends(chosen))
            sizes = self._planner.sizes(chosen, order, entry.model)
            running = Placement(entry, order, chosen, described, sizes, self._quiet)
            self.loaded.add(running, order.first)
        self._changed()
        sources = self._sources(self.rooms.of(running))
        replan = partial(self._elsewhere.options, running)
        work = running.run(sources, report, self._changed, replan)
        task = self._group.create_task(work, name=f"placement of {entry.name}")
        try:
            await running.ready()
        except BaseException:
            tries.lost = running.failed
            running.stop()
            self._changed()
            await asyncio.wait({task})
            raise
        finally:
            if not running.is_ready:
                self.loaded.drop(running)
            self._changed()
            self.rested()
        return running

    async def _chosen(
        self, entry: Entry, order: requests.LoadModel, back: Mapping[MachineId, int], speeds: Speeds, tries: LoadRetries
    ) -> Plan:
        """Where it shall be: where that can be, without machines that failed it just now. Raises AppError."""
        often = self.outlook.failures.left_out()
        for failed in dict.fromkeys((often | tries.without, tries.without)):
            if not (failed := failed - set(order.without)):
                continue
            fewer = msgspec.structs.replace(order, without=[*order.without, *sorted(failed)])
            try:
                found = await self._planner.plan(entry.model, fewer, back, speeds, tries.limits)
            except AppError as error:
                log.info("it cannot be without machines that failed: %s", error.reason)
            else:
                return tries.explained(found)
        tries.check_may_repeat()
        return await self._planner.plan(entry.model, order, back, speeds, tries.limits)

    def give_back(self, running: Placement) -> None:
        """Nobody asks it: it answers nothing from now on, and its memory is given back in a moment."""
        running.stop()
        self._group.create_task(self._end([running]), name=f"unload {running.entry.name}")

    def _end_soon(self, name: str | None = None) -> list[Placement]:
        """Those of this name, or all, stop at once: their answers end."""
        ending = [one for one in self.loaded if name in (None, one.entry.name)]
        for one in ending:
            one.stop()
        return ending

    async def _end(self, goes: Iterable[Placement]) -> None:
        """Their memory is given back when this returns."""
        for one in (goes := list(goes)):
            one.stop()
        self._changed()
        for one in goes:
            await one.ended.wait()
            self.loaded.drop(one)
            self._changed()

    def released(self, stays: Sequence[Placement] = ()) -> Mapping[MachineId, int]:
        """What machines get back of what is loaded now; of these, only what lies ahead of a loss."""
        return releases(self.loaded.but(*stays), stays)

    async def _speeds(self, entry: Entry, order: requests.PlanModel, report: Progress, *, measure: bool) -> Speeds:
        """How fast each machine is; where nothing is to be chosen, only as far as that is known."""
        measure = measure if order.measure is None else order.measure
        self._n_measuring += measure
        try:
            return await self.outlook.speeds(entry, BATCH_ROWS, report, known_only=not measure, without=order.without)
        finally:
            self._n_measuring -= measure
