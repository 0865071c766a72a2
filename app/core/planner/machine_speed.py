"""What a machine needs for the layers of one model, measured or estimated. Pure facts, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds that one machine's engine takes for a model's layers, measured on layers of the model's
    own shape and quantisation; or estimated from other layers (core/effort.py).

    A decode step of n rows through k layers takes step_s + k * (layer_s + (n - 1) * layer_row_s), and on top
    k * position_s for each position that its sequences hold already. A prefill chunk of the
    workload's `batch_rows` rows, after p positions, takes step_s + k * (chunk_s + p * chunk_position_s).
    Layers with a sliding window add the same for their positions, of which there are at most `window`.
    """

    layer_s: float  # a layer, one row
    layer_row_s: float  # a layer, each further row of a decode step
    position_s: float  # a layer, for each earlier position of a row
    chunk_s: float  # a layer, a whole prefill chunk at the begin of a prompt
    chunk_position_s: float  # a layer, a whole chunk, for each position before it
    step_s: float  # of any step, whatever it computes: the engine's start, the pipe, the process
    head_s: (
        float  # the last norm, the output matrix and the sampler, one row; measured where it runs
    )
    head_row_s: float  # each further row of it
    window: int = 0
    window_position_s: float = 0.0
    window_chunk_position_s: float = 0.0
    estimated: bool = False  # from layers of another shape


ROUGH_TOK_S = (
    60.0  # a token in less than 17 ms: what else the computers do weighs as much as the model
)


def is_rough(tok_s: float) -> bool:
    """Whether a forecast of so many tokens a second says little, however well it was measured."""
    return tok_s > ROUGH_TOK_S
