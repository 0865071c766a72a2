"""Navigation in the window: page addresses, and the pages on which errors can be fixed.

An address names a page and, optionally, one of its sections, such as `settings/Network`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QLocale, QTime

from app import __version__
from app.core.errors import AppError, Reason
from app.gui.look.sentences import fact_text, last_words

# Pages
POOL, CHAT, MODELS, ACTIVITY = "pool", "chat", "models", "activity"
COMPUTER, SETTINGS = "computer", "settings"

LOG_PAGE = "settings/Advanced"  # the settings section from which the node's log can be opened
CHAT_ID_PREFIX = "at/"  # precedes the ID of a chat in an address

Action = tuple[str, Callable[[], object]]


def chat_address(chat: str) -> str:
    return f"{CHAT}/{CHAT_ID_PREFIX}{chat}"


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """The address of the page on which an error can be fixed, and the label of the button that opens it."""

    page: str
    button: object  # translated when shown


_UPDATES = ErrorPage("settings/Updates", QT_TRANSLATE_NOOP("Places", "How to update"))
_NETWORK = ErrorPage("settings/Network", QT_TRANSLATE_NOOP("Places", "Open Settings > Network"))
_MODELS_FOLDER = ErrorPage("settings/Models", QT_TRANSLATE_NOOP("Places", "Open Settings > Models"))
_THIS_COMPUTER = ErrorPage(COMPUTER, QT_TRANSLATE_NOOP("Places", "Open This computer"))
ERROR_PAGES = {
    "version_differs": _UPDATES,
    "protocol_differs": _UPDATES,
    "discovery_off": _NETWORK,
    "virtual_chosen": _NETWORK,
    "models_folder_away": _MODELS_FOLDER,
    "models_folder_other": _MODELS_FOLDER,
    "models_folder_unusable": _MODELS_FOLDER,
    "disk_low": _MODELS_FOLDER,
    "lends_nothing": _THIS_COMPUTER,
}

# Errors of Poolhouse itself, which the user cannot fix
INTERNAL_ERRORS = ("bug", "node_fault", "pipeline_fault")


def log_button_text() -> str:
    return QCoreApplication.translate("Places", "Show log")


def technical_details(error: AppError) -> str:
    """Return the details of an internal error, or the last output of an engine that crashed.

    An internal error's details include the time, so that it can be found in the log. Returns "" for other errors.
    """
    details = reason_details(error.reason)
    if not details or error.reason.code not in INTERNAL_ERRORS:
        return details
    return f"{details} · {QLocale().toString(QTime.currentTime(), 'HH:mm:ss')}"


def reason_details(reason: Reason) -> str:
    """Return the same details as `technical_details`, but without the time. Use this for past errors."""
    if reason.code not in INTERNAL_ERRORS:
        return last_words(reason)
    facts = " ".join(map(fact_text, reason.facts.values()))
    return " · ".join(filter(None, (reason.code, facts, f"Poolhouse {__version__}")))


def page_actions(code: str, go: Callable[[str], object]) -> list[Action]:
    """Return a button that opens the page on which the error can be fixed, or no button if there is no such page."""
    error_page = ERROR_PAGES.get(code)
    if error_page is None:
        return []
    page = error_page.page
    return [(QCoreApplication.translate("Places", str(error_page.button)), lambda: go(page))]
