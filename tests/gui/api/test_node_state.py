"""The window follows its node: finds it, sees changes, says when it is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import __version__
from app.core.errors import AppError, BadInput, Unreachable
from app.gui.api.launch import Endpoint
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import Link, NodeState
from app.gui.models.model_loading import ModelLoader
from tests.gui.desk import Attached, Desk, desk, follow
from tests.node.pool import TestNode, node


def test_it_follows_changes(qtbot: QtBot, at_lone: Desk) -> None:
    pool, client = at_lone.services.pool, at_lone.services.client
    assert [model.name for model in pool.now.sorted_machines] == ["den"]
    ident = pool.now.node.id
    client.post(f"/machines/{ident}/name", {"name": "study"}, lambda _: None)
    qtbot.waitUntil(lambda: pool.now.node.name == "study", timeout=5000)
    client.post(f"/machines/{ident}/name", {"name": "den"}, lambda _: None)
    qtbot.waitUntil(lambda: pool.now.node.name == "den", timeout=5000)


def test_calls_end_once_with_an_answer_or_a_sentence(qtbot: QtBot, at_lone: Desk) -> None:
    client = at_lone.services.client
    answers: list[object] = []
    client.get("/models", answers.append, answers.append)
    client.delete("/models/none", answers.append, answers.append)
    qtbot.waitUntil(lambda: len(answers) == 2, timeout=5000)
    refused = [answer for answer in answers if isinstance(answer, AppError)]
    assert len(refused) == 1
    assert isinstance(refused[0], BadInput)


def test_long_work_comes_in_lines_and_can_be_cancelled(qtbot: QtBot, at_lone: Desk) -> None:
    client = at_lone.services.client
    lines: list[dict[str, object]] = []
    ends: list[object] = []
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
    client.call("POST", "/ask", body, ends.append, ends.append, lines.append)
    qtbot.waitUntil(lambda: bool(ends), timeout=30_000)
    assert isinstance(ends[0], dict)
    assert ends[0]["text"]
    assert any("delta" in line for line in lines)
    seen: list[object] = []
    endless = body | {"max_tokens": 400}
    call = client.call("POST", "/ask", endless, seen.append, seen.append, lambda _: None)
    assert call is not None
    call.cancel()
    qtbot.waitUntil(lambda: not at_lone.services.pool.snapshot["answers"]["running"], timeout=5000)
    assert not seen


@pytest.mark.long
def test_a_node_that_ends_and_returns(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    made = desk(qapp, tmp_path / "den")
    pool, restarted = made.services.pool, list[bool]()
    pool.restarted.connect(lambda: restarted.append(True))
    with node(tmp_path / "den", "den"):
        follow(qtbot, made.services)
    qtbot.waitUntil(lambda: pool.link is not Link.THERE, timeout=5000)
    failed: list[object] = []
    made.services.client.get("/models", failed.append, failed.append)
    assert isinstance(failed[0], Unreachable)
    with node(tmp_path / "den", "den"):
        assert not restarted
        qtbot.waitUntil(lambda: pool.link is Link.THERE, timeout=10_000)
        assert restarted == [True]  # it is another one, and nobody had asked for it
        pool._lost()
        qtbot.waitUntil(lambda: pool.link is Link.THERE, timeout=10_000)
        assert restarted == [True]  # the line broke, and the node is the same
        pool.stop()  # else the node waits for its stream


def test_a_line_that_broke_goes_on_where_it_ended(qtbot: QtBot, at_lone: Desk) -> None:
    """No snapshot is needed: what the window already has is not sent again."""
    pool, client = at_lone.services.pool, at_lone.services.client
    snapshot, last = pool.snapshot, pool._last_id
    events: list[bytes] = []
    take = pool._take

    def hear(event: bytes) -> bool:
        events.append(event)
        return take(event)

    pool._take = hear  # type: ignore[method-assign]
    pool._lost()
    assert pool.link is not Link.THERE
    qtbot.waitUntil(lambda: pool.link is Link.THERE, timeout=5000)
    assert events[0].startswith(b"event: resumed\n")
    assert not any(event.startswith(b"event: snapshot") for event in events)
    assert (last in events[0].decode(), pool.snapshot.keys()) == (True, snapshot.keys())
    client.post(f"/machines/{pool.now.node.id}/name", {"name": "loft"}, lambda _: None)
    qtbot.waitUntil(lambda: pool.now.node.name == "loft", timeout=5000)
    client.post(f"/machines/{pool.now.node.id}/name", {"name": "den"}, lambda _: None)
    qtbot.waitUntil(lambda: pool.now.node.name == "den", timeout=5000)


@pytest.mark.parametrize(
    "event",
    [b"event: change\nid: %s-%d\ndata: {}", b"event: change\nid: other%s-%d\ndata: {}",
     b"event: change\nid: %s\xff%d\ndata: {}", b"event: resumed\nid: %s-%d\ndata: {}"],
)  # fmt: skip
def test_after_a_gap_it_begins_anew(qtbot: QtBot, at_lone: Desk, event: bytes) -> None:
    pool = at_lone.services.pool
    life, _, number = pool._last_id.rpartition("-")
    assert not pool._take(event % (life.encode(), int(number) + 2))
    assert (pool._last_id, pool.link is Link.THERE) == ("", False)
    qtbot.waitUntil(lambda: pool.link is Link.THERE, timeout=5000)
    assert pool._last_id.startswith(life)
    assert pool.now.node.name == "den"


class Crashed(Attached):
    """The file of a node that crashed, its pid another process's now; `start` brings a node."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.starts = 0

    def find(self) -> Endpoint | None:
        return super().find() if self.starts else Endpoint(1, 9, "old", __version__)

    def start(self) -> None:
        self.starts += 1


def test_a_node_is_started_where_only_the_file_of_one_is(qtbot: QtBot, lone: TestNode) -> None:
    launcher = Crashed(lone.root)
    pool = NodeState(launcher, NodeClient())
    pool.start()
    qtbot.waitUntil(lambda: pool.is_there, timeout=10_000)
    assert launcher.starts == 1
    pool.stop()


def test_a_file_that_stays_is_asked_no_more(qtbot: QtBot, tmp_path: Path) -> None:
    launcher = Crashed(tmp_path)
    launcher.find = lambda: Endpoint(1, 9, "old", __version__)  # type: ignore[method-assign]
    pool = NodeState(launcher, NodeClient())
    pool.start()
    qtbot.waitUntil(lambda: pool.link is Link.STARTING, timeout=10_000)
    pool.look()
    assert (pool.link, launcher.starts) == (Link.STARTING, 1)
    pool.stop()


@pytest.mark.parametrize(
    ("link", "goes_on"), [(Link.THERE, True), (Link.LOOKING, True), (Link.STARTING, False), (Link.AWAY, False)]
)
def test_a_node_that_is_lost_loads_nothing(away: Desk, link: Link, goes_on: bool) -> None:
    pool, changed = away.services.pool, list[bool]()
    loading = ModelLoader(pool)
    loading.changed.connect(lambda: changed.append(True))
    pool.link = Link.THERE
    pool.snapshot = {
        "loaded": {
            "model": "big",
            "state": "loading",
            "progress": {"a": {"step": "load", "machine": "a", "done": 0, "total": 1, "unit": "bytes"}},
        }
    }
    pool.snapshot["beside"] = [{"model": "small", "state": state} for state in ("loading", "ready")]
    pool.changed.emit()
    assert (loading.model, len(changed)) == ("big", 1)
    pool._say(link, None)
    assert loading.model == ("big" if goes_on else "")
    assert bool(loading.steps) is goes_on
    assert len(pool.now.models) == (3 if goes_on else 1)
    assert len(changed) == (1 if goes_on else 2)
    pool.snapshot = {**pool.snapshot, "loaded": {"model": "big", "state": "ready"}}
    assert pool.now.loaded is not None
