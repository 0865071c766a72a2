"""Snapshots of which a test gives only the members that matter to it."""

from __future__ import annotations

from typing import Any

from app.api.snapshot import Snapshot
from app.decoding import convert

Json = dict[str, Any]


def partial_snapshot(members: Json) -> Snapshot:
    """Return a snapshot with these members; IDs and names that they lack are filled in."""
    filled = dict(members)
    for name in ("machines", "downloads"):
        filled[name] = {key: {"id": key, **value} for key, value in members.get(name, {}).items()}
    for name in ("loaded", "embeds"):
        filled[name] = _model(members[name]) if members.get(name) else None
    filled["beside"] = [_model(value) for value in members.get("beside", ())]
    return convert(filled, Snapshot)


def _model(members: Json) -> Json:
    machines = [{"machine": "den", **value} for value in members.get("machines", ())]
    return {"model": "m", **members, "machines": machines}
