"""The short convolutions of recurrent layers, which carry their last rows from step to step."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

Tensor = Any  # mlx.core.array; the checked environment has no MLX


def convolve(rows: Tensor, kernel: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
    """Convolve each channel of `rows` over time. Return the result, and the last input rows for the next step.

    rows: `[n, channels]`. kernel: `[channels, length]`. before: the last `length - 1` input rows of the previous
    step; None stands for zeros.
    """
    length = kernel.shape[1]
    if before is None:
        before = mx.zeros((length - 1, rows.shape[1]))
    all_rows = mx.concatenate([before, rows])
    mixed = sum(all_rows[at : at + rows.shape[0]] * kernel[:, at] for at in range(length))
    return mixed, all_rows[rows.shape[0] :]
