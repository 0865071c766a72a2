"""Tests of hosts on a lender: offers, transfers, runs, and that everything is given back exactly once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.catalog.stages.cut import Cut
from app.core.errors import BadInput, DoesNotFit, Reason, Refused, StageLost
from app.core.household.household import IdleCard, SelfDescription
from app.core.household.operations import Role as HouseholdRole
from app.core.ids import MachineId
from app.core.reasons import said
from app.inference.stages.stage_host import RunOrder, StageHost
from app.inference.worker.worker import ONE_THREAD
from app.machine.hardware.cores import Threads
from app.network import messages
from app.network.peer.frame_channel import MemoryChannel
from app.node import status_broadcaster
from app.node.lending import lending_service as lending_module
from app.node.lending.lending_service import LendingService, stage_request
from app.node.node import Node
from backends.worker_orders import StageOpened
from tests.node.graphics_stub import Cards, JudgedCards
from tests.node.lending_bench import OPEN, Bench, StandIn, Terms, member, new
from tests.node.pool import node, pair


class Few(Terms):
    """An owner who lends two threads."""

    def threads(self) -> int:
        return 2


@pytest.mark.parametrize(("of_worker", "used"), [(8, 2), (1, 1)])
async def test_the_owner_says_how_many_threads_others_get(bench: Bench, of_worker: int, used: int) -> None:
    async with asyncio.TaskGroup() as group:
        home, lender = bench.home, bench.lender
        lender.may_open.set()
        bench.lending = LendingService(
            lender, home.shelf, home.stages, Few(), Threads(of_worker, 8), group, bench.changed
        )
        pipeline = new()
        await bench.bring(pipeline)
        await bench.open(pipeline)
        await bench.answered(1)
        assert lender.held[pipeline].config.threads == used
        await bench.lending.close(member().id, pipeline)


@pytest.mark.parametrize(("kv_cells", "context"), [(256, 128), (512, 256)])
async def test_layers_come_compute_and_are_given_back(bench: Bench, kv_cells: int, context: int) -> None:
    """A real worker and the real engine compute."""
    async with StageHost(lambda: 1 << 30, "attic") as lender, asyncio.TaskGroup() as group:
        home = bench.home
        bench.lending = LendingService(lender, home.shelf, home.stages, OPEN, Threads(3), group, bench.changed)
        pipeline = new()
        await bench.bring(pipeline)
        await bench.open(pipeline, kv_cells=kv_cells, context=context)
        [ready] = await bench.answered(1)
        assert isinstance(ready, messages.StageReady), ready
        assert ready.fetched_bytes == sum(piece.n_bytes for piece in bench.cut.manifest.pieces)
        assert lender.runs[0].config.threads == 3
        assert lender.runs[0].config.apart is (kv_cells == 512)  # of two slots
        assert bench.lending.borrowers() == {member().id}
        assert bench.is_kept()
        with pytest.raises(Refused):
            await bench.lending.data(member("b"), pipeline, MemoryChannel.pair()[0])
        await bench.lending.close(member("b").id, pipeline)  # another's: nothing happens
        assert lender.used_bytes
        await bench.lending.close(member().id, pipeline)
        assert (lender.used_bytes, bench.lending.borrowers(), bench.is_kept()) == (0, set(), False)
        bench.lending.end()


async def test_a_run_is_opened_once_and_its_file_released_once(bench: Bench) -> None:
    first, second = new(), new()
    await bench.bring(first)
    for _ in range(20):
        await bench.open(first)
    assert bench.codes() == ["lend_twice"] * 19
    bench.lender.may_open.set()
    await bench.answered(20)
    assert bench.codes()[19] == "ready"
    assert bench.lender.n_opened == 1
    assert bench.lending.borrowers() == {member().id}

    await bench.offer(second)
    bench.lender.fails = DoesNotFit("lend_too_large", needed_bytes=2, free_bytes=1, lent_bytes=1)
    await bench.open(second)
    await bench.answered(21)
    await bench.lending.close(member().id, second)  # as hosts do after a failure
    assert bench.codes()[20] == "lend_too_large"
    assert bench.is_kept()  # by the first
    await bench.lending.close(member().id, first)
    assert not bench.is_kept()


class Fuller(StandIn):
    """A lender whose graphics cards have less memory than is known."""

    def __init__(self, *lacks: bool) -> None:
        super().__init__()
        self._lacks, self.orders = list(lacks), list[RunOrder]()
        self.may_open.set()

    async def open(self, expected: RunOrder, *, threads: Threads = ONE_THREAD) -> StageOpened:
        self.orders.append(expected)
        if expected.config.device and self._lacks.pop(0):
            self.on_ended(expected.run.pipeline)  # as the real one does
            raise DoesNotFit("memory_short", cause="unable to allocate Vulkan1 buffer")
        return await super().open(expected, threads=threads)


@pytest.mark.parametrize("lacks", [(False,), (True, False), (True,) * 9])
async def test_layers_are_divided_among_cards_and_more_stay_with_the_processor_if_these_lack_memory(
    bench: Bench, tmp_path: Path, lacks: tuple[bool, ...]
) -> None:
    lender, home = Fuller(*lacks), bench.home
    cards = Cards(tmp_path, 1 << 30, 1 << 30)
    async with asyncio.TaskGroup() as group:
        bench.lending = LendingService(
            lender, home.shelf, home.stages, OPEN, Threads(1), group, bench.changed, graphics=cards
        )
        pipeline = new()
        await bench.bring(pipeline)
        path = home.stages.path(bench.cut.manifest.id)
        assert path is not None
        whole = stage_request(bench.order(pipeline), path, bench.cut.manifest, Threads(1), cards)
        assert whole.parts is not None
        work, layer = whole.parts.work_bytes, max(whole.parts.layer_bytes)
        cards.rooms = (work + 3 * layer, work + layer)
        await bench.open(pipeline)
        await bench.answered(1)
        first = lender.orders[0]
        assert (first.config.devices, first.config.device_layers) == (("Vulkan0", "Vulkan1"), (3, 1))
        assert first.card_bytes >= 4 * min(whole.parts.layer_bytes)
        [ready] = await bench.answered(1)
        assert isinstance(ready, messages.StageReady), ready
        assert ready.card_short is (len(lacks) > 1)
        assert len(cards.shortages) == len(lender.orders) - 1
        on_cards = [sum(order.config.device_layers) for order in lender.orders]
        assert on_cards == sorted(on_cards, reverse=True)
        if len(lacks) > 1:
            assert lender.orders[1].config.uses_processor
        if all(lacks):
            assert lender.orders[-1].config.device == ready.card == ""  # in the end without the cards
        assert bench.is_kept()
        await bench.lending.close(member().id, pipeline)
        assert not cards.claims


async def test_layers_for_a_card_that_is_switched_off_meanwhile_are_not_tried_there_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is claimed on it anymore, so there is nothing to reduce, although another card computes."""
    lender, home = Fuller(*(True,) * 9), bench.home
    cards = Cards(tmp_path, 1 << 30, 1 << 30)

    def request_and_switch_off(*of: Any) -> RunOrder:
        request = stage_request(*of)
        cards.computing, cards.rooms = cards.computing[1:], cards.rooms[1:]
        return request

    monkeypatch.setattr(lending_module, "stage_request", request_and_switch_off)
    async with asyncio.TaskGroup() as group:
        bench.lending = LendingService(
            lender, home.shelf, home.stages, OPEN, Threads(1), group, bench.changed, graphics=cards
        )
        pipeline = new()
        await bench.bring(pipeline)
        await bench.open(pipeline)
        await bench.answered(1)
        assert bench.codes() == ["memory_short"]
        assert [order.config.devices for order in lender.orders] == [("Vulkan0",)]


class Crashing(StandIn):
    """A lender whose workers crash on one of its cards, and are refused by another."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: list[tuple[str, ...]] = []
        self.compared: list[bool] = []
        self.may_open.set()

    async def open(self, expected: RunOrder, *, threads: Threads = ONE_THREAD) -> StageOpened:
        config = expected.config
        self.devices.append(config.devices)
        self.compared.append(config.compared)
        if config.device == "Vulkan0":
            self.on_device_lost(config, expected.family)
            raise StageLost("worker_crashed", worker="attic", how=Reason("end_closed"), words="")
        if config.device == "Vulkan1":
            cause = Reason("device_apart", {"percent": "61.2", "device": "Vulkan1"})
            raise BadInput("device_unfit", worker="attic", cause=cause)
        return await super().open(expected, threads=threads)


async def test_layers_of_a_family_with_which_one_card_crashes_and_one_errs_are_loaded_on_the_processor(
    bench: Bench, tmp_path: Path
) -> None:
    """The host notices nothing but the time that it takes."""
    lender, home = Crashing(), bench.home
    cards = JudgedCards(tmp_path, 1 << 40, 1 << 40)
    async with asyncio.TaskGroup() as group:
        bench.lending = LendingService(
            lender, home.shelf, home.stages, OPEN, Threads(1), group, bench.changed, graphics=cards
        )
        pipeline = new()
        await bench.bring(pipeline)
        await bench.open(pipeline)
        await bench.answered(1)
        assert bench.codes() == ["ready"]
        assert lender.devices == [("Vulkan0",), ("Vulkan1",), ()]
        assert lender.compared == [True, True, False]
        assert (cards.crashes, cards.losses) == ([cards.computing[0]], [])
        assert [why.code for why in cards.verdicts.values() if why] == ["device_crashed", "device_apart"]
        await bench.lending.close(member().id, pipeline)


async def test_no_offer_under_the_name_of_an_open_run(bench: Bench) -> None:
    pipeline = new()
    await bench.bring(pipeline)
    bench.lender.may_open.set()
    await bench.open(pipeline)
    await bench.answered(1)
    with pytest.raises(Refused):
        await bench.offer(pipeline)
    await bench.offer(other := new())
    with pytest.raises(Refused):
        await bench.offer(other, member("b"))
    await bench.open(other, member("b"))
    assert bench.codes()[1] == "stage_not_offered"
    await bench.open(other, manifest="0" * 64)
    assert bench.codes()[2] == "manifest_odd"


async def test_what_the_owner_does_not_allow_no_host_gets(bench: Bench) -> None:
    wants = await bench.offer(pipeline := new())
    bench.terms.why = "pause_battery"
    for request in (bench.offer(new()), bench.lending.pieces(member(), pipeline, bench.chunks(wants))):
        with pytest.raises(Refused) as refused:
            await request
        assert said(refused.value) == "attic: Paused: running on battery. Resumes when it is plugged in."
    bench.terms.why = None
    await bench.bring(pipeline := new())
    bench.terms.why = "pause_battery"
    await bench.open(pipeline)
    assert bench.codes() == ["pause_battery"]
    assert bench.lender.n_opened == 0
    bench.terms.why = None
    await bench.open(pipeline)
    bench.terms.why = "pause_hours"  # while the stage file is read
    await bench.answered(2)
    assert bench.codes() == ["pause_battery", "pause_hours"]
    assert (bench.lender.n_opened, bench.is_kept()) == (0, False)


async def test_a_pause_in_the_middle_of_a_transfer_ends_it(bench: Bench) -> None:
    wants = await bench.offer(pipeline := new())

    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in bench.chunks(wants):
            yield chunk[:1000]
            bench.terms.why = "pause_owner"
            yield chunk[1000:]

    with pytest.raises(Refused):
        await bench.lending.pieces(member(), pipeline, chunks())
    bench.terms.why = None
    await bench.bring(new())  # it goes on where it broke off


async def test_who_may_use_others_no_more_keeps_nothing(bench: Bench) -> None:
    await bench.bring(pipeline := new())
    bench.lender.may_open.set()
    await bench.open(pipeline)
    await bench.answered(1)
    bench.lending.drop_former_hosts({member().id: member()})
    await asyncio.sleep(0.05)
    assert bench.lending.borrowers() == {member().id}
    bench.lending.drop_former_hosts({member().id: replace(member(), roles=frozenset({HouseholdRole.LENDER}))})
    await until(lambda: not bench.lending.borrowers())
    assert not bench.is_kept()


async def test_a_member_loads_only_a_few_runs_at_once(bench: Bench) -> None:
    for _ in range(lending_module.MAX_OPENINGS):
        await bench.bring(pipeline := new())
        await bench.open(pipeline)
    assert bench.codes() == []
    await bench.bring(more := new())
    await bench.open(more)
    assert bench.codes() == ["lend_busy"]
    await bench.bring(theirs := new(), member("b"))
    bench.lender.may_open.set()
    await bench.open(theirs, member("b"))
    await bench.answered(6)
    assert bench.codes()[1:] == ["ready"] * 5
    await bench.open(more)
    await bench.answered(7)
    assert bench.codes()[6] == "ready"


@pytest.mark.parametrize("turns", [0, 1, 100])
async def test_a_member_removed_while_it_loads_keeps_nothing(bench: Bench, turns: int) -> None:
    await bench.bring(pipeline := new())
    await bench.offer(left := new())
    await bench.open(pipeline)
    for _ in range(turns):
        await asyncio.sleep(0.001)
    await asyncio.wait(bench.lending.close_soon(member().id))
    bench.lender.may_open.set()
    await asyncio.sleep(0.05)
    assert (bench.lending.borrowers(), bench.lender.used_bytes, bench.is_kept()) == (set(), 0, False)
    await bench.open(left)
    assert bench.codes() == ["stage_not_offered"]


async def test_a_run_that_ends_by_itself_is_forgotten_and_told(bench: Bench) -> None:
    await bench.bring(pipeline := new())
    bench.lender.may_open.set()
    await bench.open(pipeline)
    await bench.answered(1)
    before = len(bench.changes)
    bench.lender.held.clear()
    bench.lender.on_ended(pipeline)
    assert (bench.lending.borrowers(), bench.is_kept()) == (set(), False)
    assert len(bench.changes) == before + 1


async def test_offers_do_not_disturb_what_is_being_loaded(bench: Bench) -> None:
    """Once they gave back all runs that the lender did not have yet."""
    await bench.bring(pipeline := new())
    await bench.open(pipeline)
    await bench.offer(new(), member("b"))
    await bench.offer(new())
    bench.lender.may_open.set()
    await bench.answered(1)
    assert bench.codes() == ["ready"]


async def test_giving_back_is_carried_out_though_the_link_ends(bench: Bench) -> None:
    await bench.bring(pipeline := new())
    bench.lender.may_open.set()
    await bench.open(pipeline)
    await bench.answered(1)
    bench.lender.may_close.clear()
    closing = asyncio.gather(bench.lending.close(member().id, pipeline))
    await asyncio.sleep(0.01)
    closing.cancel()
    with suppress(asyncio.CancelledError):
        await closing
    assert bench.is_kept()
    bench.lender.may_close.set()
    await until(lambda: not bench.is_kept())
    assert (bench.lender.used_bytes, bench.lending.borrowers(), bench.is_kept()) == (0, set(), False)


async def test_a_fault_of_ours_ends_one_run_and_not_the_node(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    await bench.bring(pipeline := new())
    bench.lender.may_open.set()
    bench.lender.fails = KeyError("a bug")
    await bench.open(pipeline)
    await bench.answered(1)
    assert bench.codes() == ["bug"]
    assert "a bug" in caplog.text
    assert not bench.is_kept()
    bench.lender.fails = None
    await bench.offer(again := new())

    async def fail(message: messages.Message) -> None:
        raise RuntimeError("another bug")

    await bench.lending.open(member(), bench.order(again), fail)
    await until(lambda: "another bug" in caplog.text)
    assert bench.lending.borrowers() == {member().id}


async def test_only_families_that_are_proved_to_split_are_lent(bench: Bench) -> None:
    manifest = bench.cut.manifest
    strange = replace(manifest, header=manifest.header.replace(b"llama", b"alpha"))
    bench.cut = Cut(strange, bench.cut.sources)
    await bench.bring(pipeline := new())
    await bench.open(pipeline)
    await bench.answered(1)
    assert bench.codes() == ["whole_family"]
    assert bench.lender.n_opened == 0


def test_what_others_call_themselves_is_fit_to_be_shown() -> None:
    status = messages.Status(
        name="den\u202e\x1b[31m", device="CPU\n\x07 2", total_bytes=1, lendable_bytes=1, used_bytes=0,
        state="ready", hottest_c=61, used_by=["ab" * 32], engine="llama\x1b cpp 1", watts=46,
        link_mbit=50, idle_card="RTX\x1b 3060", idle_card_pack="CUDA\u202e 13",
    )  # fmt: skip
    link = SimpleNamespace(peer=member().id, name="den", hello=SimpleNamespace(name="den"))
    described = status_broadcaster.description_from_status(link, status)  # type: ignore[arg-type]
    assert (described.name, described.device, described.hottest_c) == ("den[31m", "CPU 2", 61)
    assert described.about == SelfDescription(
        (MachineId("ab" * 32),), "llama cpp 1", 46, 50, IdleCard("RTX 3060", "CUDA 13")
    )


@pytest.mark.long
async def test_a_host_that_starts_anew_leaves_no_layers_behind(tmp_path: Path) -> None:
    with node(tmp_path / "guest", "guest") as guest:
        with node(tmp_path / "host", "host") as host:
            pair(host, guest)
            assert host.run("load", "guide", "--split", "2,4,2").returncode == 0
            assert guest.workers()
            host.process.kill()
            host.process.wait()
        assert guest.workers()  # they wait for its return
        with node(tmp_path / "host", "host"):
            await until(lambda: not guest.workers())
        status = json.loads(guest.run("status", "--json").stdout)
        assert status["node"]["lending"]["used_bytes"] == 0


async def test_what_a_host_holds_that_stands_still_is_given_back_in_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections seem to live for ever; the link that is asked each second does not."""
    await bench.bring(pipeline := new())
    bench.lender.may_open.set()
    await bench.open(pipeline)
    await bench.answered(1)
    bench.lending.host_disconnected(member().id)
    timers = [bench.lending._unlinked[member().id]]
    bench.lending.host_disconnected(member().id)  # of two links at once the later one counts
    timers.append(bench.lending._unlinked[member().id])
    assert [timer.cancelled() for timer in timers] == [True, False]
    assert timers[1].when() > asyncio.get_running_loop().time() + 500
    assert not bench.lending.host_connected(member().id, "1")  # in time
    assert (timers[1].cancelled(), bench.lending._unlinked) == (True, {})
    monkeypatch.setattr(lending_module, "KEEP_S", 0.0)
    bench.lending.host_disconnected(member("b").id)  # who holds nothing
    assert bench.lending.borrowers() == {member().id}
    bench.lending.host_disconnected(member().id)
    await until(lambda: not bench.lending.borrowers())
    assert not bench.is_kept()
    bench.lending.host_disconnected(member().id)
    waiting = bench.lending._unlinked[member().id]
    bench.lending.end()
    assert waiting.cancelled()


async def test_that_wait_begins_where_a_link_ends(bench: Bench) -> None:
    """Only the network's report to the node is involved."""
    nobody = SimpleNamespace(link_lost=lambda *_: None, lender_left=lambda _: None)
    household = SimpleNamespace(apply=lambda _: None)
    lenders = SimpleNamespace(answers=nobody, slots=nobody)
    node = SimpleNamespace(_lenders=lenders, speed_measurer=nobody, model_manager=nobody, household=household)
    node.lending_service = bench.lending
    link = SimpleNamespace(peer=member().id, name="den", ended=None)
    await Node.disconnected(cast("Any", node), cast("Any", link))
    assert list(bench.lending._unlinked) == [member().id]
    bench.lending.end()


async def until(holds: Callable[[], bool], within_s: float = 60) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.1)


async def test_a_run_begins_anew_for_its_own_host_and_a_newer_epoch_only(bench: Bench) -> None:
    """Its layers stay loaded; nothing is offered or sent again."""
    async with StageHost(lambda: 1 << 30, "attic") as lender, asyncio.TaskGroup() as group:
        home = bench.home
        bench.lending = LendingService(lender, home.shelf, home.stages, OPEN, Threads(3), group, bench.changed)
        pipeline = new()
        await bench.bring(pipeline)
        await bench.open(pipeline)
        await bench.answered(1)
        worker = lender._open[pipeline].running_worker()
        odd: list[dict[str, Any]] = [{"epoch": 1}, {"epoch": 2, "slots": 3}, {"epoch": 2, "first": 3}]
        for changes in odd:
            await bench.open(pipeline, **changes)
        await bench.open(pipeline, member("b"), epoch=2)
        await bench.answered(5)
        assert bench.codes() == ["ready", *["lend_twice"] * 4]
        await bench.open(pipeline, epoch=2)
        again = (await bench.answered(6))[-1]
        assert isinstance(again, messages.StageReady)
        assert (again.epoch, again.fetched_bytes) == (2, 0)
        assert lender._open[pipeline].running_worker() is worker
        assert lender.runs[0].run.epoch == 2
        worker.kill(Reason("worker_closed", {"worker": "it"}))
        await worker.wait_dead()
        await bench.open(pipeline, epoch=3)
        assert (await bench.answered(7))[-1].code != "ready"  # type: ignore[union-attr]
        bench.lending.end()
