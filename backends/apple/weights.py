"""The matrices and vectors of a stage in MLX. Matrices stay quantized if MLX supports their type.

All other matrices are unpacked. On the processor they become float32. On a graphics processor, F16, BF16 and F32 keep
their type, and Q2_K, Q3_K and Q6_K become float16, with an error of at most 2.5e-4 (root mean square).
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from backends.apple.quantized import GROUP, MAX_MXFP4_EXPONENT, is_exact, quantized
from backends.contract import StageError
from backends.gguf_weights.block_types import Kind, PackedTensor
from backends.gguf_weights.stage_file import StageFile

Tensor = Any  # mlx.core.array; the checked environment has no MLX

ROWS_AT_ONCE = 4096  # converted together, which limits the memory needed meanwhile


class Stored:
    """A matrix, or the matrices of several experts, in a format that MLX can multiply."""

    def __init__(self, packed: PackedTensor, work_type: Any) -> None:
        """Convert the blocks. Raises StageError if a number is not finite."""
        # routers of experts are in float32, and their choice must not change
        self.work_type = mx.float32 if packed.kind is Kind.F32 else work_type
        self.scales: Tensor | None = None
        self.biases: Tensor | None = None
        self.bits, self.mode = 0, ""
        blocks = packed.blocks.reshape(-1, packed.blocks.shape[-1])
        pieces = [blocks[first : first + ROWS_AT_ONCE] for first in range(0, len(blocks), ROWS_AT_ONCE)]
        if is_exact(packed.kind):
            self._quantize(packed, pieces)
        else:
            self.data = _joined([self._dense(packed, piece) for piece in pieces], packed.shape)

    def _quantize(self, packed: PackedTensor, pieces: list[Any]) -> None:
        done = [quantized(piece, packed.kind) for piece in pieces]
        self.bits, self.mode = done[0].bits, done[0].mode
        lead = packed.shape[:-1]
        self.data = _joined([mx.array(each.words) for each in done], (*lead, -1))
        self.scales = _joined([mx.array(each.scales) for each in done], (*lead, -1))
        if packed.kind is Kind.MXFP4:
            if any((each.scales > MAX_MXFP4_EXPONENT).any() for each in done):
                raise _not_finite(packed.name)
            return
        biases = [each.biases for each in done if each.biases is not None]
        if not all(np.isfinite(part).all() for part in (*biases, *(each.scales for each in done))):
            raise _not_finite(packed.name)
        self.biases = _joined([mx.array(part) for part in biases], (*lead, -1))

    def _dense(self, packed: PackedTensor, blocks: Any) -> Tensor:
        values = PackedTensor(packed.name, packed.kind, (len(blocks), packed.shape[-1]), blocks).unpack()
        if not np.isfinite(values).all():
            raise _not_finite(packed.name)
        dense = mx.array(values)
        if self.work_type != mx.float32:
            dense = dense.astype(mx.bfloat16 if packed.kind is Kind.BF16 else self.work_type)
        mx.eval(dense)
        return dense

    @property
    def n_bytes(self) -> int:
        return sum(int(part.nbytes) for part in (self.data, self.scales, self.biases) if part is not None)

    def product(self, rows: Tensor) -> Tensor:
        """Return the product of the matrix with each row, as float32."""
        rows = rows.astype(self.work_type)
        if self.scales is None:
            return (rows @ self.data.T).astype(mx.float32)
        done = mx.quantized_matmul(
            rows, self.data, self.scales, self.biases, group_size=GROUP, bits=self.bits, mode=self.mode
        )
        return done.astype(mx.float32)

    def products(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return the product of rows `[n, 1 or k, 1, n_in]` with the matrices of `chosen` experts `[n, k]`."""
        rows = rows.astype(self.work_type)
        if self.scales is None:
            return mx.gather_mm(rows, self.data.swapaxes(-1, -2), rhs_indices=chosen).astype(mx.float32)
        done = mx.gather_qmm(
            rows, self.data, self.scales, self.biases, rhs_indices=chosen, group_size=GROUP, bits=self.bits,
            mode=self.mode,
        )  # fmt: skip
        return done.astype(mx.float32)


class Matrix:
    """A matrix `[n_out, n_in]` and its optional bias."""

    def __init__(self, stored: Stored, bias: Tensor | None) -> None:
        self._stored, self._bias = stored, bias

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the product of the matrix with each row `[n_in]`, plus the bias."""
        done = self._stored.product(rows)
        return done if self._bias is None else done + self._bias


class Experts:
    """The matrices `[n_out, n_in]` of several experts and their optional biases."""

    def __init__(self, stored: Stored, bias: Tensor | None) -> None:
        self._stored, self._bias = stored, bias

    def __call__(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return `[n, k, 1, n_out]`: the products of rows `[n, 1 or k, 1, n_in]` with `chosen` experts `[n, k]`."""
        done = self._stored.products(rows, chosen)
        return done if self._bias is None else done + self._bias[chosen][:, :, None]


class Weights:
    """The tensors of a stage file by name. Each one's shape is checked, and all its numbers must be finite.

    work_type: the number type of the inputs of matrices.
    """

    def __init__(self, file: StageFile, work_type: Any) -> None:
        self.file, self.work_type = file, work_type
        self.n_bytes = 0

    def vector(self, name: str, *shape: int) -> Tensor:
        """Return a small tensor as float32. shape: its dimensions in the order that NumPy uses."""
        values = self.file.tensor(name, shape).unpack()
        if not np.isfinite(values).all():
            raise _not_finite(name)
        self.n_bytes += values.nbytes
        return mx.array(values)

    def vector_or_none(self, name: str, *shape: int) -> Tensor | None:
        return self.vector(name, *shape) if self.file.has_tensor(name) else None

    def matrix(self, name: str, n_out: int, n_in: int) -> Matrix:
        """Return the matrix `name`.weight with its bias `name`.bias, if the file has one."""
        stored = self._stored(f"{name}.weight", n_out, n_in)
        return Matrix(stored, self.vector_or_none(f"{name}.bias", n_out))

    def experts(self, name: str, n_experts: int, n_out: int, n_in: int) -> Experts:
        stored = self._stored(f"{name}.weight", n_experts, n_out, n_in)
        return Experts(stored, self.vector_or_none(f"{name}.bias", n_experts, n_out))

    def _stored(self, name: str, *shape: int) -> Stored:
        stored = Stored(self.file.tensor(name, shape), self.work_type)
        self.n_bytes += stored.n_bytes
        return stored


def _joined(pieces: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    whole = pieces[0] if len(pieces) == 1 else mx.concatenate(pieces)
    whole = whole.reshape(shape)
    mx.eval(whole)
    return whole


def _not_finite(name: str) -> StageError:
    return StageError(f"{name} has numbers that are not finite", "weights_not_finite", tensor=name)
