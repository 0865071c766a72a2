"""What is measured for a model: layers of its own shape, or a plain layer in their place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.catalog import synthetic
from app.catalog.effort import effort_of, main_kind, stand_in, stand_in_effort
from app.catalog.families import FAMILIES
from app.catalog.gguf_header import Header
from app.catalog.shape import has_window, shape_of
from app.core.effort import Effort, Measured, estimated
from app.core.errors import BadInput
from app.core.model import Model
from app.core.model_shape import ModelShape
from app.core.speed import Speed
from app.inference.trial_run import DEPTH


@dataclass(frozen=True, slots=True)
class Basis:
    """The shape to measure; `effort`: what the model's own layers ask, where the shape only stands for them."""

    shape: ModelShape
    effort: Effort | None = None
    near: Effort | None = (
        None  # of layers that were measured, where some have a window: what looks how far back
    )

    @property
    def is_estimate(self) -> bool:
        return self.effort is not None

    def speed(self, measured: Speed | None, batch_rows: int) -> Speed | None:
        """The model's, from what was measured."""
        if measured is not None and self.near is not None:
            return windowed(measured, self.near)
        if measured is None or self.effort is None:
            return measured
        like = Measured(measured, stand_in_effort(self.shape), batch_rows)
        return estimated(like, self.effort)


def basis_of(header: Header, model: Model) -> Basis:
    """Raises BadInput with the reason why nothing can be said of a model ahead."""
    family = FAMILIES.get(model.architecture)
    if family is not None and family.measurable and model.whole_reason is None:
        shape = shape_of(header, model)
        if _can_be_measured(shape):
            near = effort_of(header, model) if any(map(has_window, shape.layers)) else None
            return Basis(shape, near=near)
    effort = effort_of(header, model)
    return Basis(stand_in(main_kind(header, model)), effort)


def windowed(measured: Speed, effort: Effort) -> Speed:
    """With what each earlier position costs told apart: in a window there are no more than it is long. Measured was
    up to DEPTH positions, on layers of both kinds."""
    near = min(effort.window, DEPTH) / DEPTH
    looked = effort.position + near * effort.window_position
    if not looked:
        return measured
    full, in_window = effort.position / looked, effort.window_position / looked
    return replace(
        measured,
        position_s=full * measured.position_s,
        chunk_position_s=full * measured.chunk_position_s,
        window=effort.window,
        window_position_s=in_window * measured.position_s,
        window_chunk_position_s=in_window * measured.chunk_position_s,
    )


def _can_be_measured(shape: ModelShape) -> bool:
    """Layers may be too large for a trial, or of number types that nobody can make up."""
    try:
        synthetic.check(shape)
    except BadInput:
        return False
    return True
