"""The pages of Settings, in the order of their list. Each is made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from app.gui.app.app_context import AppContext
from app.gui.settings.settings_group import Group

ADVANCED = "Advanced"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the list. `name` is also that of the class."""

    name: str
    words: object  # translated when shown
    icon: str
    make: Callable[[AppContext], Group]

    @property
    def title(self) -> str:
        return QCoreApplication.translate(self.name, str(self.words))


def _general(services: AppContext) -> Group:
    from app.gui.settings.general import General

    return General(services)


def _network(services: AppContext) -> Group:
    from app.gui.settings.network import Network

    return Network(services)


def _household(services: AppContext) -> Group:
    from app.gui.settings.household import Household

    return Household(services)


def _models(services: AppContext) -> Group:
    from app.gui.settings.models import Models

    return Models(services)


def _chat(services: AppContext) -> Group:
    from app.gui.settings.chat import Chat

    return Chat(services)


def _local_api(services: AppContext) -> Group:
    from app.gui.settings.api.local_api import LocalApi

    return LocalApi(services)


def _privacy(services: AppContext) -> Group:
    from app.gui.settings.privacy import Privacy

    return Privacy(services)


def _updates(services: AppContext) -> Group:
    from app.gui.settings.updates import Updates

    return Updates(services)


def _advanced(services: AppContext) -> Group:
    from app.gui.settings.advanced import Advanced

    return Advanced(services)


def _about(services: AppContext) -> Group:
    from app.gui.settings.about import About

    return About(services)


ENTRIES = (
    Entry("General", QT_TRANSLATE_NOOP("General", "General"), "settings", _general),
    Entry("Network", QT_TRANSLATE_NOOP("Network", "Network"), "link", _network),
    Entry("Household", QT_TRANSLATE_NOOP("Household", "Household"), "pool", _household),
    Entry("Models", QT_TRANSLATE_NOOP("Models", "Models"), "models", _models),
    Entry("Chat", QT_TRANSLATE_NOOP("Chat", "Chat"), "chat", _chat),
    Entry("LocalApi", QT_TRANSLATE_NOOP("LocalApi", "Local API"), "cable", _local_api),
    Entry("Privacy", QT_TRANSLATE_NOOP("Privacy", "Privacy"), "key", _privacy),
    Entry("Updates", QT_TRANSLATE_NOOP("Updates", "Updates"), "refresh", _updates),
    Entry(ADVANCED, QT_TRANSLATE_NOOP("Advanced", "Advanced"), "activity", _advanced),
    Entry("About", QT_TRANSLATE_NOOP("About", "About"), "info", _about),
)
