"""The short convolutions of recurrent layers, which carry their last rows from step to step."""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any  # torch.Tensor; the checked environment has no torch


def convolve(rows: Tensor, kernel: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return each row mixed with those before it, channel by channel, and the last rows for the next step.

    rows: `[n, channels]`. kernel: `[channels, length]`. before: the last `length - 1` rows of the step before.
    """
    length = kernel.shape[1]
    if before is None:
        before = torch.zeros((length - 1, rows.shape[1]), dtype=rows.dtype, device=rows.device)
    all_rows = torch.cat([before, rows])
    mixed = sum(all_rows[at : at + rows.shape[0]] * kernel[:, at] for at in range(length))
    return mixed, all_rows[rows.shape[0] :].clone()
