"""What is measured for a model: layers of its own shape, or a plain layer in their place."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog import synthetic
from app.catalog.effort import effort_of, main_kind, stand_in, stand_in_effort
from app.catalog.families import FAMILIES
from app.catalog.gguf_header import Header
from app.catalog.shape import shape_of
from app.core.effort import Effort, Measured, estimated
from app.core.errors import BadInput
from app.core.model import Model
from app.core.model_shape import ModelShape
from app.core.speed import Speed


@dataclass(frozen=True, slots=True)
class Basis:
    """The shape to measure; `effort`: what the model's own layers ask, where the shape only stands for them."""

    shape: ModelShape
    effort: Effort | None = None

    @property
    def is_estimate(self) -> bool:
        return self.effort is not None

    def speed(self, measured: Speed | None, batch_rows: int) -> Speed | None:
        """The model's, from what was measured."""
        if measured is None or self.effort is None:
            return measured
        like = Measured(measured, stand_in_effort(self.shape), batch_rows)
        return estimated(like, self.effort)


def basis_of(header: Header, model: Model) -> Basis:
    """Raises BadInput with the reason why nothing can be said of a model ahead."""
    family = FAMILIES.get(model.architecture)
    if family is not None and family.plain and model.whole_reason is None:
        shape = shape_of(header, model)
        if _can_be_measured(shape):
            return Basis(shape)
    effort = effort_of(header, model)
    return Basis(stand_in(main_kind(header, model)), effort)


def _can_be_measured(shape: ModelShape) -> bool:
    """Layers may be too large for a trial, or of number types that nobody can make up."""
    try:
        synthetic.check(shape)
    except BadInput:
        return False
    return True
