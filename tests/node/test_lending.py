"""What hosts may do on a lender: offers, transfers, runs, and that all of it is given back once."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.catalog.cut import Cut, read_pieces
from app.catalog.manifest import Manifest, to_json, wants_from_json
from app.catalog.receiver import Donor, Receiver
from app.core.errors import AppError, BadInput, Busy, DoesNotFit, Refused
from app.core.ids import MachineId, PipelineId
from app.core.membership import Member
from app.core.operations import Role as HouseholdRole
from app.core.reasons import said
from app.inference.lend import Lender, Wanted
from app.lan import messages
from app.lan.channel import MemoryChannel
from app.node import lending as lending_module
from app.node import offers, telling
from app.node.lending import Lending
from backends import orders
from backends.contract import Layers, Role
from tests.catalog.conftest import Home, new_home
from tests.node.pool import node, pair

MIB = 1 << 20


class StandIn(Lender):
    """A lender without workers, whose loading and closing wait as long as a test wants."""

    def __init__(self) -> None:
        super().__init__(lambda: 1 << 40, "attic")
        self.held: dict[bytes, Wanted] = {}
        self.may_open, self.may_close = asyncio.Event(), asyncio.Event()
        self.may_close.set()
        self.fails: Exception | None = None
        self.n_opened = 0

    @property
    def used_bytes(self) -> int:
        return len(self.held)

    async def open(self, wanted: Wanted, *, threads: int = 1) -> orders.Opened:
        self.n_opened += 1
        await self.may_open.wait()
        if self.fails is not None:
            raise self.fails
        self.held[wanted.run.pipeline] = wanted
        return orders.Opened(request=0, memory_bytes=1, seconds=0.0)

    async def close(self, pipeline: bytes, grace_s: float = 2.0) -> None:
        await self.may_close.wait()
        if self.held.pop(pipeline, None):
            self.on_ended(pipeline)


class Terms:
    """What an owner allows: everything, unless a test says for which reason not."""

    def __init__(self) -> None:
        self.why: str | None = None

    def lent_bytes(self) -> int:
        return 0 if self.why else 1 << 40

    def require(self) -> None:
        if self.why:
            raise Refused(self.why)


OPEN = Terms()


def member(digit: str = "a") -> Member:
    return Member(MachineId(digit * 64), b"", f"host-{digit}", frozenset({HouseholdRole.HOST}))


@dataclass
class Bench:
    """One lender, and what hosts ask of it."""

    lending: Lending
    lender: StandIn
    home: Home
    cut: Cut
    terms: Terms = OPEN
    said: list[messages.Message] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)

    def changed(self) -> None:
        self.changes.append(1)

    async def send(self, message: messages.Message) -> None:
        self.said.append(message)

    async def offer(self, pipeline: PipelineId, who: Member | None = None) -> Any:
        body = to_json(self.cut.manifest)
        answer = await self.lending.stage_offer(who or member(), pipeline, body)
        return wants_from_json(answer, self.cut.manifest)

    async def bring(self, pipeline: PipelineId, who: Member | None = None) -> None:
        """Offer, and send what is missing."""
        if wants := await self.offer(pipeline, who):
            await self.lending.pieces(who or member(), pipeline, self.chunks(wants))

    async def chunks(self, wants: Any) -> AsyncIterator[bytes]:
        for chunk in read_pieces(self.cut, wants):
            yield chunk

    def order(self, pipeline: PipelineId, **changes: Any) -> messages.OpenStage:
        fields: dict[str, Any] = {
            "request": 0, "pipeline": pipeline.hex(), "epoch": 1, "model": "m",
            "manifest": self.cut.manifest.id, "first": 2, "last": 6, "n_layers": 8, "width": 64,
            "number": "f16", "slots": 2, "kv_cells": 256, "context": 128, "batch_rows": 16,
            "engine": "llamacpp",
        }  # fmt: skip
        return messages.OpenStage(**(fields | changes))

    async def open(self, pipeline: PipelineId, who: Member | None = None, **changes: Any) -> None:
        await self.lending.open(who or member(), self.order(pipeline, **changes), self.send)

    async def answered(self, n: int) -> list[messages.Message]:
        async with asyncio.timeout(5):
            while len(self.said) < n:  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.01)
        return self.said

    def codes(self) -> list[str]:
        return [
            message.code if isinstance(message, messages.StageFailed) else "ready"
            for message in self.said
        ]

    def is_kept(self) -> bool:
        """Whether somebody keeps the stage file from being deleted."""
        return self.cut.manifest.id in self.home.stages._held


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    host = new_home(tmp_path / "host")
    return host.shelf.cut(host.add("m", layers=8), Layers(2, 6), Role.MIDDLE)


@pytest.fixture
async def bench(tmp_path: Path, cut: Cut) -> AsyncGenerator[Bench, None]:
    home, lender, terms = new_home(tmp_path / "lender"), StandIn(), Terms()
    changes: list[int] = []
    async with asyncio.TaskGroup() as group:
        lending = Lending(
            lender, home.shelf, home.stages, terms, 3, group, lambda: changes.append(1)
        )
        yield Bench(lending, lender, home, cut, terms, changes=changes)
        lending.end()


def new() -> PipelineId:
    return PipelineId(os.urandom(16))


async def test_layers_come_compute_and_are_given_back(tmp_path: Path, bench: Bench) -> None:
    """With a real worker and the real engine."""
    async with Lender(lambda: 1 << 30, "attic") as lender, asyncio.TaskGroup() as group:
        home = bench.home
        bench.lending = Lending(lender, home.shelf, home.stages, OPEN, 3, group, bench.changed)
        pipeline = new()
        await bench.bring(pipeline)
        await bench.open(pipeline)
        [ready] = await bench.answered(1)
        assert isinstance(ready, messages.StageReady), ready
        assert ready.fetched_bytes == sum(piece.n_bytes for piece in bench.cut.manifest.pieces)
        assert lender.runs[0].config.threads == 3
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
    for asked in (
        bench.offer(new()),
        bench.lending.pieces(member(), pipeline, bench.chunks(wants)),
    ):
        with pytest.raises(Refused) as refused:
            await asked
        assert (
            said(refused.value)
            == "attic: Paused: it runs on battery. Resumes when it is plugged in."
        )
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
    bench.lending.follow({member().id: member()})
    await asyncio.sleep(0.05)
    assert bench.lending.borrowers() == {member().id}
    bench.lending.follow({member().id: replace(member(), roles=frozenset({HouseholdRole.LENDER}))})
    await asyncio.sleep(0.05)
    assert (bench.lending.borrowers(), bench.is_kept()) == (set(), False)


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
    assert (bench.lending.borrowers(), bench.lender.used_bytes, bench.is_kept()) == (
        set(),
        0,
        False,
    )
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
    await asyncio.sleep(0.05)
    assert (bench.lender.used_bytes, bench.lending.borrowers(), bench.is_kept()) == (
        0,
        set(),
        False,
    )


async def test_a_fault_of_ours_ends_one_run_and_not_the_node(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
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
    await asyncio.sleep(0.1)
    assert "another bug" in caplog.text
    assert bench.lending.borrowers() == {member().id}


async def test_what_is_there_is_hashed_once_for_an_offer_and_its_pieces(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    accept = bench.home.stages.accept

    def counted(manifest: Manifest, donors: Mapping[str, Donor]) -> Receiver:
        begun.append(manifest.id)
        return accept(manifest, donors)

    monkeypatch.setattr(bench.home.stages, "accept", counted)
    await bench.bring(new())
    assert begun == [bench.cut.manifest.id]
    assert await bench.offer(new()) == ()


async def test_a_host_that_sends_nothing_is_not_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "IDLE_S", 0.05)
    wants = await bench.offer(pipeline := new())
    assert bench.home.stages._receiving
    await asyncio.sleep(0.1)
    assert not bench.home.stages._receiving
    with pytest.raises(BadInput):
        await bench.lending.pieces(member(), pipeline, bench.chunks(wants))
    monkeypatch.undo()
    await bench.offer(new())
    await bench.bring(new())  # a load begun anew takes over from the one before


async def test_one_transfer_of_a_member_at_a_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "TURN_S", 0.1)
    wants = await bench.offer(pipeline := new())
    go_on = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        async for chunk in bench.chunks(wants):
            await go_on.wait()
            yield chunk

    sending = asyncio.gather(bench.lending.pieces(member(), pipeline, slowly()))
    await asyncio.sleep(0)
    waiting = asyncio.gather(bench.offer(new()), bench.offer(new()), return_exceptions=True)
    ends = await waiting
    assert [type(end) for end in ends] == [Busy, Busy]
    monkeypatch.setattr(offers, "TURN_S", 5.0)
    later = asyncio.gather(bench.offer(new()))
    await asyncio.sleep(0.01)
    go_on.set()
    await sending
    [missing] = await later
    assert missing == ()


async def test_offers_that_are_never_opened_are_forgotten(bench: Bench) -> None:
    pipelines = [new() for _ in range(offers.MAX_OFFERS + 2)]
    await bench.bring(kept := new(), member("b"))
    for pipeline in pipelines:
        await bench.bring(pipeline)
    bench.lender.may_open.set()
    await bench.open(pipelines[1])
    await bench.open(pipelines[2])
    await bench.open(kept, member("b"))
    await bench.answered(3)
    assert bench.codes() == ["stage_not_offered", "ready", "ready"]


async def test_no_path_of_this_machine_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(bench.home.stages.folder)
    monkeypatch.setattr(bench.home.stages, "reserve_bytes", 1 << 60)
    with pytest.raises(DoesNotFit) as full:
        await bench.offer(new())
    assert folder not in str(full.value.reason.facts)
    assert said(full.value)
    monkeypatch.undo()
    await bench.bring(pipeline := new())
    (bench.home.stages.folder / f"{bench.cut.manifest.id}.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(
        bench.home.stages, "path", lambda stage_id: bench.home.stages._paths(stage_id).whole
    )
    await bench.open(pipeline)
    [failed] = await bench.answered(1)
    assert isinstance(failed, messages.StageFailed)
    assert failed.code == "gguf_truncated"
    assert folder not in str(failed.facts)
    assert "layer file" in said(messages.understood(failed))


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        (7, 7),
        ("cannot open /home/me/.local/stages/a.gguf: no", "cannot open (a file): no"),
        (r"cannot open C:\Users\me\a.gguf", "cannot open (a file)"),
        ("FOLDER/a b: no", "(a folder)/a b: no"),
        ("2 of 3, and/or more", "2 of 3, and/or more"),
        ("x" * 300, "x" * 200),
    ],
)
def test_facts_for_others(fact: str | int, told: str | int) -> None:
    folder = Path("/some where")
    given = fact.replace("FOLDER", str(folder)) if isinstance(fact, str) else fact
    reason = AppError("bug", cause=given, path="/x", folder="/y").reason
    assert offers.without_paths(reason, folder) == {"cause": told, **offers.NEUTRAL}


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
        state="ready",
    )  # fmt: skip
    link = SimpleNamespace(peer=member().id, name="den", hello=SimpleNamespace(name="den"))
    told = telling.told(link, status)  # type: ignore[arg-type]
    assert (told.name, told.device) == ("den[31m", "CPU 2")


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


async def until(holds: Callable[[], bool], within_s: float = 15) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.1)
