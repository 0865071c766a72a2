"""The Guide is loaded ahead of the first question, and only where nothing speaks against it."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from app.api.plans import MachineNeed, Plan
from app.core.errors import DoesNotFit
from app.gui.api.node_state import Link
from app.gui.look.sentences import GUIDE
from app.gui.welcome.guide_preload import GuidePreload
from app.gui.welcome.step import LEND, ROLE_KEY
from app.gui.welcome.welcome import Welcome
from tests.gui.desk import Desk

PLAN = Plan(model=GUIDE, machines=[MachineNeed("den", needs_bytes=1 << 20, lends_bytes=8 << 30)])
TIGHT = Plan(model=GUIDE, machines=[MachineNeed("den", needs_bytes=8 << 30, lends_bytes=8 << 30)])


@pytest.mark.long
@pytest.mark.parametrize("lends_only", [False, True])
def test_it_is_loaded_while_the_first_steps_are_gone_through(qtbot: QtBot, at_lone: Desk, lends_only: bool) -> None:
    """A person who then only lends gets the memory back."""
    window, pool = QMainWindow(), at_lone.services.pool
    window.setCentralWidget(QWidget())
    qtbot.addWidget(window)
    steps = Welcome(at_lone.services, window)
    steps.begin()
    qtbot.waitUntil(lambda: (pool.now.loaded and pool.now.loaded.state) == "ready")
    assert pool.now.model(GUIDE) is not None
    qtbot.waitUntil(lambda: not pool.findChildren(GuidePreload), timeout=5000)
    if lends_only:
        at_lone.services.preferences.keep(ROLE_KEY, LEND)
    steps.end()
    at_lone.services.preferences.forget(ROLE_KEY)
    if not lends_only:
        assert pool.now.model(GUIDE) is not None
        at_lone.services.client.post("/unload", None, lambda _: None)
    qtbot.waitUntil(lambda: pool.now.loaded is None)


@pytest.fixture
def requests(away: Desk, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, Any]]:
    """The requests to the node: path, callback for the answer, callback for a refusal."""
    results: list[tuple[str, Any, Any]] = []
    away.services.pool.link, away.services.pool.snapshot = Link.THERE, {"node": {}}
    monkeypatch.setattr(
        away.services.client, "post",
        lambda path, _, done, failed, **types: results.append((path, done, failed)),
    )  # fmt: skip
    return results


def paths(requests: list[tuple[str, Any, Any]]) -> list[str]:
    return [path for path, *_ in requests]


def test_who_only_lends_and_whom_others_answer_loads_nothing(away: Desk, requests: list[tuple[str, Any, Any]]) -> None:
    pool = away.services.pool
    for facts in ({"hosts": ["attic"]}, {"loaded": {"model": "large", "state": "loading"}}):
        pool.snapshot = facts
        GuidePreload(away.services).begin()
    pool.snapshot = {"node": {}}
    away.services.preferences.keep(ROLE_KEY, LEND)
    GuidePreload(away.services).begin()
    away.services.preferences.forget(ROLE_KEY)
    assert requests == []


def test_where_memory_is_short_nothing_is_loaded(away: Desk, requests: list[tuple[str, Any, Any]]) -> None:
    GuidePreload(away.services).begin()
    requests[-1][1](TIGHT)
    GuidePreload(away.services).begin()
    requests[-1][2](DoesNotFit("disk_low"))
    GuidePreload(away.services).begin()
    away.services.pool.snapshot = {"loaded": {"model": "large", "state": "ready"}}
    requests[-1][1](PLAN)  # a person was quicker
    assert paths(requests) == ["/plan"] * 3


def test_it_waits_for_a_node_that_starts(away: Desk, requests: list[tuple[str, Any, Any]]) -> None:
    pool = away.services.pool
    pool.link = Link.STARTING
    GuidePreload(away.services).begin()
    assert requests == []
    pool.link = Link.THERE
    pool.changed.emit()
    pool.changed.emit()
    assert paths(requests) == ["/plan"]
    requests[-1][1](PLAN)
    assert paths(requests) == ["/plan", "/load"]
