"""The pages of the window in the order of the sidebar. Each is created when it is first shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from app.gui.app.app_context import AppContext
from app.gui.app.page import Page
from app.gui.app.page_names import ACTIVITY, CHAT, COMPUTER, MODELS, POOL, SETTINGS


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the sidebar."""

    name: str
    words: object  # translated when shown
    icon: str
    make: Callable[[AppContext], Page]

    @property
    def title(self) -> str:
        return QCoreApplication.translate("Sidebar", str(self.words))


def _pool(services: AppContext) -> Page:
    from app.gui.pool.pool_page import PoolPage

    return PoolPage(services)


def _chat(services: AppContext) -> Page:
    from app.gui.chat.chat_page import ChatPage

    return ChatPage(services)


def _shelf(services: AppContext) -> Page:
    from app.gui.models.models_page import ModelsPage

    return ModelsPage(services)


def _activity(services: AppContext) -> Page:
    from app.gui.activity.activity_page import ActivityPage

    return ActivityPage(services)


def _computer(services: AppContext) -> Page:
    from app.gui.this_computer.computer_page import ComputerPage

    return ComputerPage(services)


def _settings(services: AppContext) -> Page:
    from app.gui.settings.settings_page import SettingsPage

    return SettingsPage(services)


ENTRIES = (
    Entry(POOL, QT_TRANSLATE_NOOP("Sidebar", "Pool"), "pool", _pool),
    Entry(CHAT, QT_TRANSLATE_NOOP("Sidebar", "Chat"), "chat", _chat),
    Entry(MODELS, QT_TRANSLATE_NOOP("Sidebar", "Models"), "models", _shelf),
    Entry(ACTIVITY, QT_TRANSLATE_NOOP("Sidebar", "Activity"), "activity", _activity),
    Entry(COMPUTER, QT_TRANSLATE_NOOP("Sidebar", "This computer"), "computer", _computer),
    Entry(SETTINGS, QT_TRANSLATE_NOOP("Sidebar", "Settings"), "settings", _settings),
)
