"""The window follows its node: finds it, sees changes, says when it is gone."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.errors import AppError, BadInput, Unreachable
from app.gui.pool import Link
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import node


def test_it_follows_changes(qtbot: QtBot, at_lone: Desk) -> None:
    pool, client = at_lone.services.pool, at_lone.services.client
    assert [one["name"] for one in pool.machines] == ["den"]
    ident = pool.node["id"]
    client.post(f"/machines/{ident}/name", {"name": "study"}, lambda _: None)
    qtbot.waitUntil(lambda: pool.node["name"] == "study", timeout=5000)
    client.post(f"/machines/{ident}/name", {"name": "den"}, lambda _: None)
    qtbot.waitUntil(lambda: pool.node["name"] == "den", timeout=5000)


def test_calls_end_once_with_an_answer_or_a_sentence(qtbot: QtBot, at_lone: Desk) -> None:
    client = at_lone.services.client
    answers: list[object] = []
    client.get("/models", answers.append, answers.append)
    client.delete("/models/none", answers.append, answers.append)
    qtbot.waitUntil(lambda: len(answers) == 2, timeout=5000)
    refused = [one for one in answers if isinstance(one, AppError)]
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


def test_a_node_that_ends_and_returns(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    made = desk(qapp, tmp_path / "den")
    pool = made.services.pool
    with node(tmp_path / "den", "den"):
        follow(qtbot, made.services)
    qtbot.waitUntil(lambda: pool.link is not Link.THERE, timeout=5000)
    failed: list[object] = []
    made.services.client.get("/models", failed.append, failed.append)
    assert isinstance(failed[0], Unreachable)
    with node(tmp_path / "den", "den"):
        qtbot.waitUntil(lambda: pool.link is Link.THERE, timeout=10_000)
    pool.stop()
