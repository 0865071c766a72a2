"""Another language is there at once: the window is made anew, and nothing that a person wrote is lost."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.gui.app.application import Application
from app.gui.app.preferences import Preferences
from app.gui.chat.chat_page import ChatPage
from app.gui.look.language import LANGUAGE
from app.gui.models.models_page import ModelsPage
from app.gui.pool.pool_page import PoolPage
from app.gui.settings.general import General
from app.gui.settings.settings_page import SettingsPage
from tests.gui.desk import Attached
from tests.gui.speaking import unchanged
from tests.node.pool import TestNode

FILE = {"name": "notes.txt", "text": "two words"}


@pytest.fixture
def app(qtbot: QtBot, qapp: QApplication, lone: TestNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    """A window in English, at the first group of the settings."""
    monkeypatch.setattr(qapp, "exit", lambda: None)
    folder = lone.root / "window"
    folder.mkdir(exist_ok=True)
    preferences = Preferences(folder)
    preferences.keep("first_run/done", True)
    preferences.keep(LANGUAGE, "en")
    with unchanged(qapp):
        made = Application(qapp, Attached(lone.root))
        qtbot.waitUntil(lambda: made.services.pool.is_there)
        made.window.go("settings/General")
        made.window.page("settings")
        yield made
        made.quit()
        made.services.lock.close()
        made.window.end()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def choose(app: Application, language: str) -> General:
    """Choose a language as a person does, in the list of the settings."""
    page = app.window.page("settings")
    assert isinstance(page, SettingsPage)
    general = page.group
    assert isinstance(general, General)
    general.language.setFocus()
    general.language.show_value(language)
    general.language.activated.emit(general.language.currentIndex())
    return general


@pytest.mark.long
def test_the_window_speaks_it_at_once_at_the_same_place(qtbot: QtBot, app: Application) -> None:
    before, tray = app.window, app.tray
    before.resize(before.minimumWidth(), 707)  # the tests' screen is small
    size = before.size()
    choose(app, "de")
    qtbot.waitUntil(lambda: app.window is not before)
    assert app.window.place == "settings/General"
    assert app.window.page("settings").title.text() == "Einstellungen"
    assert app.window.size() == size
    general = app.window.page("settings")
    assert isinstance(general, SettingsPage)
    assert isinstance(general.group, General)
    assert app.window.focusWidget() is general.group.language
    assert app.window.isVisible()
    qtbot.waitUntil(lambda: not shiboken6.isValid(before))
    assert not shiboken6.isValid(tray)
    assert app.tray.menu.open.text() == "Poolhouse öffnen"
    app._single.show.emit()  # a second start shows the window of now


def test_what_was_typed_is_there_still(qtbot: QtBot, app: Application) -> None:
    app.window.go("chat")
    chat = app.window.page("chat")
    assert isinstance(chat, ChatPage)
    chat.composer.field.setPlainText("half a question")
    chat.composer.show_draft("half a question", [FILE])
    chat.composer.edited.emit()
    app.window.go("models")
    models = app.window.page("models")
    assert isinstance(models, ModelsPage)
    models.list.search.setText("qwen")
    models.list.size_filter.setCurrentIndex(2)
    before, shown = app.window, chat.chat.id
    app.window.go("settings/General")
    choose(app, "de")
    qtbot.waitUntil(lambda: app.window is not before)
    app.window.go("chat")
    again = app.window.page("chat")
    assert isinstance(again, ChatPage)
    assert again is not chat
    assert again.chat.id == shown
    assert again.composer.text == "half a question"
    assert again.composer.files == [FILE]
    app.window.go("models")
    models = app.window.page("models")
    assert isinstance(models, ModelsPage)
    assert models.list.search.text() == "qwen"
    assert models.list.size_filter.currentIndex() == 2

    assert "qwen" in models.list._online.text()
    assert models.list._online.isVisibleTo(models)


@pytest.mark.long
def test_what_the_pool_page_loads_goes_on(qtbot: QtBot, app: Application) -> None:
    app.window.go("pool")
    pool, before = app.window.page("pool"), app.window
    assert isinstance(pool, PoolPage)
    qtbot.waitUntil(lambda: bool(pool.load_forecast.model))
    pool.model_actions.load_again()
    app.window.go("settings/General")
    choose(app, "de")
    qtbot.wait(50)
    assert app.window is before
    qtbot.waitUntil(lambda: not pool.is_busy, timeout=60_000)
    qtbot.waitUntil(lambda: (app.services.pool.now.loaded and app.services.pool.now.loaded.state) == "ready")


def test_the_language_of_now_changes_nothing(qtbot: QtBot, app: Application) -> None:
    before = app.window
    choose(app, "en")
    qtbot.wait(50)
    assert app.window is before
    assert not before.page("settings").notice.sentence


def test_nothing_of_the_window_before_stays(qtbot: QtBot, app: Application) -> None:
    for name in ("pool", "chat", "models", "activity", "computer"):
        app.window.go(name)
        app.window.page(name)
    app.window.go("settings/General")
    before = weakref.ref(app.window)
    pages = [weakref.ref(page) for page in app.window._pages.values()]
    choose(app, "de")
    qtbot.waitUntil(lambda: app.window is not before())
    services = app.services
    services.lock.history.changed.emit("")
    services.theme.changed.emit()
    services.pool.changed.emit()
    qtbot.waitUntil(lambda: gc.collect() >= 0 and before() is None)
    assert [page() for page in pages] == [None] * len(pages)


def test_what_is_not_finished_keeps_the_window(qtbot: QtBot, app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    before = app.window
    with monkeypatch.context() as patch:
        patch.setattr(SettingsPage, "is_busy", True)
        general = choose(app, "de")
    assert app.window is before
    assert "Finish what you have open" in before.page("settings").notice.sentence
    assert general.language.value == "en", "what the window speaks"
    choose(app, "de")
    qtbot.waitUntil(lambda: app.window is not before)


def test_what_is_said_over_every_page_is_said_on_in_the_other_language(qtbot: QtBot, app: Application) -> None:
    before = app.window
    app.services.pool.restarted.emit()
    choose(app, "de")
    qtbot.waitUntil(lambda: app.window is not before)
    assert app.window._told.sentence.startswith("Der Hintergrunddienst")
    details = next(button for button in app.window._told.findChildren(QPushButton))
    assert details.text() == "Details"
    details.click()
    assert app.window.place == "settings/Advanced"
