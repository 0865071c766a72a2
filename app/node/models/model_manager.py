"""The models of this host: plans and loads them, generates their answers, and unloads them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec

from app.api import plans, requests
from app.api.chat_api import OtherServer
from app.api.responses import Answer, AnsweredBy, DoneLine, LoadEmbedderResponse, LoadResponse
from app.api.snapshot import AnswerCounts, FailedLoad
from app.catalog.shelf import GUIDE, Entry, Shelf
from app.core.errors import AppError, BadInput, Fact, Reason, StageLost
from app.core.household.household import Described
from app.core.ids import MachineId
from app.core.planner.advice import advise
from app.core.planner.placement import ONE_PIPELINE, Plan
from app.core.planner.placement_change import plans_keeping_runs
from app.core.reasons import said
from app.core.recovery.recovery import Notice
from app.inference.pipeline.completion import Delta, GenerationRequest
from app.machine.hardware.cores import Threads
from app.node.cancellation import in_thread
from app.node.control.answer_conversion import AnswerPart, for_every_model, generation_request, substitution_notice
from app.node.control.json_bodies import Report, hashing_progress, with_progress
from app.node.journal import Journal
from app.node.models.embeddings import Embeddings
from app.node.models.host_memory import HostMemory, released_bytes
from app.node.models.load_queue import Load, LoadQueue, LoadRetries, wait_for_cards
from app.node.models.loaded_models import MOST_MODELS, LoadedModels, alive, entry_to_load, waiting_chats, with_neighbors
from app.node.models.outcomes import Outcomes, counted_answer, refresh_forecast
from app.node.models.tool_answers import answer_with_tools, uses_tools
from app.node.placement.failover import Option, describe_notice
from app.node.placement.placement import Placement
from app.node.placement.placement_state import IdleTracker
from app.node.placement.stages import PlacementServices, Reservation
from app.node.planning.planner_inputs import PlannerInputs, Speeds
from app.node.planning.planning import Planner, lent_bytes_by_machine, speed_conditions
from app.node.snapshot import describe_plan, with_limits, with_servers

Order = TypeVar("Order", bound=requests.PlanModel)
log = logging.getLogger(__name__)

Known = tuple[str, int, int, str, str]  # name, lent bytes, used bytes, lending state, engine
OnPrompt = Callable[[str, str, tuple[str, ...]], None]
Ask = Callable[[Placement], Awaitable[GenerationRequest]]
STOPPED = frozenset({"load_stopped", "node_stops"})  # reasons of loads that were stopped on purpose


class Replanner:
    """Finds new plans for lost models and stages.

    The other models stay loaded, but give up their standby layers, because the lost model needs that memory more.
    """

    def __init__(self, planner: Planner, planner_inputs: PlannerInputs, loaded: LoadedModels) -> None:
        self._planner, self._planner_inputs, self._load_in_turn = planner, planner_inputs, loaded

    async def order_again(self, lost: Placement) -> requests.LoadModel:
        """Return the request that loaded the lost model. If the requested split is no longer possible, it is left
        out.
        """
        try:
            back = released_bytes([lost], self._load_in_turn.except_for(lost))
            await self._planner.plan(lost.entry.model, lost.order, back, {})
        except AppError:
            return msgspec.structs.replace(lost.order, split=None, shape=None)
        return lost.order

    async def options(
        self, running: Placement, without: frozenset[MachineId], part: Plan | None = None
    ) -> list[Option]:
        """Return new plans for a placement that has lost layers. Raises AppError.

        The plans use the requested split if possible, otherwise any split. part: the current plan of the part to
        replan, or None for the whole placement.
        """
        entry, was = running.entry, running.order
        shape = None if running.state.is_replicated else was.shape  # with several pipelines, only a split is replanned
        order = msgspec.structs.replace(was, without=[*was.without, *without], shape=shape)
        speeds = await self._planner_inputs.speeds(entry, speed_conditions(order), lambda _: None, known_only=True)
        back = released_bytes([running], self._load_in_turn.except_for(running) if running.notice else ())
        inputs = entry.model, order, back, speeds, None, ONE_PIPELINE
        try:
            chosen = await self._planner.plan(*inputs)
        except AppError:
            if order.split is None and order.shape is None:
                raise
            order = msgspec.structs.replace(order, split=None, shape=None)
            chosen = await self._planner.plan(inputs[0], order, *inputs[2:])
        kept = await asyncio.to_thread(plans_keeping_runs, part or running.plan, chosen, entry.model)
        return [
            (option, describe_plan(option, entry.model, lent_bytes_by_machine(option))) for option in (chosen, *kept)
        ]


class LenderChanges:
    """Detects status changes of lenders that affect plans. Power and temperature are ignored, because they change
    constantly."""

    def __init__(self) -> None:
        self._known: dict[MachineId, Known] = {}

    def is_new(self, news: Described) -> bool:
        """Record this status, and return whether it may change plans."""
        about = (news.name, news.lends_bytes, news.used_bytes, news.lending, news.about.engine)
        before, self._known[news.id] = self._known.get(news.id), about
        return about != before

    def forget(self, machine: MachineId) -> None:
        """Forget a machine. Its next status will count as new."""
        self._known.pop(machine, None)


def memory_reclaimed(news: Described) -> StageLost | None:
    """Return the error that ends a run on this lender if its owner is taking the memory back."""
    if news.lending != "draining":
        return None
    return StageLost("lend_taken_back", machine=news.name, why=news.lending_reason or "")


class ModelManager:
    """Manages the loaded models. A load replaces the loaded models unless the user asked to load the new one next to
    them."""

    def __init__(
        self,
        loaded: LoadedModels,
        shelf: Shelf,
        sources: Callable[[Reservation], PlacementServices],
        planner_inputs: PlannerInputs,
        threads: Threads,
        group: asyncio.TaskGroup,
        journal: Journal,
        changed: Callable[[], None],
    ) -> None:
        self.loaded, self._idle = loaded, IdleTracker()
        self.memory = HostMemory(loaded, planner_inputs, self._idle)
        self.embeddings = Embeddings(
            shelf, self.memory.here, threads.begin or threads.most, changed, planner_inputs.spare_memory
        )
        self._shelf = shelf
        self._sources = sources
        self.planner_inputs, self._planner = planner_inputs, Planner(planner_inputs, threads)
        self._replanner = Replanner(self._planner, planner_inputs, self.loaded)
        self._outcomes, self._lender_changes = Outcomes(planner_inputs, group, changed), LenderChanges()
        self._group, self._journal, self._changed = group, journal, changed
        self._loads = LoadQueue(self.loaded, journal)
        self._load_failed: Reason | None = None  # why the last load failed
        self.n_asks = 0  # answers in progress or requested
        self.other_servers: Callable[[], list[OtherServer]] = list  # those that are on, for plans
        self.exact: Callable[[], bool] = lambda: False  # the owner's choice for loads that leave it open
        self.on_answer_over: Callable[[], None] = lambda: None  # called after each answer
        self.on_answer_made: Callable[[Answer], None] = lambda _: None  # called with the last line of each answer
        self._n_measuring = 0  # plans and loads that are measuring

    def busy(self) -> bool:
        """Return whether answers are running or pending, or a model is loading or unloading. A load does not count
        while it measures, because it would block its own measurement."""
        is_wanted = self.n_asks > 0 or self._loads.lock.locked() or self.embeddings.n_asks > 0
        return self.loaded.answering or (is_wanted and not self._n_measuring)

    @property
    def loading(self) -> bool:
        """Return whether a model is loading, at the user's request or for an answer."""
        return len(self._loads) > 0

    async def refresh_forecasts(self) -> None:
        """Recompute the forecasts of all loaded models from the current measurements."""
        for running in self.loaded:
            conditions = speed_conditions(running.order)
            speeds = await self.planner_inputs.speeds(running.entry, conditions, lambda _: None, known_only=True)
            host, lenders = self.planner_inputs.machines({}, speeds, running.entry.model.family)
            refresh_forecast(running, (host, *lenders))
        self._changed()

    async def plan(self, order: requests.PlanModel, report: Report) -> plans.Plan:
        """Return the plan that a load would choose now, and advice on what would improve it most. Raises DoesNotFit or
        BadInput."""
        order = self._with_settings(order)
        entry = await asyncio.to_thread(self._shelf.get, order.model)
        if not entry.model.writes:
            return self.embeddings.plan(entry, order)
        stays = self._stays(entry, order)
        await self._planner.plan(entry.model, order, self.released(stays), {})
        speeds = await self._speeds(entry, order, report, measure=True)
        chosen = await self._planner.plan(entry.model, order, self.released(stays), speeds)
        chosen = with_neighbors(chosen, stays)
        host, *lenders = chosen.machines
        helps = await asyncio.to_thread(advise, host, lenders, entry.model, chosen.workload, chosen)
        described = describe_plan(chosen, entry.model, lent_bytes_by_machine(chosen), helps)
        return with_servers(described, self.other_servers())

    async def load(self, order: requests.LoadModel, report: Report) -> LoadResponse | LoadEmbedderResponse:
        """Load a model and wait until it can answer. A canceled load leaves nothing loaded. Embedding models are
        loaded next to the chat models."""
        order = self._with_settings(order)
        entry = await asyncio.to_thread(entry_to_load, self._shelf, order, self.loaded.names)
        if not entry.model.writes:
            return await self.embeddings.load(entry, order, report)
        self.planner_inputs.failures.forget()
        try:
            loading = self._load_in_turn(entry, order, report)
            running = await self._loads.run(Load(entry.name), loading)
        except AppError as error:
            if entry.name != GUIDE and error.reason.code not in STOPPED:
                facts: dict[str, Fact] = {"model": entry.name, "why": error.reason}
                self._load_failed = Reason("last_load_failed", facts)
                self._changed()  # no model answers now, and the window must show that
            raise
        return LoadResponse(running.describe())

    def forget_failed_load(self, name: str) -> None:
        """Forget that loading this model failed. Call this when the model is removed."""
        if self._load_failed is not None and self._load_failed.facts["model"] == name:
            self._load_failed = None
            self._changed()

    async def unload(self, name: str | None = None) -> list[str]:
        """Unload this model, or all models, and immediately end loads and answers. Return the names of the models."""
        only = await asyncio.to_thread(self._shelf.get, name) if name else None
        self._load_failed = None
        vectors = await self.embeddings.unload(only.model.id if only else None)
        was = self._stop_placements(only.name if only else None)
        for over in self._loads.stop(only.name if only else None):
            await over.wait()
        await self._end(self._stop_placements(only.name if only else None))
        return [*(placement.entry.name for placement in was), *([vectors] if vectors else [])]

    async def undo_move(self, name: str | None = None) -> str:
        """Move the layers of a model back to the machines that had them before the last automatic move, and keep
        them there. Return the model's name. Raises BadInput.
        """
        entry = await asyncio.to_thread(self._shelf.get, name) if name else None
        running = self.loaded.by_id(entry.model.id) if entry else self.loaded.first
        if running is None:
            raise BadInput("move_none", model=entry.name) if entry else BadInput("nothing_loaded")
        running.state.undo_move()
        return running.entry.name

    def machine_lost(self, machine: MachineId, why: StageLost) -> None:
        """Treat a machine and the layers it holds as lost."""
        for running in self.loaded:
            if running.uses(machine):
                running.give_up(why, machine)

    def lender_changed(self, news: Described) -> None:
        """Handle the new status of a lender. If its owner wants the memory back, running answers move to other
        machines. If they cannot move, the lender waits until they end.
        """
        is_new, why = self._lender_changes.is_new(news), memory_reclaimed(news)
        for running in self.loaded:
            if is_new:
                running.household_changed()
            running.give_up_when_unused(news.id, why)
            if why is not None and running.is_ready and running.uses(news.id):
                leaving = running.leave(news.id, why)
                self._group.create_task(leaving, name=f"vacate {news.name}")

    def lender_left(self, machine: MachineId) -> None:
        """Record that the link to a lender has closed."""
        self._lender_changes.forget(machine)

    def close(self) -> None:
        """End all work and refuse new loads. Call `unload` to wait until the work has ended."""
        self.embeddings.close()
        self._loads.close()
        self._stop_placements()

    def ask(self, order: requests.Ask, on_prompt: OnPrompt | None = None) -> AsyncGenerator[AnswerPart, None]:
        """Yield the parts of one answer: progress if a model must be loaded first, then deltas and a summary.

        on_prompt: see GenerationRequest. It is not called for answers that may call tools.
        """
        if uses_tools(order):
            return answer_with_tools(order, self.answer)
        return self.answer(order.model, for_every_model(replace(generation_request(order), on_prompt=on_prompt)))

    async def answer(self, name: str | None, ask: Ask, *, may_load: bool = True) -> AsyncGenerator[AnswerPart, None]:
        """Yield the parts of an answer.

        ask: returns the generation request for the chosen model.
        may_load: whether a model may be loaded for the answer.

        If the model is not the requested one, or if none was requested and the Guide answers, the first part says
        so.
        """
        self.n_asks += 1
        try:
            with ExitStack() as use:
                running, announced = self._ready_placement(name, use), ""
                if running is None and may_load:
                    announced = await self._name_to_load(name)
                    if announced and (words := self.notice(name, announced)):
                        yield AnsweredBy(announced, words)
                if running is None:
                    work = partial(self._placement_for, name, may_load, use)
                    async with aclosing(with_progress(work)) as lines:
                        async for line in lines:
                            if isinstance(line, DoneLine):
                                running = line.done
                            else:
                                yield line.progress
                if running is None:
                    there = ", ".join(self.loaded.names) or Reason("none")
                    raise BadInput("api_model_not_loaded", name=name or GUIDE, loaded=there)
                words = self.notice(name, running.entry.name)
                if words and running.entry.name != announced:
                    yield AnsweredBy(running.entry.name, words)
                async with aclosing(self._answer(await ask(running), running)) as answer:
                    async for part in answer:
                        yield part
        finally:
            self.n_asks -= 1
            self.on_answer_over()
            self._changed()

    def notice(self, named: str | None, model: str) -> str:
        """Return a notice if the answering model is not the one that the user expects, otherwise "".

        If the request names no model, the user expects the first loaded model, provided that it was loaded on purpose.
        """
        first = self.loaded.first
        if not named and first is not None and not first.loaded_by_request:
            return ""
        return substitution_notice(named, model)

    def describe_loaded(self) -> tuple[plans.LoadedModel | None, list[plans.LoadedModel]]:
        """Return descriptions of the first loaded model and of the others, with the memory that each machine currently
        lends."""
        released, first = self.released(), self.loaded.first

        def described(running: Placement) -> plans.LoadedModel:
            here = self.planner_inputs.machines(released, {}, running.entry.model.family)
            return with_limits(running.describe(), *here)

        further = [described(placement) for placement in self.loaded.except_for(first)]
        return described(first) if first else None, further

    def failed_load(self) -> FailedLoad | None:
        """Return why the last load failed, or None if a model is loaded."""
        failed = self._load_failed
        if failed is None or self.loaded.first is not None:
            return None
        return FailedLoad(failed.code, failed.facts, said(failed), str(failed.facts["model"]))

    def answers(self) -> AnswerCounts:
        """Return the number of answers in progress, the number of waiting requests, and the requests that are waiting
        for a slot."""
        running = min(self.n_asks, self.loaded.n_answering)
        return AnswerCounts(running, self.n_asks - running, waiting_chats(self.loaded))

    def state_word(self, lending_word: str) -> str:
        """Return the state of this machine in one word. It is also "working" while the machine generates answers
        for its own user.
        """
        own = self.answers().running or self.embeddings.n_asks
        return "working" if own and lending_word in ("off", "ready", "lending") else lending_word

    async def _answer(self, question: GenerationRequest, running: Placement) -> AsyncGenerator[AnswerPart, None]:
        if running.completer is None:
            raise BadInput("nothing_loaded")
        with (
            self._outcomes.concurrent.count() as span,
            self._journal.answering(running.entry.name, question.request, question.requester) as noted,
        ):
            self._changed()
            async with aclosing(counted_answer(running.completer, question, self.on_answer_made)) as answer:
                async for part in answer:
                    if isinstance(part, Delta):
                        if noted.first is None:
                            self._changed()  # the answer has a slot and no longer waits
                        noted.add_tokens(len(part.token_ids))
                        yield part
                    elif isinstance(part, Notice):
                        yield describe_notice(part)
                    else:
                        ended = self._outcomes.finish(part, running, span.alone)
                        noted.done(ended, span.alone)
                        self.on_answer_made(ended)
                        yield ended

    def _ready_placement(self, name: str | None, use: ExitStack) -> Placement | None:
        """Return the requested placement if it is ready and no load in progress may replace it. It is marked as in use
        until `use` closes."""
        running = self.loaded.named(name)
        if running is None or not running.is_ready:
            return None
        if self._loads.lock.may_replace(running, by_name=bool(name)):
            return None
        use.enter_context(running.in_use())
        return running

    async def _placement_for(
        self, name: str | None, may_load: bool, use: ExitStack, report: Report
    ) -> Placement | None:
        """Return the placement of the requested model, loading the model if allowed. The placement is marked as in use
        until `use` closes."""
        first = self.loaded.first
        load = Load(name or (first.entry.name if first else GUIDE))
        return await self._loads.run(load, self._load_if_needed(name, load, may_load, use, report))

    async def _load_if_needed(
        self, name: str | None, load: Load, may_load: bool, use: ExitStack, report: Report
    ) -> Placement | None:
        if name:  # the name may be partial, and another model may have been loaded beside it
            load.model = (await self._requested_entry(name)).name
            if (running := self._ready_placement(load.model, use)) is not None:
                return running
        async with self._loads.lock:
            running = self.loaded.named(load.model if name else None)
            entry = running.entry if running else await self._requested_entry(name)
            load.model = entry.name
            if running is None or not running.is_ready:
                if not may_load:
                    return None
                stays = self.loaded.except_for(running) if running else ()
                with self._loads.lock.keeping(stays):
                    for other in self.loaded.except_for(*stays):
                        if other.is_ready:
                            await other.state.unused.wait()
                    running = await self._load_for_request(entry, running, stays, report)
            use.enter_context(running.in_use())
            return running

    async def _name_to_load(self, name: str | None) -> str:
        """Return the name of the model that is about to load, for an announcement, or "" if there is none."""
        if (running := self.loaded.named(name)) is not None:
            return running.entry.name
        with suppress(AppError):  # the load raises and logs the same error
            return (await self._requested_entry(name)).name
        return ""

    async def _requested_entry(self, name: str | None) -> Entry:
        """Return the shelf entry of the model to load for a request.

        If the request names no model and the last load failed, raise BadInput. The Guide must not answer instead of the
        model that failed.
        """
        if not name:
            self.require_load_not_failed()
        there = self.loaded.names or None
        return await asyncio.to_thread(self._shelf.get, name or GUIDE, there)

    def require_load_not_failed(self) -> None:
        """Raise BadInput if the last load failed and left nothing loaded."""
        if self._load_failed is not None and self.loaded.first is None:
            raise BadInput(self._load_failed.code, **self._load_failed.facts)

    async def _load_for_request(
        self, entry: Entry, lost: Placement | None, stays: tuple[Placement, ...], report: Report
    ) -> Placement:
        """Load a model for a request. `lost` is the lost placement of the same model, if there is one."""
        if lost is None:
            brought = await self._load(entry, self._with_settings(requests.LoadModel(model=entry.name)), stays, report)
            brought.loaded_by_request = True
            return brought
        order, before = await self._replanner.order_again(lost), self.loaded.ids
        try:
            return await self._load(entry, order, stays, report)
        except BaseException:  # the next request tries this model again instead of another one
            self.loaded.drop(lost)
            self.loaded.add(lost)
            raise
        finally:
            self.loaded.restore_order(before)

    def _with_settings(self, order: Order) -> Order:
        """Return the order, with its unset options taken from the settings."""
        return order if order.exact is not None else msgspec.structs.replace(order, exact=self.exact())

    def _stays(self, entry: Entry, order: requests.PlanModel) -> tuple[Placement, ...]:
        """Return the placements that stay loaded when this model is loaded."""
        return self.loaded.except_for(self.loaded.by_id(entry.model.id)) if order.beside else ()

    async def _load_in_turn(self, entry: Entry, order: requests.LoadModel, report: Report) -> Placement:
        async with self._loads.lock:
            return await self._load(entry, order, self._stays(entry, order), report)

    async def _load(
        self, entry: Entry, order: requests.LoadModel, stays: tuple[Placement, ...], report: Report
    ) -> Placement:
        """Load a model and replace all placements except `stays`. Call this with the lock held."""
        if len(alive(stays)) >= MOST_MODELS:
            raise BadInput("models_enough", most=MOST_MODELS)
        with self._loads.lock.keeping(stays), self._idle.request(), self._outcomes.concurrent.count():
            # standby work and learning pause
            running = await self._plan_and_place(entry, order, stays, report)
        self._load_failed = None
        return running

    async def _plan_and_place(
        self, entry: Entry, order: requests.LoadModel, stays: tuple[Placement, ...], report: Report
    ) -> Placement:
        entry = await in_thread(
            partial(self._shelf.verify, entry), lambda done, total: report(hashing_progress(done, total))
        )
        await wait_for_cards(self.planner_inputs.graphics, report)
        # raises before anything is measured and before the loaded models are given up
        await self._planner.plan(entry.model, order, self.released(stays), {})
        speeds = await self._speeds(entry, order, report, measure=order.split is None)
        await self._planner.plan(entry.model, order, self.released(stays), speeds)
        await self._end(goes := self.loaded.except_for(*stays))
        tries = LoadRetries(entry.name)
        while True:
            try:
                running = await self._place(entry, order, goes, speeds, report, tries)
                break
            except AppError as error:
                if not tries.should_retry(error):
                    raise tries.final_error(error) from error
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
        report: Report,
        tries: LoadRetries,
    ) -> Placement:
        async with self.memory.choosing:
            back = released_bytes(gone, self._loads.lock.spared)
            chosen = await self._chosen(entry, order, back, speeds, tries)
            tries.begin(chosen)
            chosen = with_neighbors(chosen, self._loads.lock.spared)
            described = describe_plan(chosen, entry.model, lent_bytes_by_machine(chosen))
            sizes = self._planner.sizes(chosen, order, entry.model)
            running = Placement(entry, order, chosen, described, sizes, self._idle, self._changed)
            self.loaded.add(running, order.first)
        self._changed()
        sources = self._sources(self.memory.reservation_for(running, self.embeddings.make_room))
        replan = partial(self._replanner.options, running)
        work = running.run(sources, report, replan)
        task = self._group.create_task(self._served(running, work), name=f"placement of {entry.name}")
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
            self.on_answer_over()
        return running

    async def _served(self, running: Placement, work: Awaitable[None]) -> None:
        """Run a placement until it has ended.

        If an owner took memory back while no request was running, place the model again on the other machines, just as
        a running answer would have done. Phones and other computers cannot start a load themselves.
        """
        await work
        if running.was_reclaimed:
            self._group.create_task(self._place_again(running), name=f"load {running.entry.name} again")

    async def _place_again(self, lost: Placement) -> None:
        """Load a lost model again. If it does not fit, it stays lost until the next question for it."""
        try:
            await self._loads.run(Load(lost.entry.name), self._load_lost(lost))
        except AppError as error:
            log.info("%s is not loaded again: %s", lost.entry.name, error.reason)

    async def _load_lost(self, lost: Placement) -> None:
        async with self._loads.lock:
            if self.loaded.by_id(lost.entry.model.id) is not lost:
                return  # it was unloaded, or a question was faster
            stays = self.loaded.except_for(lost)
            with self._loads.lock.keeping(stays):
                await self._load_for_request(lost.entry, lost, stays, lambda _: None)

    async def _chosen(
        self, entry: Entry, order: requests.LoadModel, back: Mapping[MachineId, int], speeds: Speeds, tries: LoadRetries
    ) -> Plan:
        """Choose the plan, avoiding machines that failed recently if possible. Raises AppError."""
        often = self.planner_inputs.failures.left_out()
        for failed in dict.fromkeys((often | tries.without, tries.without)):
            if not (failed := failed - set(order.without)):
                continue
            fewer = msgspec.structs.replace(order, without=[*order.without, *sorted(failed)])
            try:
                plan = await self._planner.plan(entry.model, fewer, back, speeds, tries.limits)
            except AppError as error:
                log.info("no plan avoids the machines that failed: %s", error.reason)
            else:
                return tries.explained(plan)
        tries.check_may_repeat()
        return await self._planner.plan(entry.model, order, back, speeds, tries.limits)

    def give_back(self, running: Placement) -> None:
        """Unload an unused placement in the background. It accepts no new requests."""
        running.stop()
        self._group.create_task(self._end([running]), name=f"unload {running.entry.name}")

    def _stop_placements(self, name: str | None = None) -> list[Placement]:
        """Stop the placements with this name, or all of them. This ends their answers."""
        ending = [placement for placement in self.loaded if name in (None, placement.entry.name)]
        for placement in ending:
            placement.stop()
        return ending

    async def _end(self, goes: Iterable[Placement]) -> None:
        """Stop placements and wait until their memory is freed."""
        for placement in (goes := list(goes)):
            placement.stop()
        self._changed()
        for placement in goes:
            await placement.ended.wait()
            self.loaded.drop(placement)
            self._changed()

    def released(self, stays: Sequence[Placement] = ()) -> Mapping[MachineId, int]:
        """Return how many bytes each machine frees if the loaded models end. Models in `stays` free only their standby
        layers."""
        return released_bytes(self.loaded.except_for(*stays), stays)

    async def _speeds(self, entry: Entry, order: requests.PlanModel, report: Report, *, measure: bool) -> Speeds:
        """Return the speed of each machine. `measure` sets whether to measure unknown speeds, unless the request
        specifies it."""
        measure = measure if order.measure is None else order.measure
        self._n_measuring += measure
        try:
            if measure and order.again:
                await self.planner_inputs.measure_again(entry, speed_conditions(order))
            return await self.planner_inputs.speeds(
                entry, speed_conditions(order), report, known_only=not measure, without=order.without
            )
        finally:
            self._n_measuring -= measure
