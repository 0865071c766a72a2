"""How the pool stands, in one sentence and one picture: for the sidebar, the tray and its tooltip."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.gui.api.node_state import GONE, NodeState
from app.gui.app import page_names
from app.gui.look.sentences import here, model_name, trouble
from app.gui.this_computer.lending_words import may_not, state_sentence

Json = dict[str, Any]


class Kind(StrEnum):
    """What the tray's picture shows; shapes differ, not only colours."""

    IDLE = "tray-idle"
    WORKING = "tray-working"
    PAUSED = "tray-paused"
    ATTENTION = "tray-attention"
    AWAY = "tray-away"


COLOURS = {
    Kind.IDLE: "good",
    Kind.WORKING: "accent",
    Kind.PAUSED: "warning",
    Kind.ATTENTION: "error",
    Kind.AWAY: "muted",
}


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """One line and its picture; `page` shows more of it, or the chat whose answer was cut with `model`."""

    kind: Kind
    sentence: str
    page: str
    model: str = ""

    @property
    def icon(self) -> str:
        return str(self.kind)

    @property
    def colour(self) -> str:
        return COLOURS[self.kind]


def standing(pool: NodeState) -> PoolStatus:
    """What matters most right now."""
    if not pool.is_there:
        return _away(pool)
    loaded, lending = pool.loaded, pool.node.get("lending") or {}
    answers = (pool.snapshot.get("answers") or {}).get("running", 0)
    name = str((loaded or {}).get("model") or "")
    if loaded and loaded.get("state") in ("failed", "lost"):
        reason = trouble(loaded) or _tr("The model was lost.")
        return PoolStatus(Kind.ATTENTION, reason, page_names.POOL, name)
    if loaded and loaded.get("state") == "recovering":
        return PoolStatus(Kind.WORKING, trouble(loaded), page_names.POOL, name)
    if loaded and loaded.get("stopping"):
        stopping = _tr("{model} is being stopped, and gives its memory back.")
        return PoolStatus(Kind.WORKING, stopping.format(model=model_name(name)), page_names.MODELS)
    if loaded and (leaver := _leaver(pool, loaded)) is not None:
        return PoolStatus(Kind.PAUSED, leaver, page_names.POOL)
    if lending.get("state") in ("paused", "draining") and not may_not(lending):
        return PoolStatus(Kind.PAUSED, state_sentence(lending), page_names.COMPUTER)
    if lending.get("state") in ("working", "lending"):
        return PoolStatus(Kind.WORKING, state_sentence(lending, pool.away), page_names.COMPUTER)
    if loaded and loaded.get("state") == "loading":
        sentence = _tr("Loading {model}.").format(model=model_name(name))
        return PoolStatus(Kind.WORKING, sentence, page_names.MODELS)
    if loaded:
        kind = Kind.WORKING if answers else Kind.IDLE
        sentence = " ".join([_ready(pool, loaded), *others_loaded(pool)])
        return PoolStatus(kind, sentence, page_names.CHAT)
    if pool.hosts is not None:
        kind = Kind.IDLE if pool.hosts else Kind.ATTENTION
        return PoolStatus(kind, _guest(pool.hosts), page_names.CHAT if pool.hosts else page_names.POOL)
    if pool.load_failed:
        text = _tr("{model} could not be loaded, so no model answers.")
        sentence = text.format(model=model_name(pool.load_failed))
        return PoolStatus(Kind.ATTENTION, sentence, page_names.MODELS)
    return PoolStatus(Kind.IDLE, _tr("Ready. No model is loaded yet."), page_names.MODELS)


def others_loaded(pool: NodeState) -> list[str]:
    """What else is loaded, comes or is lost."""
    words = {
        "loading": _tr("Loading {model} as well."),
        "lost": _tr("{model} was lost."),
        "recovering": _tr("A machine of {model} is missing."),
    }
    usual = _tr("{model} answers as well.")
    return [
        words.get(str(one.get("state")), usual).format(model=model_name(str(one.get("model"))))
        for one in pool.snapshot.get("beside") or ()
    ]


def _guest(hosts: list[str]) -> str:
    if not hosts:
        return _tr("No host is here to answer.")
    return _tr("Ready. Answers come from {machine}.").format(machine=", ".join(hosts))


def _leaver(pool: NodeState, loaded: dict[str, object]) -> str | None:
    """Of a machine whose layers others take over: that it drains, or is paused, and why."""
    holds = {str(stage.get("id")) for stage in _stages(loaded)}
    for machine in pool.machines:
        leaves = machine.get("state") in ("draining", "paused") and not machine.get("this")
        if leaves and machine.get("id") in holds:
            told = loaded.get("recovery")
            done = here(str(told.get("text") or "")) if isinstance(told, dict) else ""
            why = " ".join(filter(None, (here(str(machine.get("reason") or "")), done)))
            text = _tr("{machine} stops lending. {why}") if why else _tr("{machine} stops lending.")
            return text.format(machine=machine.get("name"), why=why)
    return None


def _stages(loaded: dict[str, object]) -> list[dict[str, object]]:
    found = loaded.get("stages")
    return found if isinstance(found, list) else []


def _ready(pool: NodeState, loaded: Json) -> str:
    """Who holds it: after a loss that may be another machine alone."""
    there = loaded.get("holders") or [one.get("id") for one in loaded.get("machines") or ()]
    model = model_name(str(loaded.get("model")))
    if len(there) > 1:
        return _tr("Ready. {many} machines hold {model}.").format(many=len(there), model=model)
    other = next((one for one in pool.machines if there == [one.get("id")] and not one.get("this")), None)
    if other is None:
        return _tr("Ready. This machine holds {model}.").format(model=model)
    text = _tr("Ready. {machine} holds {model}.")
    return text.format(machine=other.get("name"), model=model)


def _away(pool: NodeState) -> PoolStatus:
    if pool.link in GONE:
        sentence = pool.problem or _tr("The background service is not running.")
        return PoolStatus(Kind.ATTENTION, sentence, page_names.POOL)
    sentence = pool.problem or _tr("Starting the background service…")
    return PoolStatus(Kind.AWAY, sentence, page_names.POOL)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Standing", text)
