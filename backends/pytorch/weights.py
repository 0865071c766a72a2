"""The matrices and vectors of a stage on its device. Matrices stay packed there, except on the processor.

A product with a packed matrix unpacks it first. On the processor this would take longer than the product itself, so
there the matrices are unpacked once, when the stage opens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from backends.contract import StageError
from backends.gguf_weights.block_types import PackedTensor
from backends.gguf_weights.stage_file import StageFile
from backends.pytorch.blocks import dequantize

Tensor = Any  # torch.Tensor; the checked environment has no torch


class Matrix:
    """A matrix `[n_out, n_in]` with its bias, if it has one."""

    def __init__(self, packed: PackedTensor, bias: Tensor | None, device: Any, *, dense: bool) -> None:
        self._kind, self._bias = packed.kind, bias
        self._dense = dense
        self._data = _on_device(packed, device, dense=dense)

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the product with each row `[n_in]`."""
        weights = self._data if self._dense else dequantize(self._data, self._kind)
        return functional.linear(rows, weights, self._bias)

    @property
    def n_bytes(self) -> int:
        return int(self._data.nbytes)


class Experts:
    """A matrix `[n_out, n_in]` for each of several experts, with a bias for each, if they have one."""

    def __init__(self, packed: PackedTensor, bias: Tensor | None, device: Any, *, dense: bool) -> None:
        self._kind, self._bias = packed.kind, bias
        self._dense = dense
        self._data = _on_device(packed, device, dense=dense)

    def of(self, expert: int, rows: Tensor) -> Tensor:
        """Return the product of one expert's matrix with each row."""
        weights = self._data[expert] if self._dense else dequantize(self._data[expert], self._kind)
        return functional.linear(rows, weights, None if self._bias is None else self._bias[expert])

    @property
    def n_bytes(self) -> int:
        return int(self._data.nbytes)


class Weights:
    """The tensors of a stage file by name. Each is checked for its shape and for numbers that are not finite."""

    def __init__(self, file: StageFile, device: Any) -> None:
        self.file, self.device = file, device
        self.dense = device.type == "cpu"
        self.n_bytes = 0

    def vector(self, name: str, *shape: int) -> Tensor:
        """Return a small tensor as float32, the longest stride first."""
        values = self.file.tensor(name, shape).unpack()
        if not np.isfinite(values).all():
            raise _not_finite(name)
        self.n_bytes += values.nbytes
        return torch.from_numpy(np.array(values)).to(self.device)

    def vector_or_none(self, name: str, *shape: int) -> Tensor | None:
        return self.vector(name, *shape) if self.file.has_tensor(name) else None

    def matrix(self, name: str, n_out: int, n_in: int) -> Matrix:
        """Return the matrix `name`.weight with the bias `name`.bias, if there is one."""
        packed = self.file.tensor(f"{name}.weight", (n_out, n_in))
        matrix = Matrix(packed, self.vector_or_none(f"{name}.bias", n_out), self.device, dense=self.dense)
        self.n_bytes += matrix.n_bytes
        return matrix

    def experts(self, name: str, n_experts: int, n_out: int, n_in: int) -> Experts:
        packed = self.file.tensor(f"{name}.weight", (n_experts, n_out, n_in))
        bias = self.vector_or_none(f"{name}.bias", n_experts, n_out)
        experts = Experts(packed, bias, self.device, dense=self.dense)
        self.n_bytes += experts.n_bytes
        return experts


def _on_device(packed: PackedTensor, device: Any, *, dense: bool) -> Tensor:
    """Return the blocks, or the numbers if they are to be dense, on the device. Raises StageError if one is not finite.

    Numbers are checked where the device unpacks them, piece by piece, because that takes the least memory.
    """
    blocks = torch.from_numpy(np.array(packed.blocks)).to(device)
    if dense:
        values = dequantize(blocks, packed.kind)
        if not torch.isfinite(values).all():
            raise _not_finite(packed.name)
        return values
    for piece in blocks.reshape(-1, blocks.shape[-1]).split(4096):
        if not torch.isfinite(dequantize(piece, packed.kind)).all():
            raise _not_finite(packed.name)
    return blocks


def _not_finite(name: str) -> StageError:
    return StageError(f"{name} has numbers that are not finite", "weights_not_finite", tensor=name)
