"""The journal: what it keeps of answers and events, for how long, and what real nodes write into it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from app.api.computer import LentTotal
from app.api.plans import LoadedModel
from app.api.responses import Answer, AnswerRecovery, ForecastSpeed, StageFigures
from app.api.snapshot import Lending, Machine, Node, Snapshot
from app.client import with_node
from app.core.errors import Reason, StageLost
from app.core.scheduler.requester import OWNER, Requester
from app.inference.stages.stage_host import RelayedWork
from app.machine.paths import Home
from app.node import journal as module
from app.node.journal import MOST_KEPT, Journal
from tests.node.pool import TestNode, node, paired

Json = dict[str, Any]
QUESTION = {"prompt": "What is a pool?", "max_tokens": 24, "ignore_end": True}


def empty() -> Snapshot:
    return Snapshot(node=Node(version="1"))


def ended(*recoveries: AnswerRecovery, n_tokens: int = 10) -> Answer:
    return Answer(
        text="never kept",
        token_ids=[1] * n_tokens,
        prompt_tokens=5,
        reused_tokens=1,
        ttft_s=0.2,
        decode_tok_s=9.0,
        finish_reason="stop",
        predicted=ForecastSpeed(0.1, 10.0),
        stages=[StageFigures("den", 0, 4, busy_s=0.5, wait_s=0.0, bytes_out=1, bytes_in=2, steps=3)],
        recovered=list(recoveries),
    )


def journal(folder: Path) -> Journal:
    return Journal(folder / "journal.json", empty, now=lambda: 1000.0)


def answer(kept: Journal) -> None:
    with kept.answering("guide") as under_way:
        under_way.add_tokens(1)
        under_way.done(ended(), alone=True)


def test_an_answer_is_kept_with_its_figures_and_without_its_text(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    answer(kept)
    body = kept.read()
    assert body.answers[0].tokens == 10
    assert body.answers[0].forecast_tok_s == 10.0
    assert body.answers[0].stages[0].machine == "den"
    assert "never kept" not in repr(body)
    assert kept.read(since=body.last).answers == []


def test_an_answer_under_way_is_shown_and_one_that_breaks_off_is_kept(tmp_path: Path) -> None:
    kept = journal(tmp_path)

    def broken(error: BaseException) -> None:
        with kept.answering("guide") as under_way:
            under_way.add_tokens(3)
            assert [now.tokens for now in kept.read().now] == [3]
            raise error

    for error in (StageLost("bug"), GeneratorExit()):
        with pytest.raises(type(error)):
            broken(error)
    body = kept.read()
    assert [(item.end, item.tokens) for item in body.answers] == [
        ("failed", 3), ("stopped", 3),
    ]  # fmt: skip
    assert body.now == []


def test_whose_an_answer_is_outlives_the_node_and_older_lines_stay_readable(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    editor = Requester("program", "editor")
    with kept.answering("guide", requester=editor):
        assert kept.read().now[0].whose == editor
    answer(kept)
    asyncio.run(run_for(kept, RelayedWork, 0.0))
    file = json.loads((tmp_path / "journal.json").read_bytes())
    assert [item["whose"]["kind"] for item in file["answers"]] == ["program", "owner"]
    del file["answers"][0]["whose"]  # as they were written before
    (tmp_path / "journal.json").write_text(json.dumps(file))
    body = journal(tmp_path).read()
    assert [item.whose for item in body.answers] == [None, OWNER]


@pytest.mark.parametrize(
    ("noticed_s", "sentence"),
    [
        (0.0, "attic disconnected while guide was answering, and the answer continued after 2.4 seconds."),
        (
            2.04,
            (
                "attic disconnected while guide was answering. Poolhouse noticed this after 2.0 seconds, and the "
                "answer continued 2.4 seconds later."
            ),
        ),
    ],
)  # fmt: skip
def test_what_an_answer_went_through_is_written_down_with_its_times(
    tmp_path: Path, noticed_s: float, sentence: str
) -> None:
    kept = journal(tmp_path)
    lost = AnswerRecovery(machine="attic", detected_after_s=noticed_s, recovered_after_s=2.44)
    moved = replace(lost, machine="")  # no machine was lost: the layers only moved
    with kept.answering("guide") as under_way:
        under_way.done(ended(lost, moved), alone=True)
    assert [event.sentence for event in kept.read().events] == [sentence]


def test_a_loss_that_broke_off_several_answers_is_told_once(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    lost = AnswerRecovery(machine="attic", recovered_after_s=2.4)
    for _ in range(2):  # the machine came back, and was lost once more
        with kept.answering("guide") as under_way, kept.answering("guide") as other:
            other.done(ended(lost), alone=False)
            under_way.done(ended(lost, replace(lost, machine="shed")), alone=False)
    reports = [event.sentence.split(" disconnected")[0] for event in kept.read().events]
    assert reports == ["attic", "shed"] * 2


def test_a_model_that_goes_on_says_how_long_it_stood_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 103.5])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.__next__))
    now = Snapshot(loaded=LoadedModel(model="guide", state="ready"))
    kept = Journal(tmp_path / "journal.json", lambda: now)
    kept._seen = now
    for state in ("recovering", "ready"):
        now = Snapshot(loaded=LoadedModel(model="guide", state=state, reason="attic is gone."))
        kept._record_changes()
    broken, goes_on = kept.read().events
    assert broken.sentence == "A machine running guide has disconnected. attic is gone."
    assert goes_on.sentence == "guide is answering again after 3.5 seconds."


def test_it_is_bounded(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    for _ in range(MOST_KEPT + 5):
        answer(kept)
        kept.note(Reason("log_lending_on"))
    body = kept.read()
    assert len(body.answers) == len(body.events) == MOST_KEPT
    assert body.events[-1].number == body.last


async def run_for(kept: Journal, passed: Callable[[], RelayedWork], seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await kept.run(passed)


async def test_it_outlives_the_node_and_counts_on(tmp_path: Path) -> None:
    first = journal(tmp_path)
    answer(first)
    amounts = iter([RelayedWork(), *[RelayedWork(7, 100, 200)] * 50])
    first.changed()
    await run_for(first, lambda: next(amounts), 0.6)
    body = first.read()
    assert replace(body.lent, seconds=0.0) == LentTotal(since=1000.0, rows=7, bytes_in=100, bytes_out=200)
    again = journal(tmp_path).read()
    assert (again.answers, again.events) == (body.answers, body.events)
    assert again.lent == body.lent
    assert again.last == body.last


async def test_what_the_machine_drew_for_others_is_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.journal.HOUR_SECONDS", 1)  # so watt-seconds are watt-hours
    used = Snapshot(
        node=Node(id="d", version="1", lending=Lending(used_by=["den"])),
        machines={"d": Machine("d", "attic", watts=40, this=True)},
    )
    kept = Journal(tmp_path / "journal.json", lambda: used, now=lambda: 1000.0)
    kept.changed()
    await run_for(kept, RelayedWork, 0.4)
    lent = kept.read().lent
    assert lent.seconds > 0
    assert lent.watt_hours == pytest.approx(40 * lent.seconds)


async def test_the_last_writing_is_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = journal(tmp_path)
    monkeypatch.setattr("app.node.journal.SAVE_SECONDS", 0.0)
    began, go_on, saved, save = threading.Event(), threading.Event(), [], kept._save

    def slow(content: bytes) -> None:
        if not began.is_set():
            began.set()
            assert go_on.wait(10)
        saved.append(content)
        save(content)

    monkeypatch.setattr(kept, "_save", slow)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(kept.run(RelayedWork))
        await asyncio.to_thread(began.wait, 10)
        answer(kept)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
    assert [data.count(b"guide") for data in saved] == [0, 1]
    assert journal(tmp_path).read().answers


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b'{"number": "x"}', b'{"\xff": 1}', b" " * (5 << 20),
        b'{"events": [{"number": 1, "at": 0, "code": "no", "facts": {}}]}',
    ],
    ids=range(6),
)  # fmt: skip
def test_a_damaged_file_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.json").write_bytes(content)
    (event,) = journal(tmp_path).read().events
    assert event.code == "log_node_journal_lost"
    aside = tmp_path / "journal.damaged"
    assert str(aside) in event.sentence
    assert aside.read_bytes() == content


def asked(test_node: TestNode) -> Json:
    async def work(client: Any) -> Json:
        async for line in client.stream("POST", "/ask", QUESTION):
            if "done" in line:
                return dict(line["done"])
        raise AssertionError("no answer")

    return asyncio.run(with_node(Home.at(test_node.root), work))


def read(test_node: TestNode) -> Json:
    async def work(client: Any) -> Json:
        return dict(await client.get("/journal"))

    return asyncio.run(with_node(Home.at(test_node.root), work))


def codes(result: Json) -> list[str]:
    return [event["code"] for event in result["events"]]


def wait_for(test_node: TestNode, code: str, n_answers: int = 0) -> Json:
    """Return the node's journal once it contains this event and this many answers."""
    end = time.monotonic() + 60
    while code not in codes(content := read(test_node)) or len(content["answers"]) < n_answers:
        assert time.monotonic() < end, content
        time.sleep(0.1)
    return content


@pytest.mark.long
def test_real_nodes_write_down_what_happened_on_both_sides(tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        loaded = den.run("load", "guide", "--split", "1,4,3", "--json")
        assert loaded.returncode == 0, loaded.stdout + loaded.stderr
        answer_told = asked(den)
        result = wait_for(den, "log_model_ready", n_answers=1)
        assert "log_machine_came" in codes(result)
        noted = result["answers"][-1]
        assert noted["tokens"] == len(answer_told["token_ids"])
        assert {stage["machine"] for stage in noted["stages"]} == {"den", "attic"}
        assert den.run("unload").returncode == 0
        wait_for(den, "log_model_unloaded")
        lent = wait_for(attic, "log_lending_unused")["lent"]
        sent = next(stage for stage in noted["stages"] if stage["machine"] == "attic")
        assert lent["seconds"] > 0
        assert lent["rows"] >= noted["prompt_tokens"]
        assert lent["bytes_in"] >= sent["bytes_out"] > 0
    with node(tmp_path / "den", "den") as den:
        assert codes(read(den)).count("log_node_started") == 2
