"""The status of the pool as a sentence and an icon, for the sidebar and the tray."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication

from app.api.plans import LoadedModel
from app.api.snapshot import Snapshot
from app.core.recovery.fault_table import Fault, classify
from app.gui.api.node_state import GONE, NodeState
from app.gui.app import navigation
from app.gui.look.sentences import model_name, said
from app.gui.this_computer.lending_store import lacks_lender_role, state_sentence


class StatusKind(StrEnum):
    """The kinds of status, each with its own icon. The icons differ in shape as well as in color."""

    IDLE = "tray-idle"
    WORKING = "tray-working"
    PAUSED = "tray-paused"
    ATTENTION = "tray-attention"
    AWAY = "tray-away"


COLORS = {
    StatusKind.IDLE: "good",
    StatusKind.WORKING: "accent",
    StatusKind.PAUSED: "warning",
    StatusKind.ATTENTION: "error",
    StatusKind.AWAY: "muted",
}


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """The status of the pool.

    page: the address of a page with more information. model: the name of a lost model. If an answer from it was
    interrupted, that chat is shown instead of `page`.
    """

    kind: StatusKind
    sentence: str
    page: str
    model: str = ""

    @property
    def icon(self) -> str:
        return str(self.kind)

    @property
    def color(self) -> str:
        return COLORS[self.kind]


def current_status(pool: NodeState) -> PoolStatus:
    """Return the status with the highest priority."""
    if not pool.is_there:
        return _away(pool)
    now, loaded, lending = pool.now, pool.now.loaded, pool.now.node.lending
    name = loaded.model if loaded is not None else ""
    if loaded is not None and loaded.state in ("failed", "lost"):
        sentence = trouble_with(loaded) or _tr("The model stopped unexpectedly.")
        kind = StatusKind.PAUSED if was_reclaimed(loaded) else StatusKind.ATTENTION
        return PoolStatus(kind, sentence, navigation.POOL, name)
    if loaded is not None and loaded.state == "recovering":
        return PoolStatus(StatusKind.WORKING, trouble_with(loaded), navigation.POOL, name)
    if loaded is not None and loaded.stopping:
        stopping = _tr("Stopping {model} and freeing its memory.")
        return PoolStatus(StatusKind.WORKING, stopping.format(model=model_name(name)), navigation.MODELS)
    if loaded is not None and (leaving := _leaving(now, loaded)) is not None:
        return PoolStatus(StatusKind.PAUSED, leaving, navigation.POOL)
    if lending.state in ("paused", "draining") and not lacks_lender_role(lending):
        return PoolStatus(StatusKind.PAUSED, state_sentence(lending), navigation.COMPUTER)
    if lending.state in ("working", "lending"):
        away = [machine.name for machine in now.sorted_machines if not machine.online]
        return PoolStatus(StatusKind.WORKING, state_sentence(lending, away), navigation.COMPUTER)
    if loaded is not None and loaded.state == "loading":
        sentence = _tr("Loading {model}.").format(model=model_name(name))
        return PoolStatus(StatusKind.WORKING, sentence, navigation.MODELS)
    if loaded is not None:
        kind = StatusKind.WORKING if now.answers.running else StatusKind.IDLE
        sentence = " ".join([_ready(now, loaded), *other_models(now)])
        return PoolStatus(kind, sentence, navigation.CHAT)
    if now.hosts:
        sentence = _tr("Ready. Answers come from {machine}.").format(machine=", ".join(now.hosts))
        return PoolStatus(StatusKind.IDLE, sentence, navigation.CHAT)
    if now.hosts is not None:
        return PoolStatus(StatusKind.ATTENTION, _tr("No machine is available to answer."), navigation.POOL)
    if (shared := now.shared_model(None)) is not None:
        sentence = _tr("Ready. {model} will answer.").format(model=model_name(shared.reference))
        return PoolStatus(StatusKind.IDLE, sentence, navigation.CHAT)
    if now.load_failed is not None:
        text = _tr("{model} could not be loaded, so no model is available.")
        sentence = text.format(model=model_name(now.load_failed.model))
        return PoolStatus(StatusKind.ATTENTION, sentence, navigation.MODELS)
    return PoolStatus(StatusKind.IDLE, _tr("Ready. No model is loaded yet."), navigation.MODELS)


def trouble_with(loaded: LoadedModel) -> str:
    """Return a sentence about the problem with a loaded model, or ""."""
    return said(loaded.reason_facts)


def was_reclaimed(loaded: LoadedModel) -> bool:
    """Return whether a model ended because an owner reclaimed a machine's memory, which is not a failure."""
    reason = loaded.reason_facts
    return reason is not None and classify(reason).fault is Fault.OWNER


def other_models(now: Snapshot) -> list[str]:
    """Return a sentence for each loaded model except the main one."""
    sentences = {
        "loading": _tr("Also loading {model}."),
        "lost": _tr("{model} stopped unexpectedly."),
        "recovering": _tr("A machine running {model} has disconnected."),
    }
    ready = _tr("{model} is also ready.")
    return [sentences.get(model.state, ready).format(model=model_name(model.model)) for model in now.beside]


def _leaving(now: Snapshot, loaded: LoadedModel) -> str | None:
    """Return a sentence about a machine that runs the loaded model and is about to stop lending, or None."""
    holders = {stage.id for stage in loaded.stages}
    for machine in now.sorted_machines:
        if machine.state not in ("draining", "paused") or machine.this or machine.id not in holders:
            continue
        recovery = said(loaded.recovery.text_facts) if loaded.recovery is not None else ""
        why = " ".join(filter(None, (said(machine.reason_facts), recovery)))
        text = _tr("{machine} is about to stop lending. {why}") if why else _tr("{machine} is about to stop lending.")
        return text.format(machine=machine.name, why=why)
    return None


def _ready(now: Snapshot, loaded: LoadedModel) -> str:
    """Return a sentence that names the machines that run the model.

    It may name just one after a machine was lost.
    """
    holders = loaded.holders or [machine.id for machine in loaded.machines]
    model = model_name(loaded.model)
    if len(holders) > 1:
        return _tr("Ready. {model} runs on {many} machines.").format(many=len(holders), model=model)
    for machine in now.sorted_machines:
        if holders == [machine.id] and not machine.this:
            return _tr("Ready. {model} runs on {machine}.").format(machine=machine.name, model=model)
    return _tr("Ready. {model} runs on this machine.").format(model=model)


def _away(pool: NodeState) -> PoolStatus:
    if pool.link in GONE:
        sentence = pool.problem or _tr("The background service is not running.")
        return PoolStatus(StatusKind.ATTENTION, sentence, navigation.POOL)
    sentence = pool.problem or _tr("Starting the background service…")
    return PoolStatus(StatusKind.AWAY, sentence, navigation.POOL)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Standing", text)
