"""Where in the window something is mended: by the code of what is wrong, the page and the words of its button."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QLocale, QTime

from app import __version__
from app.core.errors import AppError, Reason
from app.gui.look.sentences import fact_here, last_words

Action = tuple[str, Callable[[], object]]
CHAT_ID_PREFIX = "at/"  # before the id of a chat, where it is the part of a page


def chat_address(chat: str) -> str:
    """The page Chat, at this chat."""
    return f"chat/{CHAT_ID_PREFIX}{chat}"


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """`page`: the name of a page of the window, with a part of it after a slash."""

    page: str
    words: object  # translated when shown


UPDATES = ErrorPage("settings/Updates", QT_TRANSLATE_NOOP("Places", "How to update"))
NETWORK = ErrorPage("settings/Network", QT_TRANSLATE_NOOP("Places", "Open Settings, Network"))
LOG_PAGE = "settings/Advanced"  # what the node wrote
MODELS = ErrorPage("settings/Models", QT_TRANSLATE_NOOP("Places", "Open Settings, Models"))
COMPUTER = ErrorPage("computer", QT_TRANSLATE_NOOP("Places", "Open This computer"))
ERROR_PAGES = {
    "version_differs": UPDATES,
    "protocol_differs": UPDATES,
    "discovery_off": NETWORK,
    "virtual_chosen": NETWORK,
    "models_folder_away": MODELS,
    "models_folder_other": MODELS,
    "models_folder_unusable": MODELS,
    "disk_low": MODELS,
    "lends_nothing": COMPUTER,
}

# Poolhouse's own mistakes: nothing of a person's mends them
INTERNAL_ERRORS = ("bug", "node_fault", "pipeline_fault")


def log_button_text() -> str:
    return QCoreApplication.translate("Places", "Show its log")


def technical_details(error: AppError) -> str:
    """What is known of a mistake of ours, with the moment, by which the log has it; the last words of an engine.

    Empty for any other error.
    """
    found = reason_details(error.reason)
    if not found or error.reason.code not in INTERNAL_ERRORS:
        return found
    return f"{found} · {QLocale().toString(QTime.currentTime(), 'HH:mm:ss')}"


def reason_details(reason: Reason) -> str:
    """The same of what was some time ago."""
    if reason.code not in INTERNAL_ERRORS:
        return last_words(reason)
    facts = " ".join(fact_here(name, str(fact)) for name, fact in reason.facts.items())
    return " · ".join(filter(None, (reason.code, facts, f"Poolhouse {__version__}")))


def page_actions(code: str, go: Callable[[str], object]) -> list[Action]:
    """The button that leads there; none where no page mends it."""
    found = ERROR_PAGES.get(code)
    if found is None:
        return []
    page = found.page
    return [(QCoreApplication.translate("Places", str(found.words)), lambda: go(page))]
