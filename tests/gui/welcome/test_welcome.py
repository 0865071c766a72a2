"""The first run: every step can be skipped, Back works, the keyboard is enough, and nothing needs the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QMainWindow, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.api import computer
from app.api.computer import Computer, UnusedGraphics
from app.core.errors import Reason
from app.decoding import convert
from app.gui.app import navigation
from app.gui.look.sentences import GUIDE, said
from app.gui.look.theme import Scheme
from app.gui.welcome.steps import HardwareStep, NameStep, PairStep, RoleStep
from app.gui.welcome.welcome import DONE_KEY, Welcome
from app.gui.widgets.scroll_area import ScrollArea
from testbed.snapshots import household
from tests.gui.desk import Desk, follow
from tests.node.pool import node

MOST_PAST_IT = 20
LOW = 260


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[QMainWindow]:
    made = QMainWindow()
    made.resize(1200, 760)
    made.setCentralWidget(QWidget())
    qtbot.addWidget(made)
    made.show()
    yield made
    made.close()


def begun(desk: Desk, window: QMainWindow) -> Welcome:
    made = Welcome(desk.services, window)
    made.begin()
    return made


def below(window: QMainWindow) -> QWidget:
    widget = window.centralWidget()
    assert widget is not None
    return widget


def press(welcome: Welcome, text: str) -> None:
    buttons = [button for button in welcome.findChildren(QPushButton) if button.text() == text]
    buttons[0].click()


def test_it_names_the_machine_and_ends_with_the_guide(qtbot: QtBot, at_lone: Desk, window: QMainWindow) -> None:
    welcome = begun(at_lone, window)
    name = welcome.step
    assert isinstance(name, NameStep)
    assert name.field.text() == "den"
    name.field.selectAll()
    QTest.keyClicks(name.field, "study")
    QTest.keyClick(name.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: isinstance(welcome.step, HardwareStep), timeout=5000)
    qtbot.waitUntil(lambda: at_lone.services.pool.now.node.name == "study", timeout=5000)
    step = welcome.step
    assert isinstance(step, HardwareStep)
    assert "GiB" in step.memory.value.text()
    assert "GiB" in step.disk.value.text()
    assert step.device.value.text()
    press(welcome, "Next")
    assert isinstance(welcome.step, RoleStep)
    press(welcome, "Next")
    assert isinstance(welcome.step, PairStep)
    press(welcome, "Next")
    press(welcome, "Ask the Guide")
    assert at_lone.went == [f"{navigation.CHAT}/{GUIDE}"]
    assert at_lone.services.preferences.flag(DONE_KEY)
    assert below(window).isVisible()
    ident = at_lone.services.pool.now.node.id
    at_lone.services.client.post(f"/machines/{ident}/name", {"name": "den"}, lambda _: None)
    qtbot.waitUntil(lambda: at_lone.services.pool.now.node.name == "den", timeout=5000)


def test_a_card_that_is_not_used_is_told_where_the_computer_is(
    qtbot: QtBot, at_lone: Desk, window: QMainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason, cure = Reason("graphics_unused", {"cards": "A", "pack": "Vulkan"}), Reason("cure_graphics_unused")
    unused = UnusedGraphics(reason_facts=reason, cure_facts=cure)

    def get(path: str, done: Callable[[Computer], None], _failed: object, **_: object) -> None:
        if path == "/machine":
            done(Computer(unused_graphics=unused))

    monkeypatch.setattr(at_lone.services.client, "get", get)
    welcome = begun(at_lone, window)
    press(welcome, "Skip")
    step = welcome.step
    assert isinstance(step, HardwareStep)
    qtbot.waitUntil(step.unused.isVisible, timeout=5000)
    assert step.unused.text() == f"{said(reason)} {said(cure)}"


def test_a_step_keeps_no_height_below_its_last_card(qtbot: QtBot, at_lone: Desk, window: QMainWindow) -> None:
    window.resize(1200, LOW)
    welcome = begun(at_lone, window)
    view = welcome.findChild(ScrollArea)
    assert view is not None
    body = view.widget()
    assert body is not None
    while True:
        qtbot.wait(50)
        end = welcome.step.content.geometry().bottom()
        assert body.height() <= max(view.viewport().height(), end + MOST_PAST_IT)
        if welcome.is_last:
            break
        welcome.skip()


def test_a_name_that_cannot_be_is_said_and_stays(qtbot: QtBot, at_lone: Desk, window: QMainWindow) -> None:
    welcome = begun(at_lone, window)
    name = welcome.step
    assert isinstance(name, NameStep)
    name.field.setText("\u2060")  # nothing that can be seen
    press(welcome, "Next")
    qtbot.waitUntil(lambda: bool(welcome.notice.sentence), timeout=5000)
    assert welcome.step is name
    assert welcome.notice.sentence == "The name of a machine cannot be empty. Enter a name with visible characters."


@pytest.mark.parametrize("typed", ["", "x" * 65])
def test_a_name_that_is_none_or_too_long_is_said_in_the_field(at_lone: Desk, window: QMainWindow, typed: str) -> None:
    welcome = begun(at_lone, window)
    name = welcome.step
    assert isinstance(name, NameStep)
    name.field.setText(typed)
    assert "up to 64 characters" in name.field.problem.text()
    assert not name.field.placeholderText(), "there is nothing to wait for"
    QTest.keyClick(name.field, Qt.Key.Key_Return)
    assert welcome.step is name
    name.field.setText("attic")
    assert not name.field.problem.isVisible()
    assert welcome._next.isEnabled()


def test_a_name_outlives_steps_that_are_over_before_the_node_is_there(
    qtbot: QtBot, away: Desk, window: QMainWindow
) -> None:
    welcome = begun(away, window)
    QTest.keyClicks(welcome.step.findChildren(QLineEdit)[0], "study")
    press(welcome, "Next")
    press(welcome, "Skip the introduction")
    pool = away.services.pool
    with node(away.services.launcher.home, "den"):
        follow(qtbot, away.services)
        qtbot.waitUntil(lambda: pool.now.node.name == "study", timeout=5000)
        pool.stop()


def test_back_and_skip_and_the_role(away: Desk, window: QMainWindow) -> None:
    welcome = begun(away, window)
    assert not below(window).isVisible()  # nothing under it takes the keyboard
    press(welcome, "Skip")
    step = welcome.step
    assert isinstance(step, HardwareStep)
    assert step.memory.value.text() == "Still looking…"  # the node has not started yet
    assert "GiB" in step.disk.value.text()
    press(welcome, "Back")
    assert isinstance(welcome.step, NameStep)
    press(welcome, "Skip")
    press(welcome, "Skip")
    role = welcome.step
    assert isinstance(role, RoleStep)
    role.lend.click()
    press(welcome, "Next")
    press(welcome, "Next")
    press(welcome, "Finish")
    assert away.went == [navigation.COMPUTER]


def test_it_can_be_left_at_once_and_seen_again(away: Desk, window: QMainWindow) -> None:
    press(begun(away, window), "Skip the introduction")
    assert away.went == [navigation.CHAT]
    assert away.services.preferences.flag(DONE_KEY)
    again = begun(away, window)
    assert isinstance(again.step, NameStep)
    window.resize(1000, 640)
    assert again.size() == window.size()
    press(again, "Skip the introduction")


def test_everything_has_a_name_and_the_keyboard_reaches_it(away: Desk, window: QMainWindow) -> None:
    welcome = begun(away, window)
    for _ in range(5):
        for widget in welcome.step.findChildren(QWidget):
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
                assert widget.accessibleName() or getattr(widget, "text", str)(), widget
        if not welcome.is_last:
            press(welcome, "Skip")
    assert welcome.is_last


def test_who_may_not_change_its_household_is_offered_no_code(qtbot: QtBot, away: Desk) -> None:
    """The first steps may come again, when the machine belongs to a household."""
    made = household(2)
    away.services.pool.snapshot = made
    step = PairStep(away.services)
    qtbot.addWidget(step)
    assert not step._first.isVisibleTo(step)
    made["machines"][f"{0:064x}"]["roles"] = ["admin"]
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    assert step._first.isVisibleTo(step)


def test_whose_machine_is_paired_already_is_offered_one_more(qtbot: QtBot, away: Desk) -> None:
    step = PairStep(away.services)
    qtbot.addWidget(step)
    assert step._which.text() == "This is the first computer"
    assert not step._first.isEnabled()
    assert step.away.isVisibleTo(step), "that nothing can be pressed has its reason"
    away.services.pool.snapshot = household(2)
    away.services.pool.changed.emit()
    assert step._which.text() == "Add another"


def test_its_mark_follows_the_palette(away: Desk, window: QMainWindow) -> None:
    theme = away.services.theme
    made = begun(away, window)
    light = made._mark.pixmap().toImage()
    theme.choose(Scheme.DARK, 1.0)
    assert made._mark.pixmap().toImage() != light
    theme.choose(Scheme.LIGHT, 1.0)
    assert made._mark.pixmap().toImage() == light


def test_looking_for_updates_is_offered_off_and_only_where_somebody_can_be_asked(qtbot: QtBot, at_lone: Desk) -> None:
    step = RoleStep(at_lone.services)
    qtbot.addWidget(step)
    step.show()
    step.entered()
    daily = step.updates
    daily.show_state(convert({"place": None, "daily": False}, computer.Updates))
    assert daily.isHidden()
    step.cancel()  # the node's own answer comes no more
    daily.show_state(convert({"place": "api.github.com/someone/poolhouse", "daily": False}, computer.Updates))
    assert daily.isVisible()
    assert not daily.switch.isChecked()
    assert "api.github.com/someone/poolhouse" in daily.words.text()
    daily.switch.click()
    chosen: list[bool] = []

    def saved() -> bool:
        def told(settings: dict[str, bool]) -> None:
            chosen.append(settings["look_for_updates"])

        at_lone.services.client.get("/settings", told)
        return bool(chosen and chosen[-1])

    qtbot.waitUntil(saved, timeout=10_000)
    daily.switch.click()
    qtbot.waitUntil(lambda: not saved() and bool(chosen) and not chosen[-1], timeout=10_000)
