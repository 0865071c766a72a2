"""The sizes on which the working memory of a stage depends, and what was measured for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.model import Model
from app.core.planner.placement import Candidate, Workload
from app.core.planner.stage_memory import WORK_FLOOR_BYTES, workload_cells, workload_rows
from backends.contract import KvType, Layers, Role, StageConfig, can_separate_slots

Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class WorkShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model and the sizes of a stage of it."""

    model: Digest
    first: Count  # layer
    last: Count  # the layer after the last one
    has_head: bool
    slots: Count
    kv_cells: Count
    apart: bool  # whether each slot has its own cells
    batch_rows: Count
    kv: KvType = KvType.F16

    @classmethod
    def of(cls, model: str, config: StageConfig) -> WorkShape:
        """Return the shape of a stage with this configuration."""
        layers = config.layers
        sizes = (config.slots, config.kv_cells, config.apart, config.batch_rows, config.kv)
        return cls(model, layers.first, layers.last, config.role.has_head, *sizes)

    @classmethod
    def planned(cls, model: Model, workload: Workload, role: Role, layers: Layers) -> WorkShape:
        """Return the shape that a stage of a plan will have."""
        cells = workload_cells(model, workload)
        apart = can_separate_slots(workload.slots, cells, workload.context)
        sizes = (workload.slots, cells, apart, workload_rows(model, workload), workload.kv)
        return cls(model.id, layers.first, layers.last, role.has_head, *sizes)

    def is_like(self, other: WorkShape) -> bool:
        """Return whether only the layers differ."""
        return msgspec.structs.replace(self, first=other.first, last=other.last) == other


@dataclass(frozen=True, slots=True)
class ShapeBytes:
    """The bytes that were measured for a shape."""

    shape: WorkShape
    n_bytes: int


def work_of(shape: WorkShape, known: Iterable[ShapeBytes]) -> int | None:
    """Return the working memory that a stage needs on a card according to measurements, or None without one.

    The engine uses the same buffers for one layer after another, so their number hardly matters: what the largest stage
    of the same sizes needed is a good measure for other layers.
    """
    like = [each for each in known if each.shape.is_like(shape)]
    exact = [each.n_bytes for each in like if each.shape == shape]
    if not like:
        return None
    return WORK_FLOOR_BYTES + (exact[0] if exact else max(each.n_bytes for each in like))


def measured_work(
    machine: Candidate, model: Model, workload: Workload, known: Sequence[ShapeBytes]
) -> tuple[tuple[Role, int], ...]:
    """Return the working memory of stages on a machine with graphics cards, for each role that was measured there."""
    if machine.processor_family:
        return ()
    of_role = []
    for role in Role:
        shape = WorkShape.planned(model, workload, role, model.layers)
        if (n_bytes := work_of(shape, known)) is not None:
            of_role.append((role, n_bytes))
    return tuple(of_role)
