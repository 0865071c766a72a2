"""Bringing one model into use: what is stopped, removed, replaced or left alone in the meantime, without a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.api.downloads import Download, DownloadResponse
from app.api.responses import MachineRefs
from app.core.errors import AppError
from app.gui.api.node_state import Link
from app.gui.app.tray import Notification, Tray
from app.gui.app.window import Window
from app.gui.models.model_item import ModelItem, offer_item
from app.gui.models.model_starter import BEGIN, ModelStarter, Stage
from tests.gui.desk import Desk
from tests.gui.models.offers import download, file, offer

IDENT = download("running")["id"]
Answer = Callable[[Any], None]


@dataclass
class Unanswered:
    """The requests that were made, which a test answers when it wants to."""

    paths: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def post(self, path: str, _body: Any, done: Answer, *_: Any, **__: Any) -> Unanswered:
        self.paths.append(path)
        self.answers.append(done)
        return self

    running = False  # so that nobody cancels it


@pytest.fixture
def sent(away: Desk, monkeypatch: pytest.MonkeyPatch) -> Unanswered:
    made = Unanswered()
    monkeypatch.setattr(away.services.client, "post", made.post)
    monkeypatch.setattr(away.services.client, "call", lambda _, *rest, **__: made.post(*rest[:3]))
    away.services.pool.link = Link.THERE
    return made


@pytest.fixture
def starter(away: Desk) -> ModelStarter:
    return ModelStarter(away.services, away.services.pool)


def item() -> ModelItem:
    return offer_item(offer("large-70b", file("Q4_K_M", 1.0, recommended=True, download=IDENT)))


def shown(away: Desk, *states: str, models: tuple[str, ...] = (), **changes: Any) -> None:
    """Show a snapshot with a download in this state, or with none, and with these models ready."""
    loaded = [{"model": name, "state": "ready"} for name in models]
    downloads = {f"d{n}": download(state, **changes) for n, state in enumerate(states, 1)}
    away.services.pool.snapshot = {"node": {"id": "a" * 64}, "downloads": downloads, "beside": loaded}
    away.services.pool.changed.emit()


def stage_of(starter: ModelStarter) -> Stage:
    return starter.stage


def begun(state: str = "running") -> DownloadResponse:
    return DownloadResponse(Download(id=IDENT, state=state))


def started(away: Desk, starter: ModelStarter, sent: Unanswered) -> None:
    """Resume a paused download."""
    shown(away, "paused")
    starter.start(item())
    assert sent.paths == [f"/downloads/{IDENT}/resume"]
    sent.answers[-1](begun())


def test_a_second_start_is_ignored(away: Desk, starter: ModelStarter, sent: Unanswered) -> None:
    started(away, starter, sent)
    starter.start(item())
    assert len(sent.paths) == 1
    shown(away, "done", model="large")
    starter._settling.stop()
    starter._follow()
    assert sent.paths[1:] == ["/load"]
    starter.start(item())
    assert sent.paths[1:] == ["/load"]


def test_a_download_that_was_removed_ends_the_wait(away: Desk, starter: ModelStarter, sent: Unanswered) -> None:
    started(away, starter, sent)
    shown(away, "running")
    away.services.pool.link = Link.AWAY
    shown(away)
    assert stage_of(starter) is Stage.DOWNLOADING, "a node that is away has removed nothing"
    away.services.pool.link = Link.THERE
    shown(away)
    assert stage_of(starter) is Stage.IDLE
    shown(away, "done", model="large")
    assert sent.paths == [f"/downloads/{IDENT}/resume"], "it is not loaded unasked"


def test_a_download_that_a_new_node_does_not_list_yet_goes_on(
    away: Desk, starter: ModelStarter, sent: Unanswered
) -> None:
    started(away, starter, sent)
    shown(away, "running")
    away.services.pool.link_changed.emit()
    shown(away)
    assert stage_of(starter) is Stage.DOWNLOADING


def test_a_download_is_stopped_before_a_snapshot_shows_it(away: Desk, starter: ModelStarter, sent: Unanswered) -> None:
    shown(away)
    starter.start(item())
    sent.answers[-1](MachineRefs([]))
    sent.answers[-1](begun())
    assert sent.paths == ["/copies", "/downloads"]
    starter.stop()
    assert sent.paths[2:] == [f"/downloads/{IDENT}/pause"]


def test_a_start_right_after_a_stop_resumes_the_download(away: Desk, starter: ModelStarter, sent: Unanswered) -> None:
    started(away, starter, sent)
    shown(away, "running")
    starter.stop()
    assert not starter._settling.isActive(), "what was started before decides nothing about the next start"
    starter.start(item())
    assert sent.paths[1:] == [f"/downloads/{IDENT}/pause"]
    sent.answers[-1](begun("paused"))
    assert sent.paths[2:] == [f"/downloads/{IDENT}/resume"]
    sent.answers[-1](begun())
    shown(away, "paused")
    assert stage_of(starter) is Stage.DOWNLOADING, "the snapshot shows the pause only now"
    shown(away, "running")
    starter._settling.stop()
    shown(away, "paused")
    assert stage_of(starter) is Stage.IDLE, "it was paused elsewhere"


def test_a_start_that_waits_for_a_pause_can_be_stopped(away: Desk, starter: ModelStarter, sent: Unanswered) -> None:
    started(away, starter, sent)
    starter.stop()
    starter.start(item())
    starter.stop()
    sent.answers[-1](begun("paused"))
    assert sent.paths[1:] == [f"/downloads/{IDENT}/pause"]
    assert not starter._calls.running(BEGIN)


@pytest.mark.parametrize(("models", "loads"), [((), True), (("guide",), True), (("old",), True), (("new",), False)])
def test_a_model_that_became_ready_since_is_not_replaced(
    away: Desk, starter: ModelStarter, sent: Unanswered, models: tuple[str, ...], loads: bool
) -> None:
    shown(away, "paused", models=("old",))
    starter.start(item())
    sent.answers[-1](begun())
    starter._settling.stop()
    shown(away, "done", model="large", models=models)
    assert ("/load" in sent.paths) is loads
    assert starter.is_busy is loads


def test_an_error_after_its_page_was_closed_is_shown_by_the_window_and_the_tray(
    qtbot: QtBot, away: Desk, starter: ModelStarter, sent: Unanswered, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    tray, notices = Tray(away.services, window, lambda: None), list[Notification]()
    monkeypatch.setattr(tray, "notify", notices.append)
    started(away, starter, sent)
    starter._fail(AppError("node_away"))
    assert not window._told.sentence, "the page shows it"
    starter.start(item())
    starter.is_alone = True
    starter._fail(AppError("node_away"))
    assert window._told.sentence.startswith("Large 70B was not loaded. ")
    assert [item.title for item in notices] == ["Large 70B was not loaded"]
    tray.hide()
