"""The tray: its lines change in place, its orders reach the node, closing never hides into nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.api.snapshot import Snapshot
from app.core.chat import ChatId
from app.core.errors import AppError, Reason, StageLost
from app.decoding import convert
from app.gui.app import tray as tray_module
from app.gui.app.navigation import LOG_PAGE, chat_address
from app.gui.app.preferences import NOTIFY_ANSWERS, NOTIFY_LOSSES, NOTIFY_NEWS
from app.gui.app.tray import NO_TRAY, Notification, Tray, TrayMenu, notifications
from app.gui.app.window import Window
from app.gui.settings.general import General
from tests.findings import tells
from tests.gui.desk import Attached, Desk

Json = dict[str, Any]


@pytest.fixture
def window(qtbot: QtBot, at_lone: Desk) -> Window:
    made = Window(at_lone.services, lambda: False, lambda: None)
    qtbot.addWidget(made)
    return made


@pytest.fixture
def tray(window: Window, at_lone: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tray]:
    """Return the tray icon on a desktop with a tray."""
    monkeypatch.setattr(Tray, "_has_host", staticmethod(lambda: True))
    made = Tray(at_lone.services, window, lambda: None)
    yield made
    made.hide()


def told(tray: Tray, monkeypatch: pytest.MonkeyPatch) -> list[Notification]:
    results: list[Notification] = []
    monkeypatch.setattr(tray, "notify", results.append)
    return results


def lines(menu: TrayMenu) -> list[str]:
    return [line.text() for line in menu.actions() if line.isVisible() and line.text()]


def test_the_menu_is_complete_and_keeps_its_lines(qtbot: QtBot, tray: Tray, at_lone: Desk) -> None:
    menu, pool = tray.menu, at_lone.services.pool
    assert lines(menu) == [
        "Ready. No model is loaded yet.", "Open Poolhouse", "Pause lending", "Stop now",
        "Machines", "Settings", "Quit (background service keeps running)",
    ]  # fmt: skip
    assert [line.text() for line in menu.machines.actions()] == ["den (this machine): ready"]
    before: list[QAction] = list(menu.actions())
    menu.pauses.actions()[0].trigger()
    qtbot.waitUntil(lambda: pool.now.node.lending.state == "paused", timeout=5000)
    assert 3500 < (pool.now.node.lending.resumes_in_s or 0) <= 3600
    assert menu.status.text().startswith("Paused until ")
    assert "Resume lending" in lines(menu)
    assert "Pause lending" not in lines(menu)
    assert "Stop now" not in lines(menu)  # nothing is left to stop
    menu.resume.trigger()
    qtbot.waitUntil(lambda: pool.now.node.lending.state == "ready", timeout=5000)
    menu.stop.trigger()
    qtbot.waitUntil(lambda: pool.now.node.lending.code == "pause_stopped", timeout=5000)
    menu.resume.trigger()
    qtbot.waitUntil(lambda: pool.now.node.lending.state == "ready", timeout=5000)
    assert menu.actions() == before


def test_quit_says_what_it_ends(tray: Tray, at_lone: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tray.menu.quit.text() == "Quit (background service keeps running)"
    monkeypatch.setattr(Attached, "started", property(lambda _: True))
    at_lone.services.pool.changed.emit()
    assert tray.menu.quit.text() == "Quit"


def test_lines_lead_to_pages(tray: Tray, at_lone: Desk) -> None:
    tray.menu.machines.actions()[0].trigger()
    next(line for line in tray.menu.actions() if line.text() == "Settings").trigger()
    assert at_lone.went == [f"pool/{at_lone.services.pool.now.node.id}", "settings"]


def test_a_machine_that_joined_is_shown() -> None:
    (item,) = news_of(PAIRING, JOINED | {"pairing": None, "paired": "b"})
    assert (item.page, item.sentence) == ("pool/b", "attic is now in your household.")


def test_what_is_told_of_a_lost_model_leads_to_the_chat_that_was_cut(tray: Tray, at_lone: Desk) -> None:
    lost = news_of(READY, {"loaded": {"model": "guide", "state": "lost", **tells("attic is gone.")}})
    tray.notify(lost[0])
    tray._message_clicked()
    at_lone.services.interrupted.add(ChatId("7"), "guide")
    tray._message_clicked()
    tray.notify(Notification("Download finished", "m is ready to load.", "models"))
    tray._message_clicked()
    assert at_lone.went == ["pool", "chat/at/7", "models"]


def test_the_first_line_leads_to_what_it_tells_of(tray: Tray, at_lone: Desk) -> None:
    pool, status = at_lone.services.pool, tray.menu.status
    status.trigger()
    states = ({"model": "m", "state": name} for name in ("lost", "recovering", "loading", "ready"))
    for loaded in states:
        pool.snapshot = pool.snapshot | {"loaded": loaded}
        status.trigger()
    assert at_lone.went == ["models", "pool", "pool", "models", "chat"]
    pool.snapshot = pool.snapshot | {"loaded": {"model": "m", "state": "recovering"}}
    at_lone.services.interrupted.add(ChatId("7"), "m")
    status.trigger()
    assert at_lone.went[-1] == "chat/at/7"


def test_names_with_signs_are_shown_as_they_are(tray: Tray, at_lone: Desk) -> None:
    pool = at_lone.services.pool
    pool.snapshot = pool.snapshot | {
        "machines": {"a": {"id": "a", "name": "R&D <b>", "state": "paused"}, "b": {"id": "b", "name": "attic"}}
    }
    pool.changed.emit()
    shown = [line.text() for line in tray.menu.machines.actions() if line.isVisible()]
    assert shown == ["attic: offline", "R&&D <b>: paused"]


def test_without_a_node_only_what_works_is_offered(qtbot: QtBot, away: Desk) -> None:
    menu = TrayMenu(away.services, lambda: None, lambda: None, lambda _: None)
    qtbot.addWidget(menu)
    assert lines(menu) == ["Starting the background service…", "Open Poolhouse", "Settings", "Quit"]


def test_closing_hides_where_a_tray_is_and_says_so_once(
    tray: Tray, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = told(tray, monkeypatch)
    for _ in range(2):
        window.show()
        assert tray.hide_window(window)
        assert not window.isVisible()
    assert len(said) == 1
    assert "Quit" in said[0].sentence


def test_a_tray_that_goes_away_brings_the_window_back(
    tray: Tray, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(tray, monkeypatch)
    window.show()
    tray.hide_window(window)
    monkeypatch.setattr(Tray, "_has_host", staticmethod(lambda: False))
    tray._check_tray()
    assert window.isMinimized()


def test_without_a_tray_the_window_minimizes_and_says_so_once(window: Window, at_lone: Desk) -> None:
    at_lone.services.preferences.forget(NO_TRAY)
    tray = Tray(at_lone.services, window, lambda: None)
    assert not tray.is_there
    window.show()
    assert tray.hide_window(window)
    assert not window.isMinimized()  # what is said could not be read
    assert "stays in the taskbar" in window._told.sentence
    assert [button.text() for button in offered(window)] == ["Minimize", "Quit"]
    assert tray.hide_window(window)
    assert window.isMinimized()
    assert not window._told.sentence
    window.showNormal()
    tray.hide_window(window)
    assert window.isMinimized()
    assert not window._told.sentence


@pytest.mark.parametrize(("place", "ends"), [(0, False), (1, True)])
def test_the_first_close_without_a_tray_asks(window: Window, at_lone: Desk, place: int, ends: bool) -> None:
    at_lone.services.preferences.forget(NO_TRAY)
    quits: list[bool] = []
    tray = Tray(at_lone.services, window, lambda: quits.append(True))
    window.show()
    tray.hide_window(window)
    offered(window)[place].click()
    assert window.isMinimized() is not ends
    assert quits == [True] * ends
    assert not window._told.sentence
    assert at_lone.services.preferences.flag(NO_TRAY)


def offered(window: Window) -> list[QPushButton]:
    """The buttons beside what is said over every page."""
    return [button for button in window._told.findChildren(QPushButton) if button.isVisible()]


def test_a_late_tray_takes_a_hidden_start(
    qtbot: QtBot, window: Window, at_lone: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tray_module, "RETRY_MS", 20)
    tray = Tray(at_lone.services, window, lambda: None)
    tray.start_hidden()
    assert window.isMinimized()
    monkeypatch.setattr(Tray, "_has_host", staticmethod(lambda: True))
    qtbot.waitUntil(lambda: tray.is_there and not window.isVisible(), timeout=5000)
    tray.hide()


def test_a_refused_order_is_said(qtbot: QtBot, tray: Tray, at_lone: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(tray, monkeypatch)
    at_lone.services.pool.stop()
    tray.menu.pauses.actions()[0].trigger()
    assert said
    assert ("background service" in said[0].sentence, said[0].page) == (True, "")
    tray._failed(AppError("bug"))
    assert said[1].page == LOG_PAGE  # there is what is known of a mistake of ours


def news_of(before: Json, now: Json) -> list[Notification]:
    return notifications(convert(before, Snapshot) if before else None, convert(now, Snapshot))


PAIRING = {"pairing": {"tries_left": 2}, "machines": {"a": {"id": "a", "name": "den"}}}
JOINED = PAIRING | {"machines": {"a": {"id": "a", "name": "den"}, "b": {"id": "b", "name": "attic"}}}
LAST_TRY = PAIRING | {"pairing": {"tries_left": 1}}
LOADING = {"downloads": {"d": {"id": "d", "name": "Qwen", "state": "running"}}}
READY = {"loaded": {"model": "guide", "state": "ready"}}
LOST = {"loaded": {"model": "guide", "state": "lost"}}
TAKEN_BACK = Reason("lend_taken_back", {"machine": "attic", "why": Reason("pause_owner")}).to_json()


@pytest.mark.parametrize(
    ("before", "now", "titles"),
    [
        ({}, READY, []),
        (PAIRING, PAIRING | {"pairing": {"tries_left": 1}}, ["Pairing attempt"]),
        (PAIRING, PAIRING | {"pairing": None}, []),  # it was closed by hand, or its time was over
        (LAST_TRY, PAIRING | {"pairing": None, "pairing_closed": None}, []),  # closed by hand
        (LAST_TRY, PAIRING | {"pairing": None, "pairing_closed": "pairing_expired"}, []),
        (LAST_TRY, PAIRING | {"pairing": None, "pairing_closed": "pairing_tries_used"},
         ["Pairing attempt"]),
        (PAIRING, JOINED | {"pairing": None, "paired": "b"}, ["A machine was added"]),
        (JOINED, JOINED | {"pairing": None, "paired": "b"}, ["A machine was added"]),
        (PAIRING, PAIRING | {"paired": "b"}, []),  # the name comes a moment later
        (PAIRING | {"paired": "b"}, JOINED | {"paired": "b"}, ["A machine was added"]),
        (JOINED | {"paired": "b"}, JOINED | {"paired": "b"}, []),
        (PAIRING, JOINED, []),  # another machine of the household let it in
        (LOADING, {"downloads": {"d": {"id": "d", "name": "Qwen", "state": "done"}}}, ["Download finished"]),
        (LOADING, {"downloads": {"d": {"id": "d", "name": "Qwen", "state": "failed"}}}, []),
        ({"a": 1}, {"downloads": {"d": {"id": "d", "name": "Qwen", "state": "done"}}}, []),
        (
            READY,
            {"loaded": {"model": "guide", "state": "lost", **tells("attic is gone.")}},
            ["The model stopped unexpectedly"],
        ),
        (READY, {"loaded": {"model": "guide", "state": "lost", "reason_facts": TAKEN_BACK}}, []),
        (LOST, {"loaded": {"model": "guide", "state": "lost", **tells("x")}}, []),
        (READY, {"loaded": None}, []),
        (READY | {"beside": [{"model": "m", "state": "ready"}]},
         READY | {"beside": [{"model": "m", "state": "lost"}]}, ["The model stopped unexpectedly"]),
    ],
)  # fmt: skip
def test_what_is_news(before: Json, now: Json, titles: list[str]) -> None:
    assert [item.title for item in news_of(before, now)] == titles


def held(state: str, *machines: str) -> Json:
    """A snapshot with a model whose stages are on these machines."""
    stages = [{"id": key, "key": key, "machine": key, "first": 0, "last": 1} for key in machines]
    return {"loaded": {"model": "guide", "state": state, "stages": stages}}


def there(**online: bool) -> Json:
    return {"machines": {key: {"id": key, "name": key, "online": value} for key, value in online.items()}}


@pytest.mark.parametrize(
    ("before", "now", "titles"),
    [
        (held("ready", "attic") | there(attic=True), held("recovering") | there(attic=False), ["A computer was lost"]),
        (held("ready", "attic") | there(attic=True), held("ready", "attic") | there(attic=True), []),
        (held("ready", "attic") | there(attic=False), held("ready", "attic") | there(attic=False), []),
        (
            held("ready", "attic") | there(attic=True, den=True),
            held("ready", "attic") | there(attic=True, den=False),
            [],
        ),
        (held("ready", "attic") | there(attic=True), held("ready") | {"machines": {}}, []),  # it was removed
        (
            held("ready", "attic") | there(attic=True),
            held("lost") | there(attic=False),
            ["The model stopped unexpectedly"],  # one notification, not two
        ),
    ],
)
def test_a_lost_computer_is_news_if_it_held_a_part_of_a_model(before: Json, now: Json, titles: list[str]) -> None:
    items = news_of(before, now)
    assert [item.title for item in items] == titles
    if titles == ["A computer was lost"]:
        assert items[0].sentence == "attic went offline. It was running part of Guide."
        assert items[0].page == "pool/attic"


def ended(desk: Desk, error: AppError | None = None) -> None:
    desk.services.answers.ended.emit("c1", "Why is the sky blue?", error)


def test_an_answer_is_news_while_the_window_is_not_in_front(
    tray: Tray, window: Window, at_lone: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = told(tray, monkeypatch)
    monkeypatch.setattr(window, "isActiveWindow", lambda: True)
    ended(at_lone)
    assert said == []
    monkeypatch.setattr(window, "isActiveWindow", lambda: False)
    ended(at_lone)
    assert (said[0].title, said[0].sentence) == ("Answer ready", "Why is the sky blue?")
    ended(at_lone, AppError("bug"))
    assert said[1].title == "The answer stopped"
    ended(at_lone, StageLost("machine_gone"))
    assert len(said) == 2  # the lost model is told instead
    went: list[str] = []
    monkeypatch.setattr(type(at_lone.services), "go", lambda _, page: went.append(page))
    tray._last_news = said[0]
    tray._message_clicked()
    assert went == [chat_address("c1")]


def test_each_kind_can_be_turned_off(
    tray: Tray, window: Window, at_lone: Desk, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = told(tray, monkeypatch)
    monkeypatch.setattr(window, "isActiveWindow", lambda: False)
    settings = General(at_lone.services)
    qtbot.addWidget(settings)
    settings.refresh()
    for kind in (NOTIFY_ANSWERS, NOTIFY_LOSSES, NOTIFY_NEWS):
        item = Notification("x", "y", "", kind=kind)
        switch = settings.notifications[kind]
        assert switch.isChecked()
        tray._tell(item)
        assert said.pop() == item
        switch.click()
        tray._tell(item)
        assert said == []
    settings.reset()
    assert all(switch.isChecked() for switch in settings.notifications.values())
    ended(at_lone)
    assert len(said) == 1
