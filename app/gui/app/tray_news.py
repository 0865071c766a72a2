"""What the tray tells of by itself: of all that happens, only what a person waits for or must know. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.core.household.pairing import TOO_MANY
from app.gui.app import page_names
from app.gui.look.sentences import here

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class News:
    """One notification; a click on it shows `page`, or the chat whose answer was cut with `model`."""

    title: str
    sentence: str
    page: str
    model: str = ""


def news(before: Json, now: Json) -> list[News]:
    """From one snapshot to the next. Without a snapshot before there is nothing new."""
    if not before or not now:
        return []
    return [*_pairing(before, now), *_downloads(before, now), *_lost(before, now)]


def _pairing(before: Json, now: Json) -> list[News]:
    tr = QCoreApplication.translate
    title = tr("Tray", "Pairing attempt")
    came = _let_in(now)
    if came and came != _let_in(before):
        name = now["machines"][came].get("name")
        text = tr("Tray", "{name} belongs to your household now.").format(name=name)
        return [News(tr("Tray", "A machine was added"), text, f"{page_names.POOL}/{came}")]
    was, is_now = before.get("pairing"), now.get("pairing")
    if not was:
        return []
    left = (is_now or {}).get("tries_left", 0)
    if is_now and left < was.get("tries_left", 0):
        text = tr("Tray", "Someone entered a wrong code. Tries left: {left}.").format(left=left)
        return [News(title, text, page_names.POOL)]
    if not is_now and now.get("pairing_closed") == TOO_MANY.code:
        return [News(title, tr("Tray", "A wrong code was entered. Pairing is closed."), page_names.POOL)]
    return []


def _let_in(snapshot: Json) -> str:
    """By the code shown here: whom another machine lets in is no news here. It is told before its name is."""
    came = str(snapshot.get("paired") or "")
    return came if came in (snapshot.get("machines") or {}) else ""


def _downloads(before: Json, now: Json) -> list[News]:
    title = QCoreApplication.translate("Tray", "Download finished")
    text = QCoreApplication.translate("Tray", "{name} is ready to load.")
    earlier = before.get("downloads") or {}
    return [
        News(title, text.format(name=one.get("name")), page_names.MODELS)
        for key, one in (now.get("downloads") or {}).items()
        if one.get("state") == "done" and earlier.get(key, {}).get("state") not in (None, "done")
    ]


def _lost(before: Json, now: Json) -> list[News]:
    was, title = _models(before), QCoreApplication.translate("Tray", "The model was lost")
    return [
        News(title, here(str(one.get("reason") or name)), page_names.POOL, name)
        for name, one in _models(now).items()
        if one.get("state") == "lost" and was.get(name, {}).get("state") != "lost"
    ]


def _models(snapshot: Json) -> dict[str, Json]:
    """All that is loaded to write, by name."""
    every = [snapshot.get("loaded"), *(snapshot.get("beside") or ())]
    return {str(one.get("model")): one for one in every if one}
