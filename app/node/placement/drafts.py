"""The choice of a draft model: a small model on this machine that guesses the next tokens of a loaded model."""

from __future__ import annotations

from collections.abc import Iterator

from app.catalog.shelf import Entry, Shelf
from app.core.model import Model
from app.core.planner.stage_memory import work_bytes
from app.inference.pipeline.scheduler import READ_AHEAD

NONE, AUTO = "none", "auto"  # in place of a name: no draft model, or one that this machine chooses
LEAST_RATIO = 4  # a draft is at least so many times smaller than its model, or it would write too slowly
MOST_TRIED = 3


def can_draft(model: Model) -> bool:
    """Return whether guessed tokens can be used with a model. A recurrent state cannot be rolled back after a
    wrong guess.
    """
    return not model.cuts.later.recurrent


def draft_candidates(shelf: Shelf, entry: Entry, chosen: str) -> Iterator[Entry]:
    """Yield the models on this machine that may be the draft of a model, the best first.

    chosen: the name that the user chose, NONE or AUTO. Raises BadInput if there is no such model.
    """
    if chosen == NONE:
        return
    if chosen != AUTO:
        yield shelf.get(chosen)
        return
    model, most_bytes = entry.model, entry.model.file_bytes // LEAST_RATIO
    small = [other for other in shelf.entries() if other is not entry and other.model.file_bytes <= most_bytes]
    # A draft that was made for a model reads that model's embedding, and may write only a part of its tokens.
    made = [each for each in small if each.model.n_vocab < model.n_vocab and each.model.width == model.width]
    alike = [each for each in small if each.model.n_vocab == model.n_vocab and can_draft(each.model)]
    yield from [*made, *sorted(alike, key=lambda each: -each.model.file_bytes)][:MOST_TRIED]


def draft_bytes(model: Model, context: int, slots: int) -> int:
    """Return how much memory a draft model needs for this number of slots, each with a context of this size."""
    cells = context * slots
    kv_bytes = sum(model.kv_bytes_per_token) * cells
    return model.file_bytes + kv_bytes + work_bytes(model.width, 2 * READ_AHEAD, cells)
