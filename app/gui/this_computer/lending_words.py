"""What lending does now, in the words of this machine's owner."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from app.gui.look import formats
from app.gui.look.sentences import here

Json = dict[str, Any]

BY_HAND = ("pause_owner", "pause_stopped")  # reasons of a pause that a person began

NO_ROLE = "lend_no_role"
QUIT = "pause_quit"  # its sentence is for the other machines


def is_by_hand(lending: Json) -> bool:
    """Whether a person paused it, so that a person resumes it."""
    return lending.get("code") in BY_HAND and lending.get("state") in ("paused", "draining")


def may_not(lending: Json) -> bool:
    """Whether the household does not let this machine lend: then it is no pause that ends."""
    return lending.get("code") == NO_ROLE and lending.get("state") != "draining"


def state_sentence(lending: Json, away: Collection[str] = ()) -> str:
    """The state with its reason, as `GET /status` has it under `node.lending`. away: names of machines that are not
    there: what they hold here waits for their return."""
    tr = QCoreApplication.translate
    size = formats.size
    match lending.get("state"):
        case "lending" if lending.get("used_by") and set(lending["used_by"]) <= set(away):
            text = tr("Lending", "Keeping {size} for {names} to come back, for 10 minutes.")
            return text.format(size=size(lending.get("used_bytes") or 0), names=users(lending))
        case "working" | "lending":
            text = tr("Lending", "Lending {size} to {names}.")
            return text.format(size=size(lending.get("used_bytes") or 0), names=users(lending))
        case "ready" | "paused" if may_not(lending):
            return tr("Lending", "Your household does not let this machine lend.")
        case "ready":
            text = tr("Lending", "Ready. Others may use {size}.")
            return text.format(size=size(lending.get("lent_bytes") or 0))
        case "draining":
            text = tr("Lending", "Finishing one answer, then pausing (at most {time}).")
            said = text.format(time=formats.whole_seconds(max(1, lending.get("gives_back_in_s") or 0)))
            is_plain = is_by_hand(lending) or lending.get("code") == QUIT
            why = "" if is_plain else here(str(lending.get("reason") or ""))
            return f"{said} {why}".rstrip()
        case "paused" if is_by_hand(lending):
            return _by_hand(lending)
        case "paused" if lending.get("code") == QUIT:
            return tr("Lending", "Nothing is lent now.")
        case "off":
            return tr("Lending", "Turned off. Nothing of this machine is lent.")
    return here(str(lending.get("reason") or "")) or str(tr("Lending", "Nothing is lent now."))


def users(lending: Json) -> str:
    """Who has layers here, by name."""
    names = [str(name) for name in lending.get("used_by") or []]
    return ", ".join(names) or QCoreApplication.translate("Lending", "another machine")


def since(lending: Json) -> str:
    """Since when it is so; with the day where that was not today. Empty when the node does not say."""
    if not lending.get("since"):
        return ""
    at = QDateTime.fromSecsSinceEpoch(int(lending["since"]))
    today = at.date() == QDateTime.currentDateTime().date()
    short = QLocale.FormatType.ShortFormat
    shown = QLocale().toString(at.time() if today else at, short)
    return QCoreApplication.translate("Lending", "Since {time}").format(time=shown)


def state_word(state: str) -> str:
    """A machine's state in one word, for lists."""
    tr = QCoreApplication.translate
    known = {
        "ready": tr("Lending", "ready"),
        "lending": tr("Lending", "lending"),
        "working": tr("Lending", "working"),
        "loaded": tr("Lending", "loaded"),
        "draining": tr("Lending", "pausing"),
        "paused": tr("Lending", "paused"),
        "offline": tr("Lending", "offline"),
        "off": tr("Lending", "lends nothing"),
        "guest": tr("Lending", "guest"),
        "user": tr("Lending", "uses models"),
    }
    return known.get(state, state)


def _by_hand(lending: Json) -> str:
    tr = QCoreApplication.translate
    left_s = lending.get("resumes_in_s")
    if left_s is None:
        if lending.get("code") == "pause_stopped":
            return tr("Lending", "Stopped by you until you resume it.")
        return tr("Lending", "Paused by you until you resume it.")
    until = QDateTime.currentDateTime().addSecs(int(left_s))
    shown = QLocale().toString(until.time(), QLocale.FormatType.ShortFormat)
    return tr("Lending", "Paused by you until {time}.").format(time=shown)
