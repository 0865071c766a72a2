"""Tests of hosts' uploads to a lender: offers, and the bytes of layers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from app.catalog.stages.manifest import Manifest
from app.catalog.stages.stage_receiver import Donor, StageReceiver
from app.core.errors import AppError, BadInput, Busy, DoesNotFit
from app.core.reasons import said
from app.network import messages
from app.node.lending import stage_uploads
from tests.network.nodes import until
from tests.node.lending_bench import Bench, member, new


async def test_what_is_there_is_hashed_once_for_an_offer_and_its_pieces(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    accept = bench.home.stages.accept

    def counted(manifest: Manifest, donors: Mapping[str, Donor]) -> StageReceiver:
        begun.append(manifest.id)
        return accept(manifest, donors)

    monkeypatch.setattr(bench.home.stages, "accept", counted)
    await bench.bring(new())
    assert begun == [bench.cut.manifest.id]
    assert await bench.offer(new()) == ()


async def test_a_host_that_sends_nothing_is_not_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_uploads, "IDLE_S", 0.05)
    wants = await bench.offer(pipeline := new())
    assert bench.home.stages._receiving
    await until(lambda: not bench.home.stages._receiving)
    with pytest.raises(BadInput):
        await bench.lending.pieces(member(), pipeline, bench.chunks(wants))
    monkeypatch.undo()
    await bench.offer(new())
    await bench.bring(new())  # a load begun anew takes over from the one before


async def test_one_transfer_of_a_member_at_a_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_uploads, "TURN_S", 0.1)
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
    monkeypatch.setattr(stage_uploads, "TURN_S", 60.0)
    later = asyncio.gather(bench.offer(new()))
    await asyncio.sleep(0.01)
    go_on.set()
    await sending
    [missing] = await later
    assert missing == ()


async def test_offers_that_are_never_opened_are_forgotten(bench: Bench) -> None:
    pipelines = [new() for _ in range(stage_uploads.MAX_OFFERS + 2)]
    await bench.bring(kept := new(), member("b"))
    for pipeline in pipelines:
        await bench.bring(pipeline)
    bench.lender.may_open.set()
    await bench.open(pipelines[1])
    await bench.open(pipelines[2])
    await bench.open(kept, member("b"))
    await bench.answered(3)
    assert bench.codes() == ["stage_not_offered", "ready", "ready"]


async def test_no_path_of_this_machine_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(bench.home.stages.folder)
    monkeypatch.setattr(bench.home.stages, "reserve_bytes", 1 << 60)
    with pytest.raises(DoesNotFit) as full:
        await bench.offer(new())
    assert folder not in str(full.value.reason.facts)
    assert said(full.value)
    monkeypatch.undo()
    await bench.bring(pipeline := new())
    (bench.home.stages.folder / f"{bench.cut.manifest.id}.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(bench.home.stages, "path", lambda stage_id: bench.home.stages._paths(stage_id).whole)
    await bench.open(pipeline)
    [failed] = await bench.answered(1)
    assert isinstance(failed, messages.StageFailed)
    assert failed.code == "gguf_truncated"
    assert folder not in str(failed.facts)
    assert "layer file" in said(messages.received_reason(failed))


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (7, 7),
        ("cannot open /home/me/.local/stages/a.gguf: no", "cannot open (a file): no"),
        (r"cannot open C:\Users\me\a.gguf", "cannot open (a file)"),
        ("FOLDER/a b: no", "(a folder)/a b: no"),
        ("2 of 3, and/or more", "2 of 3, and/or more"),
        ("x" * 300, "x" * 200),
    ],
)
def test_facts_for_others(fact: str | int, expected: str | int) -> None:
    folder = Path("/some where")
    changed = fact.replace("FOLDER", str(folder)) if isinstance(fact, str) else fact
    reason = AppError("bug", cause=changed, path="/x", folder="/y").reason
    assert stage_uploads.redacted_facts(reason, folder) == {"cause": expected, **stage_uploads.NEUTRAL}
