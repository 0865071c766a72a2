"""Words for what lending does now, for this machine's owner."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from app.api.lending import Lending
from app.gui.look import formats
from app.gui.look.sentences import said

BY_HAND = ("pause_owner", "pause_stopped")  # codes of pauses that a person began
NO_ROLE = "lend_no_role"
QUIT = "pause_quit"  # its sentence is for the other machines


def is_by_hand(lending: Lending) -> bool:
    """Return whether a person paused it, so that a person resumes it."""
    return lending.code in BY_HAND and lending.state in ("paused", "draining")


def may_not(lending: Lending) -> bool:
    """Return whether the household does not let this machine lend: then it is no pause that ends."""
    return lending.code == NO_ROLE and lending.state != "draining"


def state_sentence(lending: Lending, away: Collection[str] = ()) -> str:
    """Return the state with its reason. away: names of machines that are offline; what they hold here is kept."""
    size = formats.size
    match lending.state:
        case "lending" if lending.used_by and set(lending.used_by) <= set(away):
            text = _tr("Keeping {size} for {names} to come back, for 10 minutes.")
            return text.format(size=size(lending.used_bytes), names=users(lending))
        case "working" | "lending":
            return _tr("Lending {size} to {names}.").format(size=size(lending.used_bytes), names=users(lending))
        case "ready" | "paused" if may_not(lending):
            return _tr("Your household does not let this machine lend.")
        case "ready":
            return _tr("Ready. Others may use {size}.").format(size=size(lending.lent_bytes))
        case "draining":
            text = _tr("Finishing one answer, then pausing (at most {time}).")
            sentence = text.format(time=formats.whole_seconds(max(1, lending.gives_back_in_s or 0)))
            is_plain = is_by_hand(lending) or lending.code == QUIT or lending.reason_facts is None
            return sentence if is_plain else f"{sentence} {_reason(lending)}"
        case "paused" if is_by_hand(lending):
            return _paused_by_hand(lending)
        case "paused" if lending.code == QUIT:
            return _tr("Nothing is lent now.")
        case "off":
            return _tr("Turned off. Nothing of this machine is lent.")
    return _reason(lending) or _tr("Nothing is lent now.")


def _reason(lending: Lending) -> str:
    return said(lending.reason_facts) if lending.reason_facts else ""


def users(lending: Lending) -> str:
    """Return the names of the machines that have layers here."""
    return ", ".join(lending.used_by) or _tr("another machine")


def since(lending: Lending) -> str:
    """Return since when the state holds, with the day where that was not today; empty where it is not known."""
    if not lending.since:
        return ""
    at = QDateTime.fromSecsSinceEpoch(lending.since)
    is_today = at.date() == QDateTime.currentDateTime().date()
    time = QLocale().toString(at.time() if is_today else at, QLocale.FormatType.ShortFormat)
    return _tr("Since {time}").format(time=time)


def state_word(state: str) -> str:
    """Return a machine's state in one word, for lists."""
    known = {
        "ready": _tr("ready"),
        "lending": _tr("lending"),
        "working": _tr("working"),
        "loaded": _tr("loaded"),
        "draining": _tr("pausing"),
        "paused": _tr("paused"),
        "offline": _tr("offline"),
        "off": _tr("lends nothing"),
        "guest": _tr("guest"),
        "user": _tr("uses models"),
    }
    return known.get(state, state)


def _paused_by_hand(lending: Lending) -> str:
    if lending.resumes_in_s is None:
        if lending.code == "pause_stopped":
            return _tr("Stopped by you until you resume it.")
        return _tr("Paused by you until you resume it.")
    until = QDateTime.currentDateTime().addSecs(lending.resumes_in_s)
    time = QLocale().toString(until.time(), QLocale.FormatType.ShortFormat)
    return _tr("Paused by you until {time}.").format(time=time)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Lending", text)
