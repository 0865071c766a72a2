"""Speeds over the network: real paired nodes, and hosts and lenders that are not as they should be."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.api.requests import MeasureModel
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.errors import BadInput, Reason, Refused, Unreachable
from app.core.household import household
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId
from app.core.planner.speed_estimates import Speed, SpeedConditions
from app.inference.worker import layer_benchmark
from app.inference.worker.layer_benchmark import BenchmarkSettings
from app.machine.hardware.cards import PROCESSOR_ONLY, Card, ComputingCard, ProcessorOnly
from app.machine.hardware.cores import Threads
from app.machine.hardware.engines import Engine
from app.network import messages
from app.network.messages import MeasureSpeed, SpeedMeasured, SpeedRefused
from app.node.planning import local_speed, speed_measurer
from app.node.planning.local_speed import Hardware, LocalSpeed, LocalWork
from app.node.planning.speed_measurer import SpeedMeasurer
from app.node.verification.spare_memory import SpareMemory
from testbed import tiny
from tests.node.graphics_stub import Cards
from tests.node.pool import paired

ME, LENDER = MachineId("a" * 64), MachineId("b" * 64)
HOST = Member(ME, b"", "den", frozenset({Role.HOST, Role.LENDER}))
GIB = 1 << 30
ROWS = 64
CONDITIONS = SpeedConditions(ROWS)


@pytest.mark.long
async def test_real_nodes_measure_for_each_other(tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        lines: list[Any] = []
        order = {"model": "guide", "one_by_one": True}  # they share this computer
        async with den.client() as host:
            first = await host.work("POST", "/speeds", order, lines.append)
            again = await host.work("POST", "/speeds", {"model": "guide"})
            status = await host.get("/status")
        assert set(first["speeds"]) == {den.ready["id"], attic.ready["id"]}
        own, other = first["speeds"][den.ready["id"]], first["speeds"][attic.ready["id"]]
        assert min(own["layer_s"], own["chunk_s"], own["step_s"]) > 0
        assert min(other["layer_s"], other["chunk_s"], other["step_s"]) > 0
        assert (other["head_s"], other["head_row_s"]) == (0, 0)
        assert 0.01 < own["chunk_s"] / other["chunk_s"] < 100  # one computer, which may be busy
        assert {line.machine for line in lines} == {"den", "attic"}
        assert {line.step for line in lines} == {"measuring"}
        assert again == first
        assert (den.root / "speeds.json").exists()
        assert (attic.root / "speeds.json").exists()
        assert not any(node.root.joinpath("measuring").exists() for node in (den, attic))
        devices = {machine["device"] for machine in status["machines"].values()}
        assert len(devices) == 1  # what the other says of its processor has come, too


@dataclass
class Machine:
    """One side in this process: how busy it is, what it lends, what its engines are."""

    answering: bool = False
    lent: int = GIB
    used_bytes: int = 0
    why: str = ""
    spare_memory: SpareMemory = field(default_factory=lambda: SpareMemory(lambda: GIB))

    def busy(self) -> bool:
        return False

    def lent_bytes(self) -> int:
        return self.lent

    def threads(self) -> int:
        return 0

    def require(self) -> None:
        if self.why:
            raise Refused(self.why)


class Known(Hardware):
    """Asks no child."""

    async def engines(self) -> list[Engine]:
        return [Engine("llamacpp", "0.3")]


@dataclass
class Side:
    speed_measurer: SpeedMeasurer
    machine: Machine
    own: LocalSpeed
    entry: Entry
    sent: list[messages.Message] = field(default_factory=list)

    async def answer(self, order: MeasureSpeed, member: Member = HOST) -> Any:
        """Return the answer to a member's request."""
        queue: asyncio.Queue[Any] = asyncio.Queue()
        await self.speed_measurer.answer_request(member, order, queue.put)
        return await queue.get()


def shelf_in(folder: Path) -> tuple[Shelf, Entry]:
    folder.mkdir(exist_ok=True)
    stages = StageStore(folder / "stages", GIB)
    shelf = Shelf(folder / "models", folder / "guide.gguf", stages)
    return shelf, shelf.import_file(tiny.llama(folder / "tiny.gguf", layers=2))


@asynccontextmanager
async def side(
    folder: Path, link: Callable[[MachineId], Any] | None = None, graphics: ComputingCard = PROCESSOR_ONLY
) -> AsyncIterator[Side]:
    """A machine with one tiny model."""
    shelf, entry = shelf_in(folder)
    machine = Machine()
    own = LocalSpeed(LocalWork(Known(Threads(1), lambda: None, graphics), machine, machine, machine), folder)
    async with asyncio.TaskGroup() as group:
        yield Side(SpeedMeasurer(own, shelf, link or nobody, group), machine, own, entry)


def nobody(machine: MachineId) -> Any:
    raise Unreachable("peer_offline", name=machine)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_benchmark, "MOST_STEPS", 4)
    monkeypatch.setattr(layer_benchmark, "DEPTH", 64)
    monkeypatch.setattr(speed_measurer, "RETRY_S", 0.01)


def order_of(item: Side, **changes: Any) -> MeasureSpeed:
    fields = {"request": 7, "shape": item.speed_measurer._basis(item.entry).shape, "batch_rows": ROWS}
    return MeasureSpeed(**{**fields, **changes})


async def test_a_host_is_answered_and_the_second_time_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with side(tmp_path / "lender") as lender:
        answer = await lender.answer(order_of(lender))
        assert isinstance(answer, SpeedMeasured)
        assert (answer.request, answer.layer_s > 0) == (7, True)
        monkeypatch.setattr("app.node.planning.local_speed.measure", None)  # nothing is measured any more
        again = await lender.answer(order_of(lender, request=8))
        assert again == messages.SpeedMeasured(**{
            **{name: getattr(answer, name) for name in answer.__struct_fields__}, "request": 8,
        })  # fmt: skip


@pytest.mark.long
async def test_a_doubt_is_heeded_once_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with side(tmp_path / "lender") as lender:
        first = await lender.answer(order_of(lender))
        lender.own._rested_at = 0.0
        fresh = await lender.answer(order_of(lender, again=True))
        assert isinstance(fresh, SpeedMeasured)
        assert fresh != first
        monkeypatch.setattr("app.node.planning.local_speed.measure", None)  # nothing is measured any more
        assert await lender.answer(order_of(lender, again=True)) == fresh


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"answering": True}, "speed_busy"),
        ({"lent": 1 << 20}, "speed_no_room"),
        ({"used_bytes": GIB}, "speed_no_room"),
        ({"why": "lend_off"}, "lend_off"),
    ],
)
async def test_a_lender_may_say_no(tmp_path: Path, changes: dict[str, Any], code: str) -> None:
    async with side(tmp_path / "lender") as lender:
        for name, value in changes.items():
            setattr(lender.machine, name, value)
        refused = await lender.answer(order_of(lender))
        assert isinstance(refused, SpeedRefused)
        assert messages.received_reason(refused).code == code
        assert str(tmp_path) not in str(refused.facts)


async def test_only_hosts_may_ask(tmp_path: Path) -> None:
    guest = Member(LENDER, b"", "guest", frozenset({Role.LENDER}))
    async with side(tmp_path / "lender") as lender:
        assert (await lender.answer(order_of(lender), guest)).code == "role_missing"


async def test_a_shape_that_cannot_be_is_refused(tmp_path: Path) -> None:
    async with side(tmp_path / "lender") as lender:
        shape = lender.speed_measurer._basis(lender.entry).shape
        fields = {name: getattr(shape, name) for name in shape.__struct_fields__}
        odd = type(shape)(**{**fields, "architecture": "mamba"})
        assert (await lender.answer(order_of(lender, shape=odd))).code == "whole_family"


async def test_one_trial_at_a_time_and_a_rest_after_it(tmp_path: Path) -> None:
    other = Member(LENDER, b"", "study", HOST.roles)
    async with side(tmp_path / "lender") as lender:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        for member in (HOST, HOST, other):
            await lender.speed_measurer.answer_request(member, order_of(lender), queue.put)
        answers = [await queue.get() for _ in range(3)]
        codes = sorted(getattr(answer, "code", "measured") for answer in answers)
        assert codes == ["measured", "speed_busy", "speed_busy"]
        another = order_of(lender, batch_rows=32)  # nothing is known of these
        assert (await lender.answer(another)).code == "speed_busy"


async def test_an_answer_that_begins_ends_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_benchmark, "MOST_STEPS", 1 << 20)
    monkeypatch.setattr(layer_benchmark, "SINGLE_S", 1e9)
    async with side(tmp_path / "lender") as lender:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        await lender.speed_measurer.answer_request(HOST, order_of(lender), queue.put)
        await asyncio.sleep(0.3)
        lender.machine.answering = True
        async with asyncio.timeout(30):
            assert (await queue.get()).code == "speed_busy"


@dataclass
class Link:
    """A link to a lender in this process, or to one that answers as the test chooses."""

    answer: Callable[[MeasureSpeed], Any]
    asked: list[MeasureSpeed] = field(default_factory=list)

    async def send(self, message: messages.Message) -> None:
        passed = messages.decode(messages.encode(message))  # through the real codec
        assert isinstance(passed, MeasureSpeed)
        self.asked.append(passed)
        await self.answer(passed)


async def measured(
    host: Side, within_s: float = 30, report: Callable[[Any], None] = lambda _: None
) -> dict[MachineId, Speed | None]:
    lenders = {LENDER: "attic"}
    return await host.speed_measurer.speeds(host.entry, (ME, "den"), lenders, CONDITIONS, report, within_s)


@pytest.mark.long
async def test_a_host_asks_again_while_the_lender_is_busy(tmp_path: Path) -> None:
    async with side(tmp_path / "lender") as lender:

        async def answer(order: MeasureSpeed) -> None:
            lender.machine.answering = len(link.asked) < 3
            answer = await lender.answer(order)
            host.speed_measurer.receive(LENDER, messages.decode(messages.encode(answer)))  # type: ignore[arg-type]

        link = Link(answer)
        async with side(tmp_path / "host", lambda _: link) as host:
            lines: list[Any] = []
            measurement = await measured(host, report=lines.append)
            own, other = measurement[ME], measurement[LENDER]
            assert own is not None
            assert other is not None
            assert own.head_s >= 0 == other.head_s
            assert len(link.asked) == 3
            assert {line.machine for line in lines} == {"den", "attic"}
            assert await measured(host) == measurement
            assert len(link.asked) == 3
            assert await host.speed_measurer.doubt(host.entry, CONDITIONS, ME) == {ME, LENDER}
            anew = await measured(host)
            assert (anew[ME] != own, anew[LENDER] != other) == (True, True)
            agains = [order.again for order in link.asked]  # some while it rests from its trial
            assert agains == [False] * 3 + [True] * (len(agains) - 3)
            assert await host.speed_measurer.doubt(host.entry, CONDITIONS, ME) == set()  # that was looked at
            assert await measured(host) == anew
            host.speed_measurer.link_lost(LENDER, "attic")
            n_asked = len(link.asked)
            await measured(host)
            assert len(link.asked) == n_asked + 1


async def test_all_machines_are_measured_with_the_instructions_of_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials: list[bool] = []

    async def measure(_shape: object, _folder: Path, gauge: BenchmarkSettings, **_: object) -> Speed:
        trials.append(gauge.exact)
        return Speed(0.002 if gauge.exact else 0.001, 0.0, 0.0, 0.002, 0.0, 0.0, 0.0, 0.0)

    monkeypatch.setattr(local_speed, "measure", measure)
    async with side(tmp_path / "lender") as lender:

        async def answer(order: MeasureSpeed) -> None:
            host.speed_measurer.receive(LENDER, await lender.answer(order))

        link = Link(answer)
        async with side(tmp_path / "host", lambda _: link) as host:
            for exact in (False, True):
                speeds = await host.speed_measurer.speeds(
                    host.entry, (ME, "den"), {LENDER: "attic"}, SpeedConditions(ROWS, exact), lambda _: None
                )
                assert {speed.layer_s for speed in speeds.values() if speed} == {0.002 if exact else 0.001}
            assert sorted(trials) == [False, False, True, True]
            assert list(dict.fromkeys(order.exact for order in link.asked)) == [False, True]


@pytest.mark.parametrize("overflows", [True, False])
async def test_beside_a_card_the_processor_is_measured_too_where_it_may_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overflows: bool
) -> None:
    trials: list[tuple[str, bool]] = []

    async def measure(_shape: object, _folder: Path, gauge: BenchmarkSettings, **_: object) -> Speed:
        trials.append((gauge.card.name if gauge.card else "", gauge.head))
        return Speed(0.001 if gauge.card else 0.02, 0.0, 0.0, 0.03, 0.0, 0.0, 0.0, 0.0)

    monkeypatch.setattr(local_speed, "measure", measure)
    cards = Cards(tmp_path, GIB)
    cards.overflows = overflows
    async with side(tmp_path / "lender", graphics=cards) as lender:

        async def answer(order: MeasureSpeed) -> None:
            host.speed_measurer.receive(LENDER, await lender.answer(order))

        async with side(tmp_path / "host", lambda _: Link(answer), graphics=cards) as host:
            for known_only in (False, True):
                speeds = await host.speed_measurer.speeds(
                    host.entry, (ME, "den"), {LENDER: "attic"}, CONDITIONS, lambda _: None, known_only=known_only
                )
                for speed in speeds.values():
                    assert speed is not None
                    assert speed.layer_s == 0.001
                    assert (speed.processor.layer_s if speed.processor else None) == (0.02 if overflows else None)
    assert sorted(trials) == sorted(
        [("Vulkan0", True), ("Vulkan0", False), *([("", False), ("", False)] if overflows else [])]
    )


class Lacking(ProcessorOnly):
    """A card that lacks an operation of every family."""

    def __init__(self, folder: Path) -> None:
        library = folder / "pack" / "lib.so"
        self.computing = (Card("Vulkan0", "A card", "Vulkan", library, folder, "", False, GIB, GIB),)
        self.verdicts: set[str] = set()

    @property
    def card(self) -> Card | None:
        return self.computing[0]

    def card_for(self, family: str) -> Card | None:
        return None if family in self.verdicts else self.card

    def judge(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        self.verdicts.add(family)


async def test_the_processor_is_measured_for_a_family_that_the_card_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def measure(_shape: object, _folder: Path, gauge: BenchmarkSettings, **_: object) -> Speed:
        if gauge.card is not None:
            raise BadInput("device_unfit", worker="den", cause=Reason("device_tensor", {"tensor": "blk.0.ssm_a"}))
        return Speed(0.002, 0.0, 0.0, 0.002, 0.0, 0.0, 0.0, 0.0)

    monkeypatch.setattr(local_speed, "measure", measure)
    cards = Lacking(tmp_path), Lacking(tmp_path)
    async with side(tmp_path / "lender", graphics=cards[0]) as lender:

        async def answer(order: MeasureSpeed) -> None:
            host.speed_measurer.receive(LENDER, await lender.answer(order))

        async with side(tmp_path / "host", lambda _: Link(answer), cards[1]) as host:
            speeds = await measured(host)
            assert [speed.layer_s for speed in speeds.values() if speed] == [0.002, 0.002]
            family = host.entry.model.family
            assert [each.verdicts for each in cards] == [{family}, {family}]


@pytest.mark.long
async def test_what_is_doubted_still_answers_who_will_not_measure(tmp_path: Path) -> None:
    """Otherwise the Pool page would lose its forecast after a badly forecast answer, or a broken link."""
    async with side(tmp_path / "lender") as lender:

        async def answer(order: MeasureSpeed) -> None:
            host.speed_measurer.receive(LENDER, await lender.answer(order))

        async def known() -> dict[MachineId, Speed | None]:
            me, lenders = (ME, "den"), {LENDER: "attic"}
            work = host.speed_measurer.speeds(host.entry, me, lenders, CONDITIONS, lambda _: None, known_only=True)
            return await work

        link = Link(answer)
        async with side(tmp_path / "host", lambda _: link) as host:
            assert await known() == {ME: None, LENDER: None}
            measurement = await measured(host)
            for _ in range(2):
                await host.speed_measurer.doubt(host.entry, CONDITIONS, ME)
                assert await known() == measurement
            host.speed_measurer.link_lost(LENDER, "attic")
            assert await known() == measurement
            anew = await measured(host)
            assert {order.again for order in link.asked[1:]} == {True}
            assert anew[ME] != measurement[ME]
            assert anew[LENDER] != measurement[LENDER]
            assert await known() == anew


async def test_a_machine_without_room_for_the_layers_measures_a_plain_one(tmp_path: Path) -> None:
    """The figure computed from it remains an estimate, even if nothing is measured any more."""

    async def answer(order: MeasureSpeed) -> None:
        if order.shape == host.speed_measurer._basis(host.entry).shape:
            speed_refused: Any = SpeedRefused(
                request=order.request, code="speed_no_room",
                facts={"needed_bytes": 2 * GIB, "free_bytes": GIB},
            )  # fmt: skip
        else:
            speed_refused = SpeedMeasured(
                request=order.request, layer_s=2e-3, layer_row_s=0.0, position_s=1e-6,
                chunk_s=0.05, step_s=2e-4,
            )  # fmt: skip
        host.speed_measurer.receive(LENDER, speed_refused)

    link = Link(answer)
    async with side(tmp_path / "host", lambda _: link) as host:
        measurement = await measured(host)
        own, other = measurement[ME], measurement[LENDER]
        assert own is not None
        assert other is not None
        assert (own.estimated, other.estimated) == (False, True)
        assert len(link.asked) == 2
        assert host.speed_measurer.why_not_measured("attic") is None
        me, lenders = (ME, "den"), {LENDER: "attic"}
        assert measurement == await host.speed_measurer.speeds(
            host.entry, me, lenders, CONDITIONS, lambda _: None, known_only=True
        )


def to(link: Link, _: MachineId) -> Link:
    return link


async def test_lenders_that_do_not_answer_are_none(tmp_path: Path) -> None:
    async def refuse(order: MeasureSpeed) -> None:
        said = SpeedRefused(request=order.request, code="speed_shape_odd", facts={"what": "x"})
        host.speed_measurer.receive(LENDER, said)

    async def another(order: MeasureSpeed) -> None:
        said = SpeedRefused(request=order.request + 1, code="speed_shape_odd")
        host.speed_measurer.receive(LENDER, said)

    async def silent(order: MeasureSpeed) -> None:
        pass

    async def leave(order: MeasureSpeed) -> None:
        host.speed_measurer.link_lost(LENDER, "attic")

    async def unreachable(order: MeasureSpeed) -> None:
        raise Unreachable("peer_offline", name="attic")

    for answer in (refuse, another, silent, leave, unreachable):
        link = Link(answer)
        async with side(tmp_path / answer.__name__, partial(to, link)) as host:
            host.machine.answering = True  # and neither is this machine measured meanwhile
            assert await measured(host, within_s=0.2) == {ME: None, LENDER: None}
            assert len(link.asked) == 1
    async with side(tmp_path / "alone") as host:
        host.machine.answering = True
        assert await measured(host) == {ME: None, LENDER: None}
        assert not host.speed_measurer._waiting


async def test_nobody_waits_a_second_time_for_who_is_silent_until_it_answers(tmp_path: Path) -> None:
    async def silent(order: MeasureSpeed) -> None:
        pass

    def late(number: int) -> SpeedRefused:
        return SpeedRefused(request=number, code="speed_shape_odd", facts={"what": "x"})

    link = Link(silent)
    async with side(tmp_path / "host", lambda _: link) as host:
        host.machine.answering = True  # and neither is this machine measured meanwhile
        for _ in range(3):
            began = time.monotonic()
            assert await measured(host, within_s=1.0) == {ME: None, LENDER: None}
        assert time.monotonic() - began < 0.5
        assert len(link.asked) == 1
        assert host.speed_measurer.why_not_measured("attic") == Reason("speed_silent", {"machine": "attic"})
        host.speed_measurer.receive(LENDER, late(link.asked[0].request + 1))  # to nothing that was asked
        await measured(host, within_s=1.0)
        assert len(link.asked) == 1
        host.speed_measurer.receive(LENDER, late(link.asked[0].request))
        await measured(host, within_s=0.1)
        assert len(link.asked) == 2


async def test_a_person_s_own_question_is_asked_whoever_was_silent(tmp_path: Path) -> None:
    async def silent(order: MeasureSpeed) -> None:
        pass

    async def refuse(order: MeasureSpeed) -> None:
        said = SpeedRefused(request=order.request, code="speed_shape_odd", facts={"what": "x"})
        host.speed_measurer.receive(LENDER, said)

    link = Link(silent)
    lender = household.Machine(LENDER, "attic", online=True, roles=("lender",))
    both = household.Household({ME: household.Machine(ME, "den"), LENDER: lender})
    async with side(tmp_path / "host", lambda _: link) as host:
        host.machine.answering = True
        await measured(host, within_s=0.1)
        link.answer = refuse
        order = MeasureModel(model=host.entry.name)
        result = await host.speed_measurer.table(order, CONDITIONS, both, ME, lambda _: None)
        assert len(link.asked) == 2
        assert "cannot be measured" in result.reasons[LENDER]


async def test_why_a_machine_could_not_be_measured_is_kept_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **__: Any) -> Speed:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def leave(order: MeasureSpeed) -> None:
        host.speed_measurer.link_lost(LENDER, "attic")

    works = layer_benchmark._measured
    monkeypatch.setattr(layer_benchmark, "_measured", full)
    async with side(tmp_path / "host", lambda _: Link(leave)) as host:
        assert await measured(host) == {ME: None, LENDER: None}
        own, other = host.speed_measurer.why_not_measured("den"), host.speed_measurer.why_not_measured("attic")
        assert own is not None
        assert (own.code, own.facts["why"]) == ("disk_failed", Reason("os_enospc"))
        assert other is not None
        assert other.code == "stage_unreachable"
        assert host.speed_measurer.why_not_measured("kitchen") is None
        monkeypatch.setattr(layer_benchmark, "_measured", works)
        assert (await measured(host, within_s=20.0))[ME] is not None
        assert host.speed_measurer.why_not_measured("den") is None


async def test_a_model_that_cannot_be_measured_has_no_speeds(tmp_path: Path) -> None:
    async with side(tmp_path / "host") as host:
        (tmp_path / "host" / "tiny.gguf").unlink()
        assert await measured(host) == {ME: None, LENDER: None}
        assert await host.speed_measurer.doubt(host.entry, CONDITIONS, ME) == set()
