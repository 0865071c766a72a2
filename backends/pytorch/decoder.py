"""The parts that the families share: norms, rotations, feed-forward parts, and the head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from backends.contract import StageConfig
from backends.gguf_weights.cells import CacheShape
from backends.gguf_weights.rotation import Frequencies
from backends.gguf_weights.sizes import Pairs, Sizes
from backends.pytorch.step import Step
from backends.pytorch.weights import Tensor, Weights


def norm(rows: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Return each row divided by its root mean square, times `weight`."""
    return functional.rms_norm(rows, rows.shape[-1:], weight, eps)


class Rotation:
    """The rotation of queries and keys by their positions. Values behind the rotated ones stay as they are."""

    def __init__(self, frequencies: Frequencies, pairs: Pairs, n_positions: int, device: Any) -> None:
        cosines, sines = frequencies.tables(n_positions)
        self._n_rot = 2 * cosines.shape[1]
        self._pairs = pairs
        self._cosines, self._sines = (torch.from_numpy(table).to(device) for table in (cosines, sines))

    def __call__(self, heads: Tensor, step: Step) -> Tensor:
        """Return `[n, heads, values]` rotated."""
        cosines, sines = (table[step.positions][:, None] for table in (self._cosines, self._sines))
        turned, rest = heads[..., : self._n_rot], heads[..., self._n_rot :]
        if self._pairs is Pairs.ADJACENT:
            first, second = turned[..., 0::2], turned[..., 1::2]
        else:
            first, second = turned.chunk(2, dim=-1)
        both = (first * cosines - second * sines, first * sines + second * cosines)
        if self._pairs is Pairs.ADJACENT:
            done = torch.stack(both, dim=-1).flatten(-2)
        else:
            done = torch.cat(both, dim=-1)
        return torch.cat([done, rest], dim=-1) if rest.shape[-1] else done


class Decoder:
    """The layers of a stage. A family adds what its layers compute.

    shapes: what each layer caches; None: it has a state instead.
    """

    head_norm_name = "output_norm"

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        self.weights, self.config, self.file = weights, config, weights.file
        self.sizes = Sizes.of(self.file)
        self.shapes: list[CacheShape | None] = [
            CacheShape(n_heads, self.sizes.key, self.sizes.value) for n_heads in self.sizes.n_kv_heads
        ]
        self.n_vocab = 0
        if config.role.has_head:
            self._load_head()

    def _load_head(self) -> None:
        name = "output" if self.file.has_tensor("output.weight") else "token_embd"
        self.n_vocab = self.file.tensor(f"{name}.weight", (-1, self.sizes.width)).shape[0]
        self.head = self.weights.matrix(name, self.n_vocab, self.sizes.width)
        self.head_norm = self.weights.vector(f"{self.head_norm_name}.weight", self.sizes.width)

    def rotation(self, frequencies: Frequencies, pairs: Pairs) -> Rotation:
        return Rotation(frequencies, pairs, self.config.kv_cells, self.weights.device)

    def enter(self, rows: Tensor) -> Tensor:
        """Return the input of the first layer for embeddings of tokens."""
        return rows

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        """Return a layer's output for its input."""
        raise NotImplementedError

    def leave(self, rows: Tensor) -> Tensor:
        """Return the logits for outputs of the last layer."""
        return self.head(norm(rows, self.head_norm, self.sizes.eps))


Gating = Callable[[Tensor, Tensor], Tensor]  # of the gate and of what it gates


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return functional.silu(gate) * up


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """Gate with GELU by its approximation with tanh, as llama.cpp does."""
    return functional.gelu(gate, approximate="tanh") * up


class FeedForward:
    """A feed-forward part whose one half gates the other. Both are one matrix in some families.

    suffix: of the tensors' names, for a part beside experts.
    """

    def __init__(
        self, weights: Weights, layer: str, width: int, n_inner: int, gating: Gating = swiglu, suffix: str = ""
    ) -> None:
        self._gate = None
        n_up = n_inner
        if weights.file.has_tensor(f"{layer}.ffn_gate{suffix}.weight"):
            self._gate = weights.matrix(f"{layer}.ffn_gate{suffix}", n_inner, width)
        else:
            n_up = 2 * n_inner
        self._up = weights.matrix(f"{layer}.ffn_up{suffix}", n_up, width)
        self._down = weights.matrix(f"{layer}.ffn_down{suffix}", width, n_inner)
        self._gating = gating

    def __call__(self, rows: Tensor) -> Tensor:
        gate, up = self._up(rows).chunk(2, dim=-1) if self._gate is None else (self._gate(rows), self._up(rows))
        return self._down(self._gating(gate, up))
