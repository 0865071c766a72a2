"""The division of a stage among the graphics cards of its machine, and between them and the processor.

The cards hold consecutive layers, beginning with the first card. Each card is filled before the next one is used,
because a stage on few cards needs few transfers. What does not fit on the cards stays in main memory: first the experts
of the first layers, because a token uses few of them, then whole layers, again beginning with the first. The output
matrix is on the last card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.model import Model
from app.core.planner.work_shape import WorkShape
from backends.contract import Layers, Role


@dataclass(frozen=True, slots=True)
class StageParts:
    """The memory that the parts of a stage need."""

    layer_bytes: tuple[int, ...]  # of each layer: weights, keys and values, states
    expert_bytes: tuple[int, ...]  # of each layer: the part of its weights that are experts
    head_bytes: int  # of the output matrix
    work_bytes: int  # needed on each card, besides its layers: an estimate
    shape: WorkShape | None = None  # what the working memory depends on, to replace the estimate by a measurement

    @classmethod
    def of(
        cls,
        model: Model,
        layers: Layers,
        role: Role,
        kv_bytes: Sequence[int],
        work_bytes: int,
        shape: WorkShape | None = None,
    ) -> StageParts:
        """Return the parts of a stage with these layers. kv_bytes: of each layer of the model."""
        run = slice(layers.first, layers.last)
        weights = model.weights
        return cls(
            tuple(map(sum, zip(weights.layer_bytes[run], kv_bytes[run], strict=True))),
            weights.expert_bytes[run] or (0,) * len(layers),
            weights.head_bytes if role.has_head else 0,
            work_bytes,
            shape,
        )


@dataclass(frozen=True, slots=True)
class CardDivision:
    """The layers on each card; none on the cards that a stage does not use."""

    counts: tuple[int, ...]
    card_bytes: tuple[int, ...]
    processor_layers: int = 0
    processor_experts: int = 0  # the layers, from the first one, whose experts are in main memory

    @property
    def uses_processor(self) -> bool:
        return bool(self.processor_layers or self.processor_experts)


def divide(
    parts: StageParts, rooms: Sequence[int], works: Sequence[int] = (), *, overflow: bool = True
) -> CardDivision | None:
    """Divide a stage. Return None if that is impossible.

    rooms: the free bytes on each card, the best one first. works: the working memory that a stage needs on each of
    them; without it, the estimate. overflow: whether main memory may be used beside the cards.
    """
    n_layers = len(parts.layer_bytes)
    works = works or (parts.work_bytes,) * len(rooms)
    if (all_on_cards := _filled(parts, rooms, works, 0, 0)) is not None or not overflow:
        return all_on_cards
    has_experts = any(parts.expert_bytes)
    for n_experts in range(1, n_layers + 1) if has_experts else ():
        if (made := _filled(parts, rooms, works, 0, n_experts)) is not None:
            return made
    for n_first in range(1, n_layers):
        if (made := _filled(parts, rooms, works, n_first, n_layers if has_experts else 0)) is not None:
            return made
    return None


def _filled(
    parts: StageParts, rooms: Sequence[int], works: Sequence[int], n_first: int, n_experts: int
) -> CardDivision | None:
    """Return the division with the first layers, and the experts of the first layers, in main memory."""
    sizes = [
        size - (experts if index < n_experts else 0)
        for index, (size, experts) in enumerate(zip(parts.layer_bytes, parts.expert_bytes, strict=True))
    ][n_first:]
    counts, used = [0] * len(rooms), [0] * len(rooms)
    place = 0
    for card, (room, work_bytes) in enumerate(zip(rooms, works, strict=True)):
        left = room - work_bytes
        if sum(sizes[place:]) + parts.head_bytes <= left:  # all that is left, with the output matrix
            counts[card] = len(sizes) - place
            used[card] = work_bytes + sum(sizes[place:]) + parts.head_bytes
            return CardDivision(tuple(counts), tuple(used), n_first, n_experts)
        while place < len(sizes) - 1 and sizes[place] <= left:  # the last layer is where the output matrix is
            left -= sizes[place]
            counts[card] += 1
            place += 1
        used[card] = room - left if counts[card] else 0
    return None
