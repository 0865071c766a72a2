"""The layers measured for a model: of its own shape, or a plain layer in their place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.catalog.families.effort_reader import effort_of, main_kind, stand_in, stand_in_effort
from app.catalog.families.family_table import FAMILIES, windows
from app.catalog.gguf.gguf_header import Header
from app.catalog.gguf.model_shape_reader import shape_of
from app.catalog.stages import synthetic_stage
from app.core.errors import BadInput
from app.core.model import Model
from app.core.model_shape import ModelShape
from app.core.planner.speed_estimates import Effort, MeasuredLayer, Speed, estimate_speed
from app.inference.worker.layer_benchmark import DEPTH


@dataclass(frozen=True, slots=True)
class Basis:
    """The shape to measure; `effort`: the effort of the model's own layers, where the shape only stands for them."""

    shape: ModelShape
    effort: Effort | None = None
    near: Effort | None = None  # of layers that were measured, where some have a window: what looks how far back
    instead: Basis | None = None  # for machines that have no room to measure the model's own layers

    @property
    def is_estimate(self) -> bool:
        return self.effort is not None

    def speed(self, measured: Speed | None, batch_rows: int) -> Speed | None:
        """Return the model's speed from the measured one."""
        if measured is not None and self.near is not None:
            return windowed(measured, self.near)
        if measured is None or self.effort is None:
            return measured
        like = MeasuredLayer(measured, stand_in_effort(self.shape), batch_rows)
        return estimate_speed(like, self.effort)


def basis_of(header: Header, model: Model) -> Basis:
    """Return layers of the model itself, or a plain layer where those are too large to be made up anywhere.

    Raises BadInput with the reason why the model's speed cannot be forecast.
    """
    plain = _plain_layer(header, model)
    try:
        shape = shape_of(header, model)
        synthetic_stage.check(shape)
    except BadInput:
        if isinstance(plain, BadInput):
            raise plain from None
        return plain
    if isinstance(plain, BadInput):
        return Basis(shape)
    near = plain.effort if any(windows(header, FAMILIES[model.architecture]) or ()) else None
    return Basis(shape, near=near, instead=plain)


def _plain_layer(header: Header, model: Model) -> Basis | BadInput:
    """Return a plain layer in the place of the model's, or why nothing can be told from one."""
    try:
        effort = effort_of(header, model)
    except BadInput as error:
        return error
    return Basis(stand_in(main_kind(header, model)), effort)


def windowed(measured: Speed, effort: Effort) -> Speed:
    """Return the speed with the cost of earlier positions split by window: a window holds no more than its length.
    The measurement had up to DEPTH positions, on layers of both kinds."""
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
