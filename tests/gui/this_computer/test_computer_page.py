"""The page "This computer" over a real node: every rule is shown as it is, changed at once, undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.api.computer import Game, Programs
from app.api.snapshot import Lending
from app.gui.api.node_state import Link
from app.gui.look import formats
from app.gui.look.theme import Scheme
from app.gui.this_computer.computer_page import ComputerPage
from app.gui.this_computer.hours_card import ALL
from app.gui.widgets.scroll_area import ScrollArea
from tests.gui.desk import Desk
from tests.gui.wheel import turn

Json = dict[str, Any]
GIB = 1 << 30
WITHIN_MS = 5000
MOST_PAST_IT = 48


def state_of(page: ComputerPage) -> Lending:
    return page.lending.state or Lending()


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> Iterator[ComputerPage]:
    """Shown; the node's rules are those it started with."""
    made = ComputerPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.show()
    qtbot.waitUntil(lambda: made.lending.is_known, timeout=WITHIN_MS)
    yield made
    done: list[object] = []
    rules = {"on": True, "memory_bytes": GIB, "hours": "always", "programs": [], "idle_s": 0,
             "battery_percent": 50, "gpu": True, "drain_s": 30, "threads": 0, "hot": True,
             "hot_celsius": 95, "screen": True, "network": False, "link_mbit": 0}  # fmt: skip
    at_lone.services.client.post("/lending", rules, done.append, done.append)
    at_lone.services.client.post("/lending/resume", {}, done.append, done.append)
    qtbot.waitUntil(lambda: len(done) == 2, timeout=WITHIN_MS)


def saved(qtbot: QtBot, page: ComputerPage, rule: str, value: object) -> None:
    """Wait until the node has it."""
    qtbot.waitUntil(lambda: getattr(page.lending.rules, rule) == value, timeout=WITHIN_MS)


def test_without_a_node_there_are_no_limits_to_show(qtbot: QtBot, away: Desk) -> None:
    made = ComputerPage(away.services)
    qtbot.addWidget(made)
    made.show()
    assert made.state._sentence.text() == "Waiting for the background service…"
    away.services.pool.link = Link.AWAY
    away.services.pool.link_changed.emit()
    assert made.state._sentence.text() == "The background service is not running."
    assert not any(item.isVisible() for item in (made.memory, made.rules, made.hours))
    assert made.hardware._waiting.text() == "Details appear when the background service is running."
    assert not made.hardware.measure.isEnabled()


@pytest.mark.parametrize("link", [Link.STARTING, Link.AWAY, Link.OTHER_VERSION])
def test_what_a_lost_node_said_last_is_not_the_state(at_lone: Desk, page: ComputerPage, link: Link) -> None:
    """Its last word is for the others: that it is being ended there."""
    pool = at_lone.services.pool
    lending = pool.snapshot["node"]["lending"] | {"state": "paused", "code": "pause_quit"}
    pool.snapshot = pool.snapshot | {"node": pool.snapshot["node"] | {"lending": lending}}
    pool.changed.emit()
    pool.link = link
    pool.link_changed.emit()
    text = page.state._sentence.text()
    pool.link = Link.THERE
    pool.link_changed.emit()
    waiting = link is Link.STARTING
    assert text == ("Waiting for the background service…" if waiting else "The background service is not running.")


def test_the_cards_stand_below_the_title_also_in_a_wide_window(qtbot: QtBot, page: ComputerPage) -> None:
    page.resize(1900, 760)
    qtbot.waitUntil(lambda: page._stack.width() == page._stack.maximumWidth())
    assert page._stack.x() == 0
    page.resize(1000, 760)
    around = page._stack.parentWidget()
    assert around is not None
    qtbot.waitUntil(lambda: page._stack.width() == around.width())


def test_showing_it_changes_nothing(qtbot: QtBot, page: ComputerPage) -> None:
    before = page.lending.rules
    qtbot.wait(800)  # longer than what is typed needs to settle
    page.lending.refresh()
    assert page.lending.rules == before
    assert not page.lending.can_undo
    assert page.state.switch.isChecked()
    assert page.memory._limit_words.text() == "Lend at most 1.0 GiB"


def test_the_switch_turns_lending_off_and_on_with_its_limit(qtbot: QtBot, page: ComputerPage) -> None:
    page.state.switch.click()
    qtbot.waitUntil(lambda: state_of(page).state == "off", timeout=WITHIN_MS)
    qtbot.waitUntil(lambda: not page.state.stop.isVisible(), timeout=WITHIN_MS)  # its rules come apart
    assert "turned off" in page.state._sentence.text()
    assert page.lending.rules.memory_bytes == GIB
    page.memory._chosen(4)  # the limit can be chosen meanwhile, and turns nothing on
    saved(qtbot, page, "memory_bytes", GIB // 2)
    assert state_of(page).state == "off"
    page.state.switch.click()
    qtbot.waitUntil(lambda: state_of(page).state == "ready", timeout=WITHIN_MS)
    assert page.lending.rules.memory_bytes == GIB // 2


def test_a_limit_for_all_models_is_told_and_can_be_removed_here(qtbot: QtBot, page: ComputerPage) -> None:
    card, before = page.memory, page.lending.rules.limit_bytes
    page.lending.change({"limit_bytes": 2 * GIB})
    saved(qtbot, page, "limit_bytes", 2 * GIB)
    assert card.end_limit.isVisible()
    text = "All models on this machine, including those of other machines, can use up to 2.0 GiB in total."
    assert card._own.text().startswith(text)
    assert "poolhouse" not in card._own.text()
    card.end_limit.click()
    saved(qtbot, page, "limit_bytes", 0)
    assert not card.end_limit.isVisible()
    assert card._own.text().startswith("This limits how much memory others can use.")
    page.lending.change({"limit_bytes": before})
    saved(qtbot, page, "limit_bytes", before)


def test_pause_and_resume(qtbot: QtBot, page: ComputerPage) -> None:
    page.state.pauses[1].click()
    qtbot.waitUntil(lambda: state_of(page).state == "paused", timeout=WITHIN_MS)
    assert (state_of(page).resumes_in_s or 0) > 4 * 3600 - 60
    assert page.state._sentence.text().startswith("Paused until ")
    assert page.state.resume.isVisible()
    assert not page.state.pauses[0].isVisible()
    page.state.resume.click()
    qtbot.waitUntil(lambda: state_of(page).state == "ready", timeout=WITHIN_MS)
    assert "Since" in page.state._detail.text()
    page.state.stop.click()
    qtbot.waitUntil(lambda: state_of(page).code == "pause_stopped", timeout=WITHIN_MS)


def test_the_limit_and_its_undo(qtbot: QtBot, page: ComputerPage) -> None:
    page.memory.limit.setValue(page.memory.limit.value() + 2)
    saved(qtbot, page, "memory_bytes", GIB + 2 * page.memory._step())
    assert page._kept.text() == "Saved"
    assert page.undo.isVisible()
    page.undo.click()
    saved(qtbot, page, "memory_bytes", GIB)
    assert not page.undo.isVisible()
    page.memory.automatic.click()
    saved(qtbot, page, "memory_bytes", None)


def test_whoever_moves_the_limit_ends_the_automatic_choice(qtbot: QtBot, page: ComputerPage) -> None:
    page.memory.automatic.click()
    saved(qtbot, page, "memory_bytes", None)
    before = page.memory.limit.value()
    assert page.memory.limit.isEnabled()
    page.memory.limit.setValue(before - 1)
    moved = (before - 1) * page.memory._step()
    assert page.memory._limit_words.text() == f"Lend at most {formats.size(moved)}"
    saved(qtbot, page, "memory_bytes", moved)
    qtbot.waitUntil(lambda: not page.memory.automatic.isChecked(), timeout=WITHIN_MS)


@pytest.mark.long
def test_numbers_are_told_once_they_are_chosen(qtbot: QtBot, page: ComputerPage) -> None:
    rules = page.rules
    assert not rules.idle_minutes.isVisible()
    rules.idle.click()
    saved(qtbot, page, "idle_s", 300)
    qtbot.waitUntil(rules.idle_minutes.isVisible, timeout=WITHIN_MS)
    for minutes in (7, 8, 9):
        rules.idle_minutes.setValue(minutes)
    saved(qtbot, page, "idle_s", 540)
    rules.battery_percent.setValue(80)
    saved(qtbot, page, "battery_percent", 80)
    assert "resumes above 90%" in rules._battery.reading.text()
    rules.battery.click()
    saved(qtbot, page, "battery_percent", 0)
    rules.gpu.click()
    saved(qtbot, page, "gpu", False)
    rules.hot_celsius.setValue(80)
    saved(qtbot, page, "hot_celsius", 80)
    rules.screen_rule.click()
    saved(qtbot, page, "screen", False)
    rules.network.click()
    saved(qtbot, page, "network", True)
    page.rules.hot.click()
    saved(qtbot, page, "hot", False)
    page.memory.threads.setValue(1)
    saved(qtbot, page, "threads", 1)
    assert page.memory.link.text() == "No limit"
    page.memory.link.setValue(50)
    saved(qtbot, page, "link_mbit", 50)
    page.memory.link.setValue(page.memory.link.minimum())
    saved(qtbot, page, "link_mbit", 0)
    rules.drain.setValue(0)
    saved(qtbot, page, "drain_s", 0)


def test_programs(qtbot: QtBot, page: ComputerPage) -> None:
    editor = page.rules.programs
    qtbot.waitUntil(lambda: editor.entry.count() > 0 or not editor.entry.count(), timeout=WITHIN_MS)
    for name in ("Steam.exe", "steam", "  ", "<b>&x"):
        editor.entry.setEditText(name)
        editor.add.click()
        qtbot.wait(150)
        if name == "Steam.exe":  # what is added next joins what the node has
            saved(qtbot, page, "programs", ["Steam.exe"])
    saved(qtbot, page, "programs", ["Steam.exe", "<b>&x"])
    editor._remove("Steam.exe")
    saved(qtbot, page, "programs", ["<b>&x"])
    page.lending.undo()
    saved(qtbot, page, "programs", ["Steam.exe", "<b>&x"])


def test_installed_games_are_offered_by_their_names(qtbot: QtBot, page: ComputerPage) -> None:
    editor = page.rules.programs
    before = page.lending.rules.programs
    games = [Game("Fac Torio", "factorio"), Game("Chess", "chess")]
    editor._offered(Programs(["blender", "chess"], games))
    texts = [editor.entry.itemText(at) for at in range(editor.entry.count())]
    assert texts == ["blender", "Chess (chess)", "Fac Torio (factorio)"], "what runs comes first"
    editor.entry.setCurrentIndex(2)
    editor.add.click()
    saved(qtbot, page, "programs", [*before, "factorio"])
    editor._offered(Programs([], games))
    assert editor.entry.count() == 1, "it is listed"
    editor._remove("factorio")
    saved(qtbot, page, "programs", before)


def test_the_wheel_over_the_programs_scrolls_the_page(qtbot: QtBot, page: ComputerPage) -> None:
    entry, view = page.rules.programs.entry, page.findChild(ScrollArea)
    assert view is not None
    entry.offer({"chess": "chess", "steam": "steam"})
    view.ensureWidgetVisible(entry)
    before, typed = view.verticalScrollBar().value(), entry.currentText()
    turn(entry)
    assert entry.currentText() == typed
    assert view.verticalScrollBar().value() > before


@pytest.mark.parametrize("limited", [False, True])
def test_the_page_ends_with_its_last_card(qtbot: QtBot, page: ComputerPage, limited: bool) -> None:
    if limited:
        page.hours.switch.click()
        qtbot.waitUntil(page.hours.grid.isVisible, timeout=WITHIN_MS)
    view, last = page.findChild(ScrollArea), page.autostart.parentWidget()
    assert view is not None
    assert last is not None
    body = view.widget()
    assert body is not None
    qtbot.wait(50)
    past = body.height() - last.mapTo(body, last.rect().bottomLeft()).y()
    assert 0 < past <= MOST_PAST_IT
    assert view.verticalScrollBar().maximum() == body.height() - view.viewport().height() > 0


def test_hours_by_mouse(qtbot: QtBot, page: ComputerPage) -> None:
    hours = page.hours
    assert not hours.grid.isVisible()
    hours.switch.click()
    saved(qtbot, page, "hours", "mon-fri 18:00-08:00, sat, sun")
    qtbot.waitUntil(hours.grid.isVisible, timeout=WITHIN_MS)
    assert (5, 12) in hours.grid.cells
    start = hours.grid.rect_of((0, 9)).center().toPoint()
    end = hours.grid.rect_of((1, 11)).center().toPoint()
    QTest.mousePress(hours.grid, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(hours.grid, end)
    QTest.mouseRelease(hours.grid, Qt.MouseButton.LeftButton, pos=end)
    qtbot.waitUntil(lambda: "09:00-12:00" in page.lending.rules.hours, timeout=WITHIN_MS)
    assert {(0, 9), (1, 11)} <= hours.grid.cells
    hours.switch.click()
    saved(qtbot, page, "hours", "always")
    hours.switch.click()  # what was painted is still known
    qtbot.waitUntil(lambda: "09:00-12:00" in page.lending.rules.hours, timeout=WITHIN_MS)


def test_hours_by_keys_and_as_text(qtbot: QtBot, page: ComputerPage) -> None:
    hours = page.hours
    page.lending.change({"hours": "sun"})
    qtbot.waitUntil(hours.grid.isVisible, timeout=WITHIN_MS)
    saved(qtbot, page, "hours", "sun")
    hours.grid._at = (6, 22)
    QTest.keyClick(hours.grid, Qt.Key.Key_Space)
    page.lending.changed.emit()  # other news come before the answer: what was painted stays
    assert (6, 22) not in hours.grid.cells
    saved(qtbot, page, "hours", "sun 00:00-22:00, sun 23:00-00:00")
    QTest.keyClick(hours.grid, Qt.Key.Key_Space)
    saved(qtbot, page, "hours", "sun")
    QTest.keyClick(hours.grid, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(hours.grid, Qt.Key.Key_Right)
    QTest.keyClick(hours.grid, Qt.Key.Key_Space)  # Sunday from 0 to 1 is taken out
    saved(qtbot, page, "hours", "sun 01:00-00:00")
    hours.text.setText("nonsense")
    hours.text.setModified(True)
    hours.text.editingFinished.emit()
    assert "nonsense" in hours._problem.text()
    hours.text.setText("sat 10:00-11:00")
    hours.text.setModified(True)
    hours.text.editingFinished.emit()
    saved(qtbot, page, "hours", "sat 10:00-11:00")
    hours._painted(frozenset())
    assert "at least one hour" in hours._problem.text()
    assert hours.grid.cells == {(5, 10)}
    hours._painted(frozenset(cell for cell in ALL if (cell[0] + cell[1]) % 2))
    assert "short time ranges" in hours._problem.text()
    assert page.lending.rules.hours == "sat 10:00-11:00"


def test_what_the_machine_has_and_its_speed(qtbot: QtBot, page: ComputerPage) -> None:
    hardware = page.hardware
    qtbot.waitUntil(lambda: not hardware._waiting.isVisible(), timeout=30_000)
    assert hardware._grid.rowCount() >= 5
    qtbot.waitUntil(lambda: hardware._measuring is None, timeout=WITHIN_MS)
    assert hardware.speed.text() == "The model's speed hasn't been measured yet."
    hardware.measure.click()
    assert hardware.cancel.isVisible()
    hardware.cancel.click()
    assert hardware.measure.isVisible()
    hardware.measure.click()
    qtbot.waitUntil(lambda: "tok/s" in hardware.speed.text(), timeout=60_000)


def test_a_refusal_is_a_sentence_and_can_be_tried_again(qtbot: QtBot, page: ComputerPage, at_lone: Desk) -> None:
    page.lending.change({"hours": "often"})
    qtbot.waitUntil(lambda: bool(page.notice.sentence), timeout=WITHIN_MS)
    assert "often" in page.notice.sentence
    assert page.lending.rules.hours == "always"
    endpoint = at_lone.services.client.endpoint
    at_lone.services.client.endpoint = None
    page.state.switch.click()
    assert page.state.switch.isChecked()  # as it still is
    assert "background service" in page.notice.sentence
    at_lone.services.client.endpoint = endpoint
    page._again()
    qtbot.waitUntil(lambda: state_of(page).state == "off", timeout=WITHIN_MS)


def test_everything_has_a_name(page: ComputerPage) -> None:
    for widget in page.findChildren(QWidget):
        if widget.focusPolicy() is Qt.FocusPolicy.NoFocus or not widget.isVisible():
            continue
        words = getattr(widget, "text", lambda: "")()
        assert widget.accessibleName() or words, widget
    assert page.childAt(QPoint(30, 40)) is not None


def test_a_row_goes_on_in_the_next_line_where_it_is_too_long(page: ComputerPage, qtbot: QtBot, at_lone: Desk) -> None:
    theme = at_lone.services.theme
    theme.choose(Scheme.DARK, 2.0)
    page.resize(760, 700)
    qtbot.wait(100)
    edge = page.state.contentsRect()
    for button in (*page.state.pauses, page.state.stop):
        where = page.state.rect().intersected(edge)
        corner = button.mapTo(page.state, button.rect().bottomRight())
        assert where.contains(corner), button.text()
    assert page.state.stop.y() > page.state.pauses[0].y()
    theme.choose(Scheme.LIGHT, 1.0)
