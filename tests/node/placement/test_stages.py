"""Tests of the path of stages to their machines: cut here, sent there, with nothing left behind on failure."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.api.plans import Progress
from app.catalog.shelf import Shelf
from app.catalog.stages import stage_store
from app.catalog.stages.cut import read_pieces
from app.catalog.stages.stage_store import StageStore
from app.core.errors import BadInput, DoesNotFit, Reason, StageLost, Unreachable
from app.core.ids import MachineId, PipelineId
from app.core.planner.placement import Candidate, Plan, PlannedStage, Workload
from app.core.planner.plan import plan
from app.core.reasons import said
from app.core.recovery import fault_table
from app.inference.stages.slot_keeper import SlotKeeper
from app.inference.stages.stage_client import FrameChannel, Run
from app.inference.stages.stage_connection import open_run
from app.inference.worker.worker import Worker
from app.machine.hardware import devices
from app.machine.hardware.cards import PROCESSOR_ONLY, Card, ComputingCard, RefusedFamily
from app.machine.hardware.cores import Threads
from app.machine.hardware.devices import Memory
from app.network import messages
from app.node.placement import lenders
from app.node.placement import stages as placement_stages
from app.node.placement.lenders import StageAnswers
from app.node.placement.stages import PlacementServices, Reservation, StageSet
from app.node.planning.planning import Sizes
from backends.contract import NumberFormat, StageConfig
from backends.worker_orders import StageOpened
from testbed import tiny
from tests.node.graphics_stub import Cards, JudgedCards

DEN, ATTIC = MachineId("d" * 64), MachineId("a" * 64)
SIZES = Sizes(NumberFormat.F16, 4, 512, 512, 64, Threads(1))


class Lender:
    """Links and answers of one lender, which may not read, or not be there."""

    def __init__(self, reads: bool = True, hears: bool = True) -> None:
        self.reads, self.hears = reads, hears
        self.closed: list[PipelineId] = []
        self.answers = StageAnswers()

    def link(self, machine: MachineId) -> Lender:
        return self

    def expect(self, machine: MachineId, pipeline: PipelineId) -> Any:
        return self.answers.expect(machine, pipeline)

    def slot_keeper(self, machine: MachineId, run: Run) -> SlotKeeper | None:
        return None

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        self.closed.append(pipeline)

    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int) -> bytes:
        n_pieces = len(msgspec.json.decode(body)["pieces"])
        return msgspec.json.encode([{"piece": n, "start": 0} for n in range(n_pieces)])

    async def upload_pieces(self, pipeline: PipelineId, chunks: AsyncGenerator[bytes, None], total_bytes: int) -> bytes:
        async for _ in chunks:
            if not self.reads:
                await asyncio.sleep(60)
        return b"{}"

    async def open_data(self, pipeline: PipelineId) -> FrameChannel:
        raise Unreachable("peer_hung_up", name="attic", address="")

    async def inquire(self) -> None:
        raise AssertionError("nothing is asked while a placement opens")

    def computes(self) -> bool:
        return False

    def is_down(self, machine: MachineId) -> bool:
        return False

    async def send(self, message: messages.Message) -> None:
        if not self.hears:
            raise Unreachable("link_lost", name="attic")
        assert isinstance(message, messages.OpenStage)
        ready = messages.StageReady(pipeline=message.pipeline, epoch=1, memory_bytes=1, fetched_bytes=0)
        self.answers.receive(ATTIC, "attic", ready)


class Place:
    """A model of four layers on the shelf of `den`."""

    def __init__(self, folder: Path) -> None:
        self.stages = StageStore(folder / "stages", 1 << 30)
        self.shelf = Shelf(folder / "models", folder / "no-guide", self.stages)
        path = tiny.llama(folder / "m.gguf", layers=4, width=256, ffn=512)
        self.entry = self.shelf.import_file(path)
        self.told: list[tuple[Progress, threading.Thread]] = []
        self.begun = asyncio.Event()

    def plan(self, *split: int) -> Plan:
        room = Candidate(DEN, "den", 1 << 40), [Candidate(ATTIC, "attic", 1 << 40)]
        return plan(*room, self.entry.model, Workload(512), split)

    def stage_set(self, lender: Lender, stack: AsyncExitStack, graphics: ComputingCard = PROCESSOR_ONLY) -> StageSet:
        def tell(progress: Progress) -> None:
            self.told.append((progress, threading.current_thread()))
            self.begun.set()

        nobody: Any = None  # no sample is checked
        sources = PlacementServices(self.shelf, self.stages, lender, nobody, Reservation(self.make_room), graphics)
        return StageSet(self.entry, sources, SIZES, stack, tell)

    async def make_room(self, plan: Plan) -> None:
        """Nothing has to go for it."""

    async def cut_out(self, stage: PlannedStage) -> str:
        async with AsyncExitStack() as stack:
            path = await self.stage_set(Lender(), stack)._stage_file(stage, stack)
            assert self.stages._held
            return path

    async def open_there(self, lender: Lender, stack: AsyncExitStack) -> None:
        await self.stage_set(lender, stack)._open_remote(self.plan(1, 2, 1).stages[1], stack)


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def slow_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*args: Any) -> Iterator[bytes]:
        for chunk in read_pieces(*args):
            time.sleep(0.02)
            yield chunk

    monkeypatch.setattr(stage_store, "read_pieces", slow)


async def test_the_own_worker_computes_on_the_card_and_reports_its_loss(place: Place, tmp_path: Path) -> None:
    """The processor computes instead only once the card is given up."""
    graphics = JudgedCards(tmp_path)
    async with AsyncExitStack() as stack:
        stages = place.stage_set(Lender(), stack, graphics)
        worker = await stages._own_worker()
        whole = place.plan(4).stages[0]
        with pytest.raises(BadInput) as refused:
            await stages._open_local(worker, whole, stack)
        assert refused.value.reason.code == "device_unusable"
        assert "libggml-vulkan.so" in said(refused.value)
        assert graphics.losses == [graphics.card]
        worker.kill(Reason("worker_hung", {"worker": "den", "seconds": 1}))
        await worker.wait_dead()
        for _ in range(2):  # two stages of the same worker notice its death
            stages._note_death()
        assert len(graphics.losses) == 2
        graphics.computing = ()
        worker = await stages._own_worker()
        await stages._open_local(worker, whole, stack)


class FullCard:
    """A driver that has too little memory for more than some layers. It refuses, or ends the worker."""

    stages: StageSet | None = None

    def __init__(self, most_layers: int, *, ends_worker: bool = False) -> None:
        self._most_layers, self._ends_worker = most_layers, ends_worker
        self.opened: list[int] = []  # the layers on the card, each time
        self.coming_bytes: list[int] = []  # memory of cards that counted as used before it was

    async def open_run(self, worker: Worker, run: Run, context: int, config: StageConfig) -> StageOpened:
        n_layers = (sum(config.device_layers) or len(config.layers)) if config.device else 0
        self.opened.append(n_layers)
        self.coming_bytes.append(self.stages.coming_card_bytes if self.stages else 0)
        if n_layers <= self._most_layers:
            plain = replace(config, device="", library="", device_layers=())
            return await open_run(worker, run, context, plain)
        if self._ends_worker:
            worker.kill(Reason("worker_card_short", {"worker": "den", "how": "", "words": "ErrorOutOfDeviceMemory"}))
            raise await worker.wait_dead()
        raise DoesNotFit("memory_short", worker="den", cause="x", text="unable to allocate Vulkan0 buffer")


class Room(Cards):
    """One card with room for the whole model, unless it runs short."""

    def __init__(self, folder: Path, *, overflows: bool = True) -> None:
        super().__init__(folder, 150 << 20)
        self.overflows = overflows

    def ran_short(self, keys: Collection[bytes]) -> None:
        self.shortages.append(frozenset(keys))
        self.rooms = (self.rooms[0] - (3 << 19),)  # about a layer


@pytest.mark.parametrize("ends_worker", [False, True])
@pytest.mark.parametrize("most_layers", [1, 0])
async def test_fewer_layers_or_none_are_put_on_a_card_that_runs_out_of_memory(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_layers: int, ends_worker: bool
) -> None:
    driver, graphics = FullCard(most_layers, ends_worker=ends_worker), Room(tmp_path)
    monkeypatch.setattr(placement_stages, "open_run", driver.open_run)
    whole = place.plan(4).stages[0]
    parts = max(place.entry.model.weights.layer_bytes)
    graphics.rooms = (whole.total_bytes + parts,)
    async with AsyncExitStack() as stack:
        stages = driver.stages = place.stage_set(Lender(), stack, graphics)
        await stages.open(place.plan(4))
        assert driver.coming_bytes[0] > sum(place.entry.model.weights.layer_bytes)
        assert driver.coming_bytes == sorted(driver.coming_bytes, reverse=True)
        assert stages.coming_card_bytes == 0
        assert driver.opened[0] == 4
        assert driver.opened == sorted(driver.opened, reverse=True)
        assert driver.opened[-1] == most_layers
        assert len(graphics.shortages) == len(driver.opened) - 1
        assert all(len(keys) == 1 for keys in graphics.shortages)
        assert graphics.losses == []  # the card is sound
        assert stages.was_card_short(whole)
        assert stages.card_of(whole) == ("A card + CPU" if most_layers else "")


async def test_without_main_memory_beside_the_card_a_stage_that_lacks_memory_goes_elsewhere(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = FullCard(1)
    monkeypatch.setattr(placement_stages, "open_run", driver.open_run)
    async with AsyncExitStack() as stack:
        with pytest.raises(DoesNotFit) as refused:
            await place.stage_set(Lender(), stack, Room(tmp_path, overflows=False)).open(place.plan(4))
    assert refused.value.reason.code == "memory_short"
    monkeypatch.setattr(devices, "memory", lambda: Memory(1 << 30, 1000))
    async with AsyncExitStack() as stack:
        with pytest.raises(DoesNotFit) as refused:
            await place.stage_set(Lender(), stack, Room(tmp_path)).open(place.plan(4))
    assert "A card ran out of memory" in said(refused.value)
    assert "only 1000 bytes is free" in said(refused.value)


async def test_a_card_that_runs_out_of_memory_while_it_computes_gets_fewer_layers(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker may have died of it, or have closed the stage."""
    driver, graphics = FullCard(4), Room(tmp_path)
    monkeypatch.setattr(placement_stages, "open_run", driver.open_run)
    words = Reason("worker_card_short", {"worker": "den", "how": "", "words": "CUDA error: out of memory"})
    async with AsyncExitStack() as stack:
        stages = place.stage_set(Lender(), stack, graphics)
        (client,) = await stages.open(place.plan(4))
        client.lost = fault_table.loss_error(words)
        (client,) = await stages.open(place.plan(4))
        assert len(graphics.shortages) == 1
        worker = await stages._own_worker()
        worker.kill(words)
        client.lost = await worker.wait_dead()
        await stages.open(place.plan(4))
        assert len(graphics.shortages) == 2
        assert all(len(keys) == 1 for keys in graphics.shortages)
        assert graphics.losses == []
        whole = place.plan(4).stages[0]
        assert stages.was_card_short(whole)
        worker = await stages._own_worker()
        worker.kill(Reason("worker_hung", {"worker": "den", "seconds": 1}))
        await worker.wait_dead()
        await stages.open(place.plan(4))  # this plan knew how much memory the cards have
        assert not stages.was_card_short(whole)


LACKS = Reason("device_tensor", {"tensor": "blk.0.ssm_a"})


@pytest.fixture
def lacking_card(monkeypatch: pytest.MonkeyPatch) -> list[StageConfig]:
    """The driver of each card lacks an operation. Returns the stages that were opened."""
    opened: list[StageConfig] = []

    async def open_or_refuse(worker: Worker, run: Run, context: int, config: StageConfig) -> StageOpened:
        opened.append(config)
        if config.device:
            raise BadInput("device_unfit", worker="den", cause=LACKS)
        return await open_run(worker, run, context, config)

    monkeypatch.setattr(placement_stages, "open_run", open_or_refuse)
    return opened


async def test_a_family_that_the_card_lacks_an_operation_for_is_loaded_on_the_processor_at_once(
    place: Place, tmp_path: Path, lacking_card: list[StageConfig]
) -> None:
    graphics = JudgedCards(tmp_path)
    async with AsyncExitStack() as stack:
        stages = place.stage_set(Lender(), stack, graphics)
        await stages.open(place.plan(4))
        assert [config.device for config in lacking_card] == ["Vulkan0", ""]
        assert lacking_card[0].compared
        assert graphics.verdicts == {("Vulkan0", place.entry.model.family): LACKS}
        assert graphics.losses == []  # the card computes other families
        await stages.open(place.plan(4))  # a new epoch of the same stage
        assert [config.device for config in lacking_card] == ["Vulkan0", "", ""]


async def test_of_two_cards_the_other_computes_a_family_that_one_refuses(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, ...]] = []

    async def open_or_refuse(worker: Worker, run: Run, context: int, config: StageConfig) -> StageOpened:
        opened.append(config.devices)
        if "Vulkan0" in config.devices:
            raise BadInput("device_unfit", worker="den", cause=Reason(LACKS.code, {**LACKS.facts, "device": "Vulkan0"}))
        return StageOpened(request=0, memory_bytes=1, seconds=0.5, apart=0.01)

    monkeypatch.setattr(placement_stages, "open_run", open_or_refuse)
    graphics, family = JudgedCards(tmp_path, 1 << 40, 1 << 40), place.entry.model.family
    async with AsyncExitStack() as stack:
        await place.stage_set(Lender(), stack, graphics).open(place.plan(4))
    assert opened == [("Vulkan0",), ("Vulkan1",)]
    assert [code(graphics.verdicts[name, family]) for name in ("Vulkan0", "Vulkan1")] == [LACKS.code, ""]


def code(why: Reason | None) -> str:
    return why.code if why else ""


@pytest.mark.parametrize("known", [False, True])
async def test_a_worker_that_crashes_with_a_new_family_is_started_again_on_the_processor(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """A crash with a family that the card has computed before is the card's fault."""
    workers: list[Worker] = []

    async def open_or_crash(worker: Worker, run: Run, context: int, config: StageConfig) -> StageOpened:
        workers.append(worker)
        if not config.device:
            return await open_run(worker, run, context, config)
        worker.kill(Reason("worker_crashed", {"worker": "den", "how": Reason("end_closed"), "words": ""}))
        raise await worker.wait_dead()

    monkeypatch.setattr(placement_stages, "open_run", open_or_crash)
    graphics = JudgedCards(tmp_path)
    if known:
        graphics.judge(graphics.computing[0], place.entry.model.family, None)
    async with AsyncExitStack() as stack:
        stages = place.stage_set(Lender(), stack, graphics)
        with pytest.raises(StageLost) if known else nullcontext():
            await stages.open(place.plan(4))
        assert len(set(workers)) == len(workers) == (1 if known else 2)
        assert (len(graphics.crashes), len(graphics.losses)) == ((0, 1) if known else (1, 0))


class GivenUpCards(JudgedCards):
    """Cards that are given up with their first crash, because another family had crashed there before."""

    def crashed(self, card: Card, family: str) -> None:
        super().crashed(card, family)
        self.computing = tuple(other for other in self.computing if other != card)

    @property
    def refused(self) -> tuple[RefusedFamily, ...]:  # type: ignore[override]
        return ()  # of a card that does not compute, no family is told


async def test_after_a_crash_that_gives_the_card_up_the_processor_computes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    async def open_or_crash(worker: Worker, run: Run, context: int, config: StageConfig) -> StageOpened:
        opened.append(config.device)
        if not config.device:
            return await open_run(worker, run, context, config)
        worker.kill(Reason("worker_crashed", {"worker": "den", "how": Reason("end_closed"), "words": ""}))
        raise await worker.wait_dead()

    monkeypatch.setattr(placement_stages, "open_run", open_or_crash)
    async with AsyncExitStack() as stack:
        await place.stage_set(Lender(), stack, GivenUpCards(tmp_path)).open(place.plan(4))
    assert opened == ["Vulkan0", ""]


async def test_after_a_crash_the_processor_must_have_room(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(worker: Worker, run: Run, context: int, config: StageConfig) -> StageOpened:
        worker.kill(Reason("worker_hung", {"worker": "den", "seconds": 300}))
        raise await worker.wait_dead()

    monkeypatch.setattr(placement_stages, "open_run", crash)
    monkeypatch.setattr(devices, "memory", lambda: Memory(1 << 30, 1000))
    async with AsyncExitStack() as stack:
        with pytest.raises(DoesNotFit) as refused:
            await place.stage_set(Lender(), stack, JudgedCards(tmp_path)).open(place.plan(4))
    assert refused.value.reason.code == "card_family_no_room"
    assert "it crashed or hung" in said(refused.value)


async def test_a_family_for_the_processor_must_fit_into_main_memory(
    place: Place, tmp_path: Path, lacking_card: list[StageConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "memory", lambda: Memory(1 << 30, 1000))
    async with AsyncExitStack() as stack:
        stages = place.stage_set(Lender(), stack, JudgedCards(tmp_path))
        with pytest.raises(DoesNotFit) as refused:
            await stages.open(place.plan(4))
        assert "A card cannot run llama" in said(refused.value)
        assert "only 1000 bytes is free" in said(refused.value)
        assert [config.compared for config in lacking_card] == [False]  # the file does not fit, so it is not compared


async def test_slots_are_kept_apart_where_there_are_cells_for_each(place: Place) -> None:
    stage = place.plan(2, 1, 1).stages[0]
    for sizes, apart in ((SIZES, False), (replace(SIZES, kv_cells=4 * 512), True)):
        assert sizes.config(stage, place.entry, "x").apart is apart


@pytest.mark.usefixtures("slow_cuts")
async def test_a_cancelled_cut_leaves_room_for_the_next(place: Place) -> None:
    stage = place.plan(2, 1, 1).stages[0]
    async with asyncio.TaskGroup() as group:
        task = group.create_task(place.cut_out(stage), name="cancelled")
        await place.begun.wait()
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
    assert not place.stages._held
    assert not place.stages._receiving  # else: "received already"
    assert Path(await place.cut_out(stage)).exists()  # noqa: ASYNC240
    assert not place.stages._held


async def test_progress_of_a_cut_is_told_on_the_loop(place: Place) -> None:
    stage = place.plan(2, 1, 1).stages[0]
    await place.cut_out(stage)
    assert {thread for _, thread in place.told} == {threading.main_thread()}
    last = place.told[-1][0]
    assert last.step == "cutting"
    assert 0 < last.done <= last.total


async def test_a_lender_that_takes_nothing_ends_the_load(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenders, "TAKEN_SECONDS", 0.3)
    monkeypatch.setattr(lenders, "ANSWER_SECONDS", 0.1)
    async with asyncio.timeout(30), AsyncExitStack() as stack:
        with pytest.raises(StageLost) as caught:
            await place.open_there(Lender(reads=False), stack)
    assert caught.value.reason.code == "stage_not_taken"
    assert caught.value.reason.facts["machine"] == "attic"


async def test_an_order_that_may_have_arrived_is_taken_back(place: Place) -> None:
    lender = Lender(hears=False)
    async with AsyncExitStack() as stack:
        with pytest.raises(Unreachable):
            await place.open_there(lender, stack)
    assert len(lender.closed) == 1
    assert not lender.answers._waiting


async def test_layers_that_were_opened_are_closed_when_their_channel_fails(place: Place) -> None:
    lender = Lender()
    async with AsyncExitStack() as stack:
        with pytest.raises(Unreachable):
            await place.open_there(lender, stack)
        assert not lender.closed
    assert len(lender.closed) == 1


async def test_a_planned_stage_has_room_for_all_of_its_file(place: Place) -> None:
    for stage in place.plan(1, 2, 1).stages:
        cut = place.shelf.cut(place.entry, stage.layers, stage.role)
        assert stage.weight_bytes >= cut.manifest.total_bytes  # what a lender counts


class Channel:
    """A channel to a machine that hangs, which closes only once it is allowed to."""

    def __init__(self) -> None:
        self.closing, self.may_close = asyncio.Event(), asyncio.Event()

    async def send(self, frame: bytes) -> None: ...

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closing.set()
        await self.may_close.wait()


class Connected(Lender):
    """Two machines, to which each data connection opens."""

    def __init__(self) -> None:
        super().__init__()
        self.machine, self.channels = ATTIC, dict[MachineId, Channel]()
        self.hears_at: asyncio.Event | None = None

    async def send(self, message: messages.Message) -> None:
        if self.hears_at is not None:
            await self.hears_at.wait()
        await super().send(message)

    def link(self, machine: MachineId) -> Lender:
        self.machine = machine
        return self

    async def open_data(self, pipeline: PipelineId) -> FrameChannel:
        return self.channels.setdefault(self.machine, Channel())

    def expect(self, machine: MachineId, pipeline: PipelineId) -> Any:
        return self.answers.expect(ATTIC, pipeline)


async def test_nobody_waits_for_the_end_on_a_machine_that_hangs(place: Place) -> None:
    middle = place.plan(1, 2, 1).stages[1]
    there = replace(place.plan(1, 2, 1), stages=(middle,))
    elsewhere = replace(there, stages=(replace(middle, machine=MachineId("c" * 64)),))
    lender = Connected()
    async with asyncio.timeout(30), AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        stage_set = place.stage_set(lender, stack)
        await stage_set.open(there)
        hangs = lender.channels[ATTIC]
        await stage_set.open(elsewhere)
        await hangs.closing.wait()
        assert not lender.closed
        again = group.create_task(stage_set.open(there), name="open there again")
        lender.channels[elsewhere.stages[0].machine].may_close.set()
        await asyncio.sleep(0.05)
        assert len(lender.closed) == 1
        assert not again.done(), "its memory is wanted again: first it is given back"
        hangs.may_close.set()
        await again
        assert len(lender.closed) == 2
    assert len(lender.closed) == 3


async def test_what_goes_wrong_above_a_placement_is_told_as_it_is(place: Place) -> None:
    middle, lender = place.plan(1, 2, 1).stages[1], Connected()
    stack = AsyncExitStack()
    await place.stage_set(lender, stack).open(replace(place.plan(1, 2, 1), stages=(middle,)))
    lender.channels[ATTIC].may_close.set()
    why = StageLost("stage_gone")
    assert not await stack.__aexit__(StageLost, why, None)  # no group of errors is raised
    assert len(lender.closed) == 1


async def test_what_is_opened_ahead_is_given_back_when_the_placement_ends(place: Place) -> None:
    middle, lender = place.plan(1, 2, 1).stages[1], Connected()
    spare = replace(middle, machine=MachineId("c" * 64))
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        async with AsyncExitStack() as stack:
            stage_set = place.stage_set(lender, stack)
            await stage_set.open(replace(place.plan(1, 2, 1), stages=(middle,)))
            lender.channels[ATTIC].may_close.set()
            await stage_set.prepare(spare)
            lender.channels[spare.machine].may_close.set()
            assert stage_set.standby(replace(place.plan(1, 2, 1), stages=(middle,))) == [spare]
            lender.hears_at = asyncio.Event()
            other = replace(spare, machine=MachineId("e" * 64))
            late = group.create_task(_fails(stage_set.prepare(other)), name="opened ahead")
            await asyncio.sleep(0.05)
        lender.hears_at.set()
        assert await late == "pipeline_closed"
    assert len(lender.closed) == 3  # the late one's, too: it may have been opened there


async def _fails(work: Awaitable[None]) -> str:
    with pytest.raises(StageLost) as raised:
        await work
    return raised.value.reason.code
