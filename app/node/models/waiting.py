"""Who waits for a slot, as it is shown."""

from __future__ import annotations

from typing import Any

from app.node.models.loaded_models import LoadedModels

Json = dict[str, Any]


def line_json(loaded: LoadedModels) -> list[Json]:
    """Who waits for a slot: whose chat, which place, and about how many seconds; None: not known yet."""
    return [
        {
            "conversation": one.conversation,
            "place": one.place,
            "seconds": None if one.seconds is None else round(one.seconds),
        }
        for running in loaded
        for one in running.line()
    ]
