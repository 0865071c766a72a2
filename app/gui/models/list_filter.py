"""What the list of models is narrowed to; it outlives the page, which goes with its window."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ModelFilter:
    """Words of the search, and the places of the two boxes beside it."""

    words: str = ""
    kind: int = 0
    size: int = 0
