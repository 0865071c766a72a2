"""The first run: one page for this computer, one for others, one for a model; one main button, one quiet way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QSysInfo, Qt
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
from app.gui.welcome.first_page import FirstPage
from app.gui.welcome.model_page import ModelPage
from app.gui.welcome.step import LEND, ROLE_KEY
from app.gui.welcome.together_page import TogetherPage
from app.gui.welcome.welcome import DONE_KEY, Welcome
from app.gui.widgets.scroll_area import ScrollArea
from tests.gui.desk import Desk, follow
from tests.node.pool import node

MOST_PAST_IT = 20
LOW = 260
PAGES = 3


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
    buttons = [button for button in welcome.findChildren(QPushButton) if button.text() == text and button.isVisible()]
    buttons[0].click()


def first_page(welcome: Welcome) -> FirstPage:
    assert isinstance(welcome.step, FirstPage)
    return welcome.step


def ways(welcome: Welcome) -> list[str]:
    """The words of the buttons below the page that can be seen."""
    return [button.text() for button in (welcome._back, welcome._quiet, welcome._main) if button.isVisible()]


def test_enter_presses_the_main_button_only_while_it_can_be_seen(
    qtbot: QtBot, at_lone: Desk, window: QMainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    welcome, presses = begun(at_lone, window), list[str]()
    monkeypatch.setattr(welcome.step, "press_main", lambda: presses.append("main"))
    welcome._main.hide()
    QTest.keyClick(welcome, Qt.Key.Key_Return)
    assert presses == []
    welcome._main.show()
    QTest.keyClick(welcome, Qt.Key.Key_Return)
    assert presses == ["main"]


def test_it_names_the_machine_and_may_end_with_the_guide(qtbot: QtBot, at_lone: Desk, window: QMainWindow) -> None:
    welcome = begun(at_lone, window)
    page = first_page(welcome)
    assert page.name.field.text() == "den", "a name that somebody has given stays"
    assert "GiB" in page.hardware.memory.value.text()
    assert "GiB" in page.hardware.disk.value.text()
    assert page.hardware.device.value.text()
    page.name.field.setFocus()
    page.name.field.selectAll()
    QTest.keyClicks(page.name.field, "study")
    assert "study" in page.picture.accessibleName()
    QTest.keyClick(page.name.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: isinstance(welcome.step, TogetherPage), timeout=5000)
    qtbot.waitUntil(lambda: at_lone.services.pool.now.node.name == "study", timeout=5000)
    press(welcome, "Only this computer for now")
    assert isinstance(welcome.step, ModelPage)
    welcome.step.left.emit(welcome.step.next_page)
    assert at_lone.went == [f"{navigation.CHAT}/{GUIDE}"]
    assert at_lone.services.preferences.flag(DONE_KEY)
    assert below(window).isVisible()
    ident = at_lone.services.pool.now.node.id
    at_lone.services.client.post(f"/machines/{ident}/name", {"name": "den"}, lambda _: None)
    qtbot.waitUntil(lambda: at_lone.services.pool.now.node.name == "den", timeout=5000)


def test_a_machine_that_nobody_named_is_called_as_its_host(
    away: Desk, window: QMainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QSysInfo, "machineHostName", lambda: "kitchen-pc.local")
    page = first_page(begun(away, window))
    pool = away.services.pool
    pool.snapshot = {"node": {"id": "a" * 64, "name": "badger-486"}}
    pool.changed.emit()
    assert page.name.field.text() == "Kitchen PC"
    page.name.field.setText("Anna's")
    pool.changed.emit()
    assert page.name.field.text() == "Anna's", "what a person typed stays"
    monkeypatch.setattr(QSysInfo, "machineHostName", lambda: "localhost")
    page.name.field.setText(page.name._proposed)
    pool.changed.emit()
    assert page.name.field.text() == "badger-486", "a name that any computer has is none"


def test_there_is_one_main_button_and_one_quiet_way_out(at_lone: Desk, window: QMainWindow) -> None:
    welcome = begun(at_lone, window)
    assert ways(welcome) == ["Skip the setup", "Continue"]
    welcome.show_next()
    assert ways(welcome) == ["Back", "Only this computer for now", "Show a code"]
    welcome.show_next()
    assert len(ways(welcome)) <= PAGES
    press(welcome, "Back")
    places = [welcome._stack.index]
    for _ in range(2):
        QTest.keyClick(welcome, Qt.Key.Key_Escape)
        places.append(welcome._stack.index)
    assert places == [1, 0, 0], "there is nothing before the first page"
    welcome.end()


def test_a_card_that_is_not_used_is_told_where_the_computer_is(
    qtbot: QtBot, at_lone: Desk, window: QMainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason, cure = Reason("graphics_unused", {"cards": "A", "pack": "Vulkan"}), Reason("cure_graphics_unused")
    unused = UnusedGraphics(reason_facts=reason, cure_facts=cure)

    def get(path: str, done: Callable[[Computer], None], *_failed: object, **_: object) -> None:
        if path == "/machine":
            done(Computer(unused_graphics=unused))

    monkeypatch.setattr(at_lone.services.client, "get", get)
    page = first_page(begun(at_lone, window))
    qtbot.waitUntil(page.hardware.unused.isVisible, timeout=5000)
    assert page.hardware.unused.text() == f"{said(reason)} {said(cure)}"


def test_a_page_keeps_no_height_below_its_last_part(qtbot: QtBot, at_lone: Desk, window: QMainWindow) -> None:
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
        welcome.show_next()
    welcome.end()


def test_a_name_that_cannot_be_is_said_and_stays(qtbot: QtBot, at_lone: Desk, window: QMainWindow) -> None:
    welcome = begun(at_lone, window)
    page = first_page(welcome)
    page.name.field.setText("\u2060")  # nothing that can be seen
    press(welcome, "Continue")
    qtbot.waitUntil(lambda: bool(welcome.notice.sentence), timeout=5000)
    assert welcome.step is page
    assert welcome.notice.sentence == "The name of a machine cannot be empty. Enter a name with visible characters."


@pytest.mark.parametrize("typed", ["", "x" * 65])
def test_a_name_that_is_none_or_too_long_is_said_in_the_field(at_lone: Desk, window: QMainWindow, typed: str) -> None:
    welcome = begun(at_lone, window)
    field = first_page(welcome).name.field
    field.setText(typed)
    assert "up to 64 characters" in field.problem.text()
    assert not field.placeholderText(), "there is nothing to wait for"
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert isinstance(welcome.step, FirstPage)
    field.setText("attic")
    assert not field.problem.isVisible()
    assert welcome._main.isEnabled()


def test_a_name_outlives_pages_that_are_over_before_the_node_is_there(
    qtbot: QtBot, away: Desk, window: QMainWindow
) -> None:
    welcome = begun(away, window)
    QTest.keyClicks(welcome.step.findChildren(QLineEdit)[0], "study")
    press(welcome, "Continue")
    welcome.end()
    pool = away.services.pool
    with node(away.services.launcher.home, "den"):
        follow(qtbot, away.services)
        qtbot.waitUntil(lambda: pool.now.node.name == "study", timeout=5000)
        pool.stop()


def test_who_goes_on_before_the_node_is_there_gets_the_name_that_would_have_been_proposed(
    qtbot: QtBot, away: Desk, window: QMainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QSysInfo, "machineHostName", lambda: "kitchen-pc.local")
    press(begun(away, window), "Continue")
    pool = away.services.pool
    with node(away.services.launcher.home, "badger-486"):
        follow(qtbot, away.services)
        qtbot.waitUntil(lambda: pool.now.node.name == "Kitchen PC", timeout=5000)
        pool.stop()


def test_who_only_lends_is_asked_for_no_model(away: Desk, window: QMainWindow) -> None:
    welcome = begun(away, window)
    assert not below(window).isVisible()  # nothing under it takes the keyboard
    page = first_page(welcome)
    assert page.hardware.memory.value.text() == "Checking…"  # the node has not started yet
    assert "GiB" in page.hardware.disk.value.text()
    page.role.lend.click()
    press(welcome, "Continue")
    assert away.services.preferences.text(ROLE_KEY) == LEND
    assert isinstance(welcome.step, TogetherPage)
    assert welcome.is_last
    press(welcome, "Only this computer for now")
    assert away.went == [navigation.COMPUTER]
    away.services.preferences.forget(ROLE_KEY)


def test_it_can_be_left_at_once_and_seen_again(away: Desk, window: QMainWindow) -> None:
    press(begun(away, window), "Skip the setup")
    assert away.went == [navigation.CHAT]
    assert away.services.preferences.flag(DONE_KEY)
    again = begun(away, window)
    assert isinstance(again.step, FirstPage)
    window.resize(1000, 640)
    assert again.size() == window.size()
    press(again, "Skip the setup")


def test_everything_has_a_name_and_the_keyboard_reaches_it(away: Desk, window: QMainWindow) -> None:
    welcome = begun(away, window)
    for _ in range(PAGES):
        for widget in welcome.step.findChildren(QWidget):
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
                assert widget.accessibleName() or getattr(widget, "text", str)(), widget
        if not welcome.is_last:
            welcome.show_next()
    assert welcome.is_last
    welcome.end()


def test_a_role_that_the_keyboard_reaches_has_one_ring(qtbot: QtBot, away: Desk, window: QMainWindow) -> None:
    welcome = begun(away, window)
    page = first_page(welcome)
    card = page.role.both.parentWidget()
    while card is not None and not card.property("role"):
        card = card.parentWidget()
    assert card is not None
    page.role.both.setFocus(Qt.FocusReason.TabFocusReason)
    assert card.property("role") == "option-chosen-focused"
    page.name.field.setFocus()
    assert card.property("role") == "option-chosen"
    page.role.both.setFocus(Qt.FocusReason.MouseFocusReason)
    assert card.property("role") == "option-chosen", "whoever clicked knows where"
    welcome.end()


def test_its_mark_follows_the_palette(away: Desk, window: QMainWindow) -> None:
    theme = away.services.theme
    made = begun(away, window)
    light = made._mark.pixmap().toImage()
    theme.choose(Scheme.DARK, 1.0)
    assert made._mark.pixmap().toImage() != light
    theme.choose(Scheme.LIGHT, 1.0)
    assert made._mark.pixmap().toImage() == light


def test_looking_for_updates_is_offered_off_and_only_where_somebody_can_be_asked(qtbot: QtBot, at_lone: Desk) -> None:
    page = FirstPage(at_lone.services)
    qtbot.addWidget(page)
    page.more.open()
    page.show()
    page.entered()
    daily = page.updates
    daily.show_state(convert({"place": None, "daily": False}, computer.Updates))
    assert daily.isHidden()
    page.cancel()  # the node's own answer comes no more
    daily.show_state(convert({"place": "api.github.com/someone/poolhouse", "daily": False}, computer.Updates))
    assert not daily.isHidden()
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
