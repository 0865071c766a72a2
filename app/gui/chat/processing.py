"""Which machines process a chat: the lines of the popover in its head."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication

from app.gui.api.node_state import Pool
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import joined

Json = dict[str, Any]
WHOLE = "whole"  # the role of a stage that holds every layer
ANSWERS = ("ready", "recovering")


def processing(loaded: Json, pool: Pool) -> list[str]:
    """Each machine with its layers, and what of the chat it gets. Empty while no model answers."""
    if pool.hosts is not None and not loaded:
        return _by_hosts(pool.hosts)
    stages = _present(loaded)
    if not stages:
        return []
    own = str(pool.node.get("id") or "")
    runs: dict[str, list[Json]] = {}
    for stage in stages:
        runs.setdefault(str(stage.get("id")), []).append(stage)
    found = [_line(own, key, held) for key, held in runs.items()]
    return [*found, _what_they_get(own, stages)]


def _present(loaded: Json) -> list[Json]:
    """Of several pipelines those that are not lost."""
    if loaded.get("state") not in ANSWERS:
        return []
    stages = loaded.get("stages") or []
    holders = loaded.get("holders")
    return [one for one in stages if holders is None or one.get("id") in holders]


def _by_hosts(hosts: list[str]) -> list[str]:
    if not hosts:
        return []
    text = _tr("{machine} answers for this machine: what you write goes there, encrypted.")
    return [text.format(machine=", ".join(hosts))]


def _line(own: str, key: str, held: list[Json]) -> str:
    name = str(held[0].get("machine"))
    if key == own:
        name = _tr("{name} (this machine)").format(name=name)
    if any(stage.get("role") == WHOLE for stage in held):
        return _tr("{machine}: the whole model").format(machine=name)
    layers = machine_words.layers(joined([(stage["first"], stage["last"]) for stage in held]))
    return _tr("{machine}: {layers}").format(machine=name, layers=layers)


def _what_they_get(own: str, stages: list[Json]) -> str:
    """So much of what is written leaves this machine, and no more."""
    others = [stage for stage in stages if stage.get("id") != own]
    if not others:
        return _tr("Nothing of this chat leaves this machine.")
    if any(stage.get("role") == WHOLE for stage in others):
        return _tr("A machine with the whole model gets a question as token numbers, encrypted.")
    return _tr("The text stays here; the others get only numbers from inside the model.")


def _tr(text: str) -> str:
    return QCoreApplication.translate("Processing", text)
