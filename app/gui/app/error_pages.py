"""The pages of the window where errors can be fixed, by error code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QLocale, QTime

from app import __version__
from app.core.errors import AppError, Reason
from app.gui.look.sentences import fact_text, last_words

Action = tuple[str, Callable[[], object]]
CHAT_ID_PREFIX = "at/"  # before the id of a chat, where it is the part of a page


def chat_address(chat: str) -> str:
    """Return the address of a chat on the page Chat."""
    return f"chat/{CHAT_ID_PREFIX}{chat}"


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """A page of the window, with a part of it after a slash, and the text of the button that opens it."""

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

# Errors of Poolhouse itself, which a person cannot fix.
INTERNAL_ERRORS = ("bug", "node_fault", "pipeline_fault")


def log_button_text() -> str:
    return QCoreApplication.translate("Places", "Show its log")


def technical_details(error: AppError) -> str:
    """Return technical details of an internal error with the time, to find it in the log, or an engine's last output.

    Empty for any other error.
    """
    details = reason_details(error.reason)
    if not details or error.reason.code not in INTERNAL_ERRORS:
        return details
    return f"{details} · {QLocale().toString(QTime.currentTime(), 'HH:mm:ss')}"


def reason_details(reason: Reason) -> str:
    """Return the same without the time, for an error in the past."""
    if reason.code not in INTERNAL_ERRORS:
        return last_words(reason)
    facts = " ".join(map(fact_text, reason.facts.values()))
    return " · ".join(filter(None, (reason.code, facts, f"Poolhouse {__version__}")))


def page_actions(code: str, go: Callable[[str], object]) -> list[Action]:
    """Return the button that opens the page; none if no page fixes the error."""
    error_page = ERROR_PAGES.get(code)
    if error_page is None:
        return []
    page = error_page.page
    return [(QCoreApplication.translate("Places", str(error_page.words)), lambda: go(page))]
