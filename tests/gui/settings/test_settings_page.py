"""The page Settings: found by search, changed, seen at once, and back to its defaults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFrame, QLabel, QLayoutItem, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from app import __version__
from app.api import computer
from app.core.errors import AppError
from app.decoding import convert
from app.gui.app.preferences import ENTER, TEXT_SCALE, new_chat_defaults, sampling, sends_with_enter, system_message
from app.gui.look import sizes
from app.gui.look.theme import Scheme
from app.gui.settings.about import About, TextDialog, libraries, license_text
from app.gui.settings.advanced import Advanced, last_lines
from app.gui.settings.chat import Chat
from app.gui.settings.general import General
from app.gui.settings.household import Household
from app.gui.settings.network import Network
from app.gui.settings.privacy import Privacy
from app.gui.settings.settings_group import Setting, SettingsGroup
from app.gui.settings.settings_page import ENTRIES, SettingsPage
from app.gui.settings.updates import InstallAnywayDialog, Updates
from app.gui.this_computer.rule_controls import AutostartSwitch
from app.gui.widgets.fold import Fold
from app.gui.widgets.scroll_area import ScrollArea
from tests.gui.desk import Desk

MOST_PAST_IT = 48


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> SettingsPage:
    made = SettingsPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.show()
    made.shown()
    return made


def test_its_pages_are_made_one_after_another(qtbot: QtBot, away: Desk) -> None:
    """All of them at once would hold the window when Settings is first opened."""
    page = SettingsPage(away.services)
    qtbot.addWidget(page)
    page.finish()
    assert [type(group) for group in page.findChildren(SettingsGroup)] == [General]
    named = [page.list.item(number).text() for number in range(page.list.count())]
    page.open("Privacy")
    assert isinstance(page.group, Privacy)
    assert len(page.findChildren(SettingsGroup)) == 2
    page.shown()
    qtbot.waitUntil(lambda: len(page.findChildren(SettingsGroup)) == len(ENTRIES), timeout=5000)
    assert [group.title for group in page.groups] == named
    assert [type(group).__name__ for group in page.groups] == [entry.name for entry in ENTRIES]
    inner = page.group.parentWidget()
    box = inner.layout() if inner is not None else None
    assert box is not None
    places = [box.indexOf(group) for group in page.groups]
    assert places == sorted(places)


def visible(page: SettingsPage) -> list[str]:
    return [setting.title.text() for setting in page.findChildren(Setting) if setting.isVisible()]


def test_a_page_ends_with_its_last_card(qtbot: QtBot, page: SettingsPage) -> None:
    view = page.findChild(ScrollArea)
    assert view is not None
    body, group = view.widget(), page.group
    assert body is not None
    cards = [frame for frame in group.findChildren(QFrame) if frame.property("role") == "card"]
    end = max(card.mapTo(body, card.rect().bottomLeft()).y() for card in cards)
    page.resize(page.width(), page.height() - view.height() + end + MOST_PAST_IT)
    qtbot.wait(50)
    assert isinstance(group, General)
    assert view.verticalScrollBar().maximum() == 0
    page.resize(page.width(), page.height() // 2)
    qtbot.wait(50)
    assert 0 < body.height() - end <= MOST_PAST_IT


def test_headings_stand_at_one_height_and_rows_at_one_distance(page: SettingsPage) -> None:
    """The cases cover headings with a button and without, and controls with text above and without."""
    heights, above = set(), set()
    for number, group in enumerate(page.groups):
        page.list.setCurrentRow(number)
        QApplication.processEvents()
        heights.add(group.heading.mapTo(group, group.heading.rect().center()).y())
        bare = [setting for setting in group.findChildren(Setting) if not setting.title.text()]
        above |= {item.geometry().top() for setting in bare if (item := _first(setting)) is not None}
    assert max(heights) - min(heights) <= 1
    assert above == {sizes.S}


def _first(setting: Setting) -> QLayoutItem | None:
    """Return the first visible child."""
    box = setting.layout()
    assert box is not None
    items = [item for n in range(box.count()) if (item := box.itemAt(n)) is not None]
    return next((item for item in items if not item.isEmpty() and setting.isVisible()), None)


def test_before_a_node_is_there_nothing_is_said_to_have_failed(qtbot: QtBot, away: Desk) -> None:
    page = SettingsPage(away.services)
    qtbot.addWidget(page)
    page.show()
    for number, group in enumerate(page.groups):
        page.list.setCurrentRow(number)
        group.refresh()
        qtbot.wait(1)
        assert not page.notice.sentence, group.title
    autostart = page.findChild(AutostartSwitch)
    assert autostart is not None
    assert "without opening its window" in autostart.words.text()
    assert not autostart.switch.isEnabled()


def test_a_search_finds_settings_of_all_pages(page: SettingsPage) -> None:
    page.search.setText("KEY")
    assert {"Key of this machine", "Send with"} <= set(visible(page))
    page.search.setText("dark")
    assert visible(page) == ["Theme"]
    page.search.setText("no such thing")
    assert not visible(page)
    assert page.nothing.isVisible()
    page.search.clear()
    assert "Language" in visible(page)
    page.search.setText("port")
    page.list.setCurrentRow(8)  # choosing a page ends the search
    assert page.search.text() == ""
    assert isinstance(page.group, Privacy)


def test_the_look_changes_at_once_and_goes_back(qtbot: QtBot, page: SettingsPage) -> None:
    services, general = page.services, page.group
    assert isinstance(general, General)
    general.scheme.show_value("dark")
    general.scheme.activated.emit(0)
    assert services.theme.is_dark
    assert services.preferences.scheme is Scheme.DARK
    general.scale.show_value("150")
    general.scale.activated.emit(0)
    assert services.theme.scale == services.preferences.text_scale == 1.5
    services.preferences.keep(TEXT_SCALE, 1.2)  # as by a key
    services.theme.choose(services.theme.scheme, 1.2)
    assert general.scale.value == "120"
    general.motion.show_value("always")
    general.motion.activated.emit(0)
    assert services.motion.still
    general.reset()
    assert (services.theme.scheme, services.theme.scale) == (Scheme.SYSTEM, 1.0)
    assert (services.motion.wish, services.motion.still) == ("", False)
    assert general.motion.value == ""


def test_chat_defaults_are_kept_within_their_range(page: SettingsPage) -> None:
    page.open("Chat")
    chat, preferences = page.group, page.services.preferences
    assert isinstance(chat, Chat)
    chat.numbers["temperature"].setValue(0.3)
    chat.system.setPlainText("Answer in German.")
    assert sampling(preferences)["temperature"] == 0.3
    assert sampling(preferences)["top_k"] == 40
    assert system_message(preferences) == "Answer in German."
    assert new_chat_defaults(preferences) == ("Answer in German.", {"temperature": 0.3})
    preferences.keep("chat/top_p", "17")
    assert sampling(preferences)["top_p"] == 1.0
    chat.reset()
    assert sampling(preferences)["temperature"] == 0.8
    assert system_message(preferences) == ""
    assert sends_with_enter(preferences)
    assert chat.send.value == ENTER


def test_the_network_page_saves_on_the_node(qtbot: QtBot, page: SettingsPage, at_lone: Desk) -> None:
    page.open("Network")
    network, home = page.group, at_lone.services.launcher.home
    assert isinstance(network, Network)
    qtbot.waitUntil(lambda: network.port.value() > 0, timeout=5000)
    assert network.name.text() == "den"
    network.name.setFocus()
    QTest.keyClicks(network.name, "s")
    network.name.clearFocus()
    at_lone.services.pool.changed.emit()  # news, before it is saved
    assert network.name.text() == "dens"
    network.name.setText("")
    assert network.name.problem.isVisibleTo(network)
    network.name.setText("den")
    assert not network.port.isEnabled()  # the node was told its port when it was started
    QTest.mouseClick(network.discovery, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "discovery" in _saved(home), timeout=5000)
    network.reset()
    qtbot.waitUntil(lambda: "discovery" not in _saved(home), timeout=5000)
    qtbot.waitUntil(network.discovery.isChecked, timeout=5000)


def test_the_household_lists_its_machines_and_where_the_key_is(qtbot: QtBot, page: SettingsPage) -> None:
    page.open("Household")
    household = page.group
    assert isinstance(household, Household)
    qtbot.waitUntil(lambda: household.where.text() == "In a file only you can read", timeout=5000)


def test_advanced_shows_the_log_also_without_a_node(qtbot: QtBot, away: Desk, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "node.log").write_text(
        'one\n{"time":"2026-01-02T03:04:05.678Z","level":"INFO","logger":"app","message":"two"}\n'
    )
    made = Advanced(away.services)
    qtbot.addWidget(made)
    made.refresh()
    assert made.log.toPlainText() == "one\n2026-01-02 03:04:05.678 INFO app: two\n"
    assert last_lines(tmp_path / "nothing") == ""


def test_about_lists_every_library_with_its_license(qtbot: QtBot, page: SettingsPage) -> None:
    page.open("About")
    about = page.group
    assert isinstance(about, About)
    qtbot.waitUntil(lambda: about.list.topLevelItemCount() > 10, timeout=10_000)
    result = {library.name.lower().replace("_", "-"): library for library in libraries()}
    assert {"pyside6-essentials", "aiohttp", "numpy"} <= set(result)
    assert "LGPL" in result["pyside6-essentials"].license
    assert "pytest" not in result
    assert all(library.version and library.license for library in result.values())
    assert "Apache" in license_text("aiohttp")
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in license_text("PySide6-Essentials")


def test_everything_has_a_name(page: SettingsPage) -> None:
    for number in range(page.list.count()):
        page.list.setCurrentRow(number)
        for widget in page.findChildren(QWidget):
            if not (widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible()):
                continue
            inner = isinstance(widget.parentWidget(), QAbstractScrollArea)
            named = widget.accessibleName() or getattr(widget, "text", str)()
            assert inner or named or _is_part(widget), (page.group.title, widget)


def _is_part(widget: QWidget) -> bool:
    """The line edit inside a spin box is named by the box."""
    return widget.objectName().startswith("qt_")


def _saved(home: Path) -> dict[str, object]:
    data: dict[str, object] = json.loads((home / "settings.json").read_text())
    return data


def test_updates_says_what_is_here_and_asks_nobody(qtbot: QtBot, page: SettingsPage) -> None:
    page.open("Updates")
    group = page.group
    assert isinstance(group, Updates)
    qtbot.waitUntil(lambda: "llama.cpp" in group.engine.text(), timeout=5000)
    assert group.others.text() == "None yet"
    assert "Poolhouse can't check for updates" in visible(page)
    assert not group.check.isVisible()
    group._show_changes()
    dialog = page.window().findChild(TextDialog)
    assert dialog is not None
    view = dialog.findChild(QPlainTextEdit)
    assert view is not None
    assert __version__ in view.toPlainText()
    dialog.accept()


def test_a_copy_without_its_list_of_changes_says_so(
    qtbot: QtBot, at_lone: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.settings.updates.CHANGES", tmp_path / "CHANGELOG.md")
    group = Updates(at_lone.services)
    qtbot.addWidget(group)
    assert any("doesn't include the list" in label.text() for label in group.findChildren(QLabel))


def test_a_newer_version_is_shown_and_installed_where_a_place_is_named(
    qtbot: QtBot, page: SettingsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.open("Updates")
    group = page.group
    assert isinstance(group, Updates)
    qtbot.waitUntil(lambda: "llama.cpp" in group.engine.text(), timeout=5000)
    monkeypatch.setattr(group._poll, "start", lambda: None)  # the node of the test has no updates
    known = {"place": "updates.example.org", "daily": True, "own": __version__, "can_install": True}

    def tell(**facts: object) -> None:
        group._tell(convert(known | facts, computer.Updates))

    tell()
    assert group.check.isVisible()
    assert not group.install.isVisible()
    assert "Poolhouse can't check for updates" not in visible(page)
    assert "Install from a folder" in visible(page)
    assert (group.newest.text(), group.daily.isChecked()) == ("Not checked yet", True)
    then = 1_700_000_000.0
    tell(last_contact=then)
    assert group.newest.text().startswith("No version has been published yet")
    tell(last_contact=then, version=__version__)
    assert group.newest.text().startswith("You have the newest version")
    caution = {"code": "update_others_first", "facts": {"machines": "attic", "version": "9"}}
    newer = {"last_contact": then, "version": "9", "newer": True, "download_bytes": 5 << 20, "changes": "- Better."}
    tell(**newer, staged=True, warning_facts=caution)
    assert group.newest.text() == "9 is available"
    assert group.install.isVisible()
    assert group.news.isVisible()
    about = group._new.about.text()
    assert "5.0 MiB to download" in about
    assert "released gradually" in about
    assert "attic can't share models" in about
    tell(**newer, phase="downloading", done_bytes=1 << 20, total_bytes=4 << 20)
    assert not group.install.isVisible()
    assert group.stop.isVisible()
    assert group.bar.value() == group.bar.maximum() // 4
    tell(**newer, phase="installing")
    assert not group.bar.is_known
    tell(**newer, ready="9", previous=__version__)
    assert group.restart.isVisible()
    assert group.back.isVisible()
    assert not group.install.isVisible()


def test_a_failed_update_and_a_version_that_did_not_start_are_told(qtbot: QtBot, page: SettingsPage) -> None:
    page.open("Updates")
    group = page.group
    assert isinstance(group, Updates)
    qtbot.waitUntil(lambda: "runs from its source code" in group._cannot.about.text(), timeout=5000)
    assert "To update" in visible(page)
    failed = {"code": "update_wrong_key", "facts": {"place": "/media/stick"}}
    why = {"code": "update_start_ended", "facts": {"code": 3}}
    notice = {"code": "update_rolled_back", "facts": {"version": "9", "own": __version__, "why": why}}
    group._tell(convert({"can_install": True, "error_facts": failed, "notice_facts": notice}, computer.Updates))
    assert "not signed by the publisher" in page.notice.sentence
    assert "An update didn't start" in visible(page)
    assert "it stopped with code 3" in group._notice.about.text()
    assert "household, chats and models are unchanged" in group._notice.about.text()


def test_an_update_that_others_do_not_understand_is_asked_about(
    qtbot: QtBot, page: SettingsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.open("Updates")
    group = page.group
    assert isinstance(group, Updates)
    qtbot.waitUntil(lambda: "runs from its source code" in group._cannot.about.text(), timeout=5000)
    sent: list[object] = []
    monkeypatch.setattr(group, "ask", lambda method, path, tell, body=None, **_: sent.append((path, body)))
    group._install_folder("/media/stick")
    caution = {"code": "update_others_first", "facts": {"machines": "attic", "version": "9"}}
    refused = convert({"can_install": True, "error_facts": caution}, computer.Updates)
    group._tell(refused)
    dialog = page.window().findChild(InstallAnywayDialog)
    assert dialog is not None
    assert any("attic can't share models" in label.text() for label in dialog.findChildren(QLabel))
    dialog.act.click()
    assert sent == [
        ("/updates/install", {"path": "/media/stick", "anyway": False}),
        ("/updates/install", {"path": "/media/stick", "anyway": True}),
    ]


def test_who_was_asked_to_update_is_told(page: SettingsPage) -> None:
    page.open("Updates")
    group = page.group
    assert isinstance(group, Updates)
    machines = [computer.AskedMachine("attic", "asked"), computer.AskedMachine("cellar", "settled")]
    group._tell_asked(computer.AskedMachines([*machines, computer.AskedMachine("shed")], "9"))
    words = page.notice.sentence
    assert "Asked to install 9: attic." in words
    assert "Already updated to 9, or declined by the owner: cellar." in words
    assert "can't be asked, so update them by hand: shed." in words


def test_a_restart_closes_the_window_for_the_new_version(
    qtbot: QtBot, page: SettingsPage, at_lone: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    quits: list[bool] = []
    monkeypatch.setattr("app.gui.settings.updates.QCoreApplication.quit", lambda: quits.append(True))
    page.open("Updates")
    group = page.group
    assert isinstance(group, Updates)
    group._quit()
    assert quits == [True]
    assert getattr(at_lone.services.launcher, "restarts", False)


def test_a_mistake_of_ours_has_its_details_here_too(page: SettingsPage) -> None:
    page.group.fail(AppError("bug", what="KeyError, node.py:1"))
    assert page.notice.sentence.startswith("Something went wrong inside Poolhouse")
    assert len(page.notice.findChildren(Fold)) == 1
