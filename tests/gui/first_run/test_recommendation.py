"""Of the catalogue one model is recommended: that fits, that chats, that answers fast enough."""

from __future__ import annotations

from typing import Any

from app.gui.first_run.recommendation import best
from app.gui.shelf.item import Item, offer_item

GIB = 1 << 30


def offer(name: str, gib: float, *good_at: str, gated: bool = False) -> Item:
    file = {
        "file": f"{name}.gguf",
        "size_bytes": int(gib * GIB),
        "usable": True,
        "recommended": True,
    }
    facts: dict[str, Any] = {"good_at": list(good_at), "gated": gated, "files": [file]}
    return offer_item({"id": name, "name": name, **facts})


def verdicts(items: list[Item], **words: str) -> dict[str, Any]:
    return {item.key: {"word": words.get(item.name, "fits")} for item in items}


def test_the_largest_that_fits_chats_and_is_handy() -> None:
    small, medium, huge = offer("s", 1, "chat"), offer("m", 4, "chat"), offer("h", 40, "chat")
    code, gated = offer("c", 5, "code"), offer("g", 5, "chat", gated=True)
    items = [small, medium, huge, code, gated]
    assert best(items, verdicts(items)) is medium
    assert best(items, verdicts(items, m="tight")) is small
    assert best(items, verdicts(items, m="too big", s="too big")) is None
    assert best(items, {}) is None
