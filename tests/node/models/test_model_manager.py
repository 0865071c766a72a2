"""Tests of several people using models: loads in turn, swaps between answers, immediate stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.api import requests
from app.api.responses import AnsweredBy
from app.api.snapshot import AnswerCounts, Snapshot
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, BadInput, DoesNotFit, Fact, Reason, StageLost
from app.core.household.household import Described, SelfDescription
from app.core.ids import MachineId
from app.core.planner.placement import Candidate
from app.core.reasons import said
from app.core.recovery import fault_table
from app.core.recovery.placement_lifecycle import Closed, Opened, PipelinesLost
from app.core.recovery.recovery import MAX_RECOVERIES, Loss
from app.inference.pipeline.completion import Delta, GenerationRequest
from app.machine.hardware.cards import ProcessorOnly, UnusedCard
from app.machine.hardware.cores import Threads
from app.node.control import answer_conversion
from app.node.journal import Journal
from app.node.models import model_manager as hosting_module
from app.node.models.loaded_models import LoadedModels
from app.node.models.model_manager import ModelManager
from app.node.placement import placement as running_module
from app.node.placement.placement import Placement
from app.node.placement.stages import PlacementServices
from app.node.planning.forecast_history import ForecastHistory
from app.node.planning.planner_inputs import PlannerInputs
from app.node.verification.quarantine import Quarantine
from app.node.verification.spare_memory import SpareMemory
from backends.contract import KvType
from testbed import tiny

DEN, ATTIC = MachineId("d" * 64), MachineId("a" * 64)
MIB = 1 << 20
Json = dict[str, Any]


class TestedCards(ProcessorOnly):
    """A graphics card that does not compute, and whose test is over if the event is set."""

    __test__ = False

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.over.set()

    async def tested(self) -> None:
        await self.over.wait()


class Scene:
    """The behavior of the placements of one test, and the placements so far."""

    def __init__(self) -> None:
        self.placed: list[FakeRunning] = []
        self.may_load, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_load.set()
        self.may_answer.set()
        self.answering = asyncio.Event()
        self.errors: list[AppError] = []  # of the next loads
        self.blames: tuple[MachineId, str] | None = None  # another machine that they are about
        self.den = Candidate(DEN, "den", 1 << 40)
        self.attic = Candidate(ATTIC, "attic", 1 << 40)
        self.released: list[Mapping[MachineId, int]] = []
        self.cards = TestedCards()

    def candidates(self, released: Mapping[MachineId, int]) -> tuple[Candidate, list[Candidate]]:
        self.released.append(dict(released))
        return self.den, [self.attic]

    @property
    def names(self) -> list[str]:
        return [running.entry.name for running in self.placed]


class FakeAnswerer:
    vocabulary = None  # it has read no template

    def __init__(self, running: FakeRunning, scene: Scene) -> None:
        self._running, self._scene = running, scene

    async def answer(self, question: GenerationRequest) -> AsyncGenerator[Delta, None]:
        self._scene.answering.set()
        yield Delta(self._running.entry.name, ())
        await self._scene.may_answer.wait()
        if self._running.ended.is_set():
            raise StageLost("pipeline_closed")
        yield Delta("!", ())


class NoSpeeds:
    """No machine was measured. asked: which lenders were to be, each time."""

    asked: ClassVar[list[set[MachineId]]] = []

    async def speeds(self, entry: Entry, me: Any, lenders: Any, *_: Any, **__: Any) -> Any:
        self.asked.append(set(lenders))
        return dict.fromkeys((me[0], *lenders))

    async def speeds_like(self, basis: Any, me: Any, lenders: Any, *_: Any, **__: Any) -> Any:
        return dict.fromkeys((me[0], *lenders))

    def why_not_forecast(self, _: str) -> None: ...

    why_not_measured = why_not_forecast

    async def doubt(self, *_: Any) -> set[MachineId]:
        return set()


class NoLinks:
    """No link was measured."""

    async def measure_unknown(self, machines: Iterable[MachineId]) -> None: ...

    def link(self, machine: MachineId) -> None:
        return None

    def doubt(self, machine: MachineId) -> None: ...


class FakeRunning(Placement):
    """A placement without workers."""

    scene: Scene

    async def run(self, *_: Any) -> None:
        self.scene.placed.append(self)
        try:
            if self.scene.errors:
                error = self.scene.errors.pop(0)
                if self.scene.blames is not None:
                    self.failed = Loss(*self.scene.blames, error.reason, 0.0)
                raise error
            await self._unless_stopped(self.scene.may_load.wait())
            self.completer = FakeAnswerer(self, self.scene)  # type: ignore[assignment]
            self._step(Opened())
            self._outcome.set_result(None)
            await self._stop.wait()
        except AppError as error:
            self._fail(error)
        finally:
            self._over()

    def lose(self) -> None:
        self._step(PipelinesLost(StageLost("stage_unreachable", machine="attic").reason))
        self._over()

    def _over(self) -> None:
        self.completer = None
        self._step(Closed(time.monotonic()))
        self.ended.set()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("shelf")
    made = Shelf(folder / "models", folder / "none", StageStore(folder / "stages", 1 << 30))
    for seed, name in enumerate(("one", "two", "three")):
        made.import_file(tiny.llama(folder / f"{name}.gguf", layers=4, seed=seed))
    return made


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene()
    monkeypatch.setattr(FakeRunning, "scene", scene, raising=False)
    monkeypatch.setattr(hosting_module, "Placement", FakeRunning)
    return scene


@pytest.fixture
async def hosting(shelf: Shelf, scene: Scene, tmp_path: Path) -> AsyncGenerator[ModelManager, None]:
    nothing: Any = None  # its placements are not real
    speeds: Any = NoSpeeds()
    links: Any = NoLinks()
    async with asyncio.TaskGroup() as group:
        planner_inputs = PlannerInputs(
            lambda *released: scene.candidates(*released),  # noqa: PLW0108  a test may change it
            speeds, links, ForecastHistory(tmp_path / "lessons.json"),
            Quarantine(tmp_path / "d.json"), SpareMemory(lambda: 0), scene.cards,
        )  # fmt: skip
        journal = Journal(tmp_path / "journal.json", Snapshot)
        sources = partial(PlacementServices, shelf, nothing, nothing, planner_inputs)
        made = ModelManager(LoadedModels(), shelf, sources, planner_inputs, Threads(1), group, journal, lambda: None)
        yield made
        made.close()
        await made.unload()


async def ask(hosting: ModelManager, model: str | None = None) -> str:
    """The answer's text, or the code of its error."""
    texts = []
    try:
        async with aclosing(hosting.ask(requests.Ask(prompt="?", model=model))) as parts:
            async for part in parts:
                texts += [part.text] if isinstance(part, Delta) else []
    except AppError as error:
        return error.reason.code
    return "".join(texts)


async def load(hosting: ModelManager, model: str, **order: Any) -> str:
    try:
        await hosting.load(requests.LoadModel(model=model, **order), lambda _: None)
    except AppError as error:
        return error.reason.code
    return "loaded"


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)


async def test_two_questions_at_once_share_one_load(hosting: ModelManager, scene: Scene) -> None:
    assert await asyncio.gather(*(ask(hosting, "one") for _ in range(3))) == ["one!"] * 3
    assert scene.names == ["one"]


async def test_a_question_for_another_model_lets_answers_end(hosting: ModelManager, scene: Scene) -> None:
    scene.may_answer.clear()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ask(hosting, "one"), name="first")
        await scene.answering.wait()
        second = group.create_task(ask(hosting, "two"), name="second")
        await asyncio.sleep(0.1)
        assert scene.names == ["one"]
        assert hosting.answers() == AnswerCounts(waiting=2)
        scene.may_answer.set()
    assert (first.result(), second.result()) == ("one!", "two!")
    assert hosting.answers() == AnswerCounts()


async def test_a_question_without_a_name_takes_what_is_there(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "two")
    assert await ask(hosting) == "two!"
    assert scene.names == ["two"]


async def first_part(hosting: ModelManager, model: str | None = None) -> AnsweredBy | Delta:
    """Return the part before the answer."""
    async with aclosing(hosting.ask(requests.Ask(prompt="?", model=model))) as parts:
        async for part in parts:
            if isinstance(part, AnsweredBy | Delta):
                return part
    raise AssertionError("nothing was answered")


async def test_after_a_failed_load_nobody_else_answers_in_its_place(hosting: ModelManager, scene: Scene) -> None:
    scene.errors.append(BadInput("model_not_loaded", worker="den", cause="it is odd"))
    assert await load(hosting, "one") == "model_not_loaded"
    assert await ask(hosting) == "last_load_failed"
    hosting.forget_failed_load("another")
    assert await ask(hosting) == "last_load_failed"
    with pytest.raises(BadInput) as raised:
        hosting.require_load_not_failed()
    words = said(raised.value)
    assert words.startswith("one could not be loaded")
    assert "it is odd" in words
    assert await ask(hosting, "two") == "two!"  # by its name any model is asked
    assert await ask(hosting) == "two!"
    await hosting.unload()
    assert await ask(hosting) == "model_builtin_missing"  # the Guide, which this shelf has not


async def test_the_failed_load_of_a_model_that_is_removed_stands_in_nobody_s_way(
    hosting: ModelManager, scene: Scene
) -> None:
    scene.errors.append(BadInput("model_not_loaded", worker="den", cause="it is odd"))
    assert await load(hosting, "one") == "model_not_loaded"
    hosting.forget_failed_load("one")
    assert hosting.failed_load() is None
    assert await ask(hosting) == "model_builtin_missing"


async def test_a_load_waits_until_the_graphics_card_was_tested_and_can_be_stopped_meanwhile(
    hosting: ModelManager, scene: Scene
) -> None:
    cards = scene.cards
    cards.over.clear()
    steps: list[str] = []
    async with asyncio.TaskGroup() as group:
        order = requests.LoadModel(model="one")
        group.create_task(hosting.load(order, lambda line: steps.append(line.step)), name="load")
        await until(lambda: "testing_card" in steps)
        assert not scene.placed
        cards.unused = (UnusedCard("A card", Reason("card_wrong", {"percent": 40}), "1"),)
        cards.over.set()
    assert "plan_card_unused" in [reason.code for reason in scene.placed[-1].plan.reasons]
    cards.over.clear()
    async with asyncio.TaskGroup() as group:
        loading = group.create_task(load(hosting, "two"), name="load")
        await asyncio.sleep(0.1)
        await hosting.unload()
    assert (loading.result(), scene.names) == ("load_stopped", ["one"])


async def test_a_load_that_somebody_stopped_has_not_failed(hosting: ModelManager, scene: Scene) -> None:
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        loading = group.create_task(load(hosting, "one"), name="load")
        await until(lambda: scene.placed)
        await hosting.unload()
    assert loading.result() == "load_stopped"
    hosting.require_load_not_failed()


async def test_who_is_called_by_less_than_its_name_is_named_first(hosting: ModelManager, shelf: Shelf) -> None:
    assert isinstance(await first_part(hosting, "one"), Delta)
    assert "on refers to one." in str(await first_part(hosting, "on"))
    assert "refers to one." in str(await first_part(hosting, shelf.get("one").model.id))
    assert isinstance(await first_part(hosting), Delta)


async def test_a_guide_that_was_loaded_on_purpose_is_not_announced(
    hosting: ModelManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_conversion, "GUIDE", "one")
    await load(hosting, "one")
    assert isinstance(await first_part(hosting), Delta)
    await hosting.unload()
    await ask(hosting, "one")  # loaded for this question only
    assert "the Guide answers" in str(await first_part(hosting))


async def test_who_answers_is_said_before_it_is_loaded_and_once(hosting: ModelManager, scene: Scene) -> None:
    async with aclosing(hosting.ask(requests.Ask(prompt="?", model="on"))) as parts:
        received = [part async for part in parts]
    assert isinstance(received[0], AnsweredBy)
    assert sum(isinstance(part, AnsweredBy) for part in received) == 1
    assert scene.names == ["one"], "it had to be loaded"


async def test_what_has_not_moved_cannot_be_moved_back(hosting: ModelManager, shelf: Shelf) -> None:
    """Whatever the reason, the sentence is about the model that was named."""
    first, second, *_ = [entry.name for entry in shelf.entries()]
    with pytest.raises(BadInput, match="nothing_loaded"):
        await hosting.undo_move()
    await load(hosting, first)
    for name, code in ((None, "move_none"), (first, "move_none"), (second, "move_none"), ("?", "model_unknown")):
        with pytest.raises(BadInput, match=code):
            await hosting.undo_move(name)


async def test_a_model_is_known_by_its_id(hosting: ModelManager, shelf: Shelf, scene: Scene) -> None:
    text, two = (shelf.get(name).model.id for name in ("one", "two"))
    assert (await hosting.plan(requests.PlanModel(model=text), lambda _: None)).model == "one"
    assert await load(hosting, text) == "loaded"
    assert await load(hosting, two, beside=True) == "loaded"
    assert await load(hosting, text, beside=True) == "loaded"  # placed anew, by its whole name
    assert (await ask(hosting, two), await ask(hosting, text)) == ("two!", "one!")
    assert await hosting.unload(two) == ["two"]
    assert await ask(hosting, two) == "two!"


async def test_a_lender_without_memory_is_done_without(hosting: ModelManager, scene: Scene) -> None:
    short = DoesNotFit(
        "lender_said", machine="attic", what=Reason("memory_short", {"worker": "attic", "cause": "x"}), machine_id=ATTIC
    )
    scene.errors += [short]
    assert await load(hosting, "one") == "loaded"
    assert {stage.machine for stage in scene.placed[-1].plan.stages} == {DEN}
    scene.errors += [short]
    assert await load(hosting, "one", split=[1, 2, 1]) == "lender_said"  # which is why it failed
    assert len(scene.placed) == 3


@pytest.mark.parametrize(
    ("code", "tries", "expected"),
    [
        ("stage_failed", 1, "stage_failed"),
        ("numbers_not_finite", 1, "model_not_finite"),  # nobody asked anything yet
        ("engine_gave_up", 1, "engine_gave_up"),
        ("worker_crashed", 2, "model_ends_process"),
        ("worker_hung", 2, "worker_hung"),
        ("worker_died", 4, "worker_died"),
    ],
)
async def test_only_what_may_have_been_chance_is_loaded_again(
    hosting: ModelManager, scene: Scene, code: str, tries: int, expected: str
) -> None:
    facts = {"worker": "den", "how": "x", "words": "", "machine": "den", "cause": "x"}
    scene.errors += [fault_table.loss_error(Reason(code, {**facts, "seconds": 1}))] * 9
    assert await load(hosting, "one") == expected
    assert len(scene.placed) == tries
    scene.errors.clear()


def lender_says(cause: str) -> AppError:
    facts: dict[str, Fact] = {"machine": "attic", "what": Reason(cause, {"worker": "attic", "how": "x", "words": ""})}
    return fault_table.loss_error(Reason("lender_said", facts))


@pytest.mark.parametrize(
    ("cause", "tries", "expected"),
    [
        ("numbers_not_finite", 1, "model_fails_there"),
        ("worker_crashed", 2, "model_fails_there"),
        ("engine_gave_up", 1, "lender_said"),
    ],
)
async def test_another_machine_that_a_model_fails_on_is_done_without_or_named(
    hosting: ModelManager, scene: Scene, monkeypatch: pytest.MonkeyPatch, cause: str, tries: int, expected: str
) -> None:
    kitchen = Candidate(MachineId("c" * 64), "kitchen", 1 << 40)
    scene.blames = (ATTIC, "attic")
    scene.errors += [lender_says(cause)]
    with monkeypatch.context() as patch:
        patch.setattr(scene, "candidates", lambda _: (scene.den, [scene.attic, kitchen]))
        assert await load(hosting, "one", shape="split") == "loaded"
    assert [{stage.machine for stage in placed.plan.stages} for placed in scene.placed] == [
        {DEN, ATTIC},
        {DEN, kitchen.id},
    ]
    assert scene.placed[-1].plan.reasons[-1].code == "left_out_failed"
    event = hosting._journal.read().events[-1]
    assert event.sentence.startswith("attic failed while one was loaded")
    begun = len(scene.placed)
    scene.errors += [lender_says(cause)] * 9
    with pytest.raises(AppError) as raised:
        await hosting.load(requests.LoadModel(model="one", split=[1, 2, 1]), lambda _: None)
    assert raised.value.reason.code == expected
    assert raised.value.reason.facts["machine"] == "attic"
    assert len(scene.placed) == begun + tries
    scene.errors.clear()


async def test_numbers_that_are_not_finite_over_several_machines_are_not_told_of_the_file_alone(
    hosting: ModelManager, scene: Scene
) -> None:
    scene.errors += [fault_table.loss_error(Reason("numbers_not_finite"))]
    with pytest.raises(AppError) as raised:
        await hosting.load(requests.LoadModel(model="one", split=[1, 2, 1]), lambda _: None)
    assert raised.value.reason == Reason("model_not_finite_over", {"model": "one", "machines": "den and attic"})


async def test_nobody_waits_for_the_speed_of_who_is_left_out_or_lends_nothing(
    hosting: ModelManager, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    loft = Candidate(MachineId("c" * 64), "loft", 0, is_lending=False)
    monkeypatch.setattr(scene, "candidates", lambda _: (scene.den, [scene.attic, loft]))
    for without, measured in (([], {ATTIC}), ([ATTIC], set())):
        await load(hosting, "one", without=without)
        assert NoSpeeds.asked[-1] == measured


async def test_a_load_does_without_a_machine_that_failed_it_twice_where_that_can_be(
    hosting: ModelManager, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    kitchen = Candidate(MachineId("c" * 64), "kitchen", 1 << 40)
    failures = hosting.planner_inputs.failures
    monkeypatch.setattr(failures, "forget", lambda: None)  # as if this were the third try
    for _ in range(2):
        failures.note(Loss(ATTIC, "attic", Reason("worker_died"), 0.0))
    for candidates, used in (([scene.attic, kitchen], kitchen.id), ([scene.attic], ATTIC)):
        results = (scene.den, candidates)
        monkeypatch.setattr(scene, "candidates", lambda _, result=results: result)
        assert await load(hosting, "one", shape="split") == "loaded"
        assert {stage.machine for stage in scene.placed[-1].plan.stages} == {DEN, used}


async def test_half_a_name_replaces_nothing_that_is_loaded(hosting: ModelManager, scene: Scene) -> None:
    assert await load(hosting, "on") == "loaded"  # nothing was there
    assert await load(hosting, "tw") == "model_inexact"
    assert await load(hosting, "on") == "model_inexact"  # it would be placed anew
    assert await ask(hosting, "tw") == "model_inexact"
    assert await ask(hosting, "on") == "one!"
    assert scene.names == ["one"]
    assert await load(hosting, "Two") == "loaded"
    assert scene.names == ["one", "two"]


async def test_a_lost_model_returns_as_it_was_loaded(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one", split=[1, 2, 1], context=300, users=2)
    scene.placed[0].lose()
    assert await ask(hosting) == "one!"
    assert scene.placed[1].order == scene.placed[0].order
    scene.placed[1].lose()
    scene.candidates = lambda released: (scene.den, [])  # type: ignore[method-assign]
    assert await ask(hosting) == "one!"
    order = scene.placed[2].order
    assert (order.split, order.context, order.users) == (None, 300, 2)


async def test_a_lost_model_that_cannot_return_is_not_replaced(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one")
    scene.placed[0].lose()
    lost = StageLost("stage_unreachable", machine="attic")
    scene.errors.append(lost)
    assert await ask(hosting) == "one!"  # what was lost while it loaded is loaded again
    scene.placed[-1].lose()
    scene.errors += [lost] * (MAX_RECOVERIES + 1)
    assert await ask(hosting) == "stage_unreachable"
    assert await ask(hosting) == "one!"


@pytest.mark.parametrize("begun", [True, False])
async def test_unload_ends_a_load_at_once(hosting: ModelManager, scene: Scene, begun: bool) -> None:
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(load(hosting, "one"), name="first")
        second = group.create_task(load(hosting, "two"), name="second, in the queue")
        if begun:
            await until(lambda: scene.placed)
        else:
            await asyncio.sleep(0.01)
            await until(lambda: len(hosting._loads) == 2)
        async with asyncio.timeout(30):
            await hosting.unload()
    assert (first.result(), second.result()) == ("load_stopped", "load_stopped")
    assert hosting.loaded.first is None
    assert not hosting._loads


async def test_unload_ends_a_load_that_hashes(
    hosting: ModelManager, shelf: Shelf, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(entry: Any, progress: Any) -> Any:
        for done in range(2000):
            loop.call_soon_threadsafe(hashing.set)
            progress(done, 2000)
            time.sleep(0.01)
        return entry

    monkeypatch.setattr(shelf, "verify", slow)
    async with asyncio.TaskGroup() as group:
        loading = group.create_task(load(hosting, "one"), name="load")
        await hashing.wait()
        async with asyncio.timeout(30):
            await hosting.unload()
    assert loading.result() == "load_stopped"
    assert not scene.placed


async def test_a_cancelled_load_leaves_nothing(hosting: ModelManager, scene: Scene) -> None:
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        loading = group.create_task(load(hosting, "one"), name="load")
        await until(lambda: scene.placed)
        loading.cancel()
        await asyncio.sleep(0)
        loading.cancel()
        await asyncio.wait({loading})
    assert hosting.loaded.first is None
    assert scene.placed[0].ended.is_set()


async def test_a_closed_host_loads_nothing(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one")
    hosting.close()
    assert await hosting.unload() == ["one"]
    with pytest.raises(StageLost) as caught:  # to a program: later, not never
        await hosting.load(requests.LoadModel(model="one"), lambda _: None)
    assert caught.value.reason.code == "node_stops"
    assert await ask(hosting) == "node_stops"


async def test_a_lender_with_less_than_it_said_is_planned_for_again(hosting: ModelManager, scene: Scene) -> None:
    short = DoesNotFit("lender_said", machine="attic", what="No.", machine_id=ATTIC, free_bytes=MIB)
    scene.errors.append(short)
    assert await load(hosting, "one", split=[1, 2, 1]) == "machine_too_small"
    assert len(scene.placed) == 1
    scene.errors.append(short)
    assert await load(hosting, "one") == "loaded"
    assert len(scene.placed) == 3


async def test_only_news_for_a_plan_is_a_reason_to_plan_anew(hosting: ModelManager) -> None:
    assert await load(hosting, "one") == "loaded"
    running: Any = hosting.loaded.first
    described = Described(ATTIC, "attic", "CPU", 1 << 40, 1 << 40, 0, "ready")
    hosting.lender_changed(described)
    known = running.state.n_changes
    hosting.lender_changed(replace(described, hottest_c=61, about=SelfDescription(watts=40)))
    assert running.state.n_changes == known
    hosting.lender_changed(replace(described, lends_bytes=1 << 30))
    assert running.state.n_changes == known + 1


@pytest.mark.parametrize(("users", "context", "granted"), [(1, 300, 300), (4, 300, 512), (4, 512, 512)])
async def test_each_of_several_conversations_gets_whole_steps_of_cells(
    hosting: ModelManager, users: int, context: int, granted: int
) -> None:
    order = requests.PlanModel(model="one", users=users, context=context)
    assert (await hosting.plan(order, lambda _: None)).context == granted


@pytest.mark.parametrize(("by_program", "code"), [(False, "plan_forced"), (True, "plan_forced_by_program")])
async def test_a_plan_says_whether_a_person_chose_its_split(hosting: ModelManager, by_program: bool, code: str) -> None:
    order = requests.PlanModel(model="one", split=[1, 2, 1], by_program=by_program)
    plan = await hosting.plan(order, lambda _: None)
    assert plan.why[0].code == code


async def test_a_context_is_not_quantized_where_heads_are_too_small(hosting: ModelManager) -> None:
    with pytest.raises(BadInput) as error:
        await hosting.plan(requests.PlanModel(model="one", kv=KvType.Q8_0), lambda _: None)
    assert error.value.reason.code == "kv_odd"


async def test_machines_can_be_left_out_of_plans_and_loads(hosting: ModelManager, scene: Scene) -> None:
    plan = await hosting.plan(requests.PlanModel(model="one"), lambda _: None)
    assert [machine.machine for machine in plan.facts.machines] == ["den", "attic"]
    without = requests.PlanModel(model="one", without=[ATTIC])
    plan = await hosting.plan(without, lambda _: None)
    assert [machine.machine for machine in plan.facts.machines] == ["den"]
    assert await load(hosting, "one", without=[ATTIC, DEN]) == "host_not_left_out"
    assert await load(hosting, "one", without=[ATTIC, "gone" * 16]) == "loaded"
    assert [stage.machine for stage in scene.placed[-1].plan.stages] == [DEN]


async def test_a_machine_whose_engine_was_not_proved_is_left_out(hosting: ModelManager, scene: Scene) -> None:
    assert await load(hosting, "one", split=[1, 2, 1]) == "loaded"
    scene.attic = replace(scene.attic, engine="llamacpp 0.3.35")
    plan = await hosting.plan(requests.PlanModel(model="two"), lambda _: None)
    assert "left_out_engine" in [item.code for item in plan.why]
    assert await load(hosting, "two", split=[1, 2, 1]) == "engine_in_the_way"
    scene.attic, scene.den = scene.den, replace(scene.den, engine="llamacpp 0.3.35")
    plan = await hosting.plan(requests.PlanModel(model="two"), lambda _: None)
    assert "plan_engine" in [item.code for item in plan.why]
    assert [item.machine for item in plan.facts.machines] == ["den"]


async def test_what_a_lost_placement_held_counts_only_while_that_is_news(
    hosting: ModelManager, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await load(hosting, "one", split=[1, 2, 1])
    order = requests.PlanModel(model="one")
    await hosting.plan(order, lambda _: None)
    scene.placed[0].lose()
    await hosting.plan(order, lambda _: None)
    monkeypatch.setattr(running_module, "NEWS_SECONDS", -1.0)
    await hosting.plan(order, lambda _: None)
    live, lately, later = scene.released[-7::3]  # of three looks for each plan, the last
    assert live.keys() == {DEN, ATTIC}
    assert lately == {ATTIC: live[ATTIC]}  # this machine knows of its own at once
    assert later == {}
