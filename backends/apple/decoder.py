"""The parts that the families share: norms, rotations, feed-forward parts, and the head."""

from __future__ import annotations

import math
from collections.abc import Callable

import mlx.core as mx

from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights.cells import CacheShape
from backends.gguf_weights.rotation import Frequencies
from backends.gguf_weights.sizes import Pairs, Sizes

TANH_SCALE, TANH_CUBE = math.sqrt(2 / math.pi), 0.044715  # of GELU's approximation


def norm(rows: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Return each row divided by its root mean square, times `weight`."""
    return mx.fast.rms_norm(rows, weight, eps)


def heads(rows: Tensor, length: int) -> Tensor:
    """Return rows `[n, heads * length]` as `[n, heads, length]`."""
    return rows.reshape(rows.shape[0], -1, length)


class Rotation:
    """The rotation of queries and keys by their positions. Only the first `n_rot` values of a head are rotated."""

    def __init__(self, frequencies: Frequencies, pairs: Pairs, n_positions: int) -> None:
        cosines, sines = frequencies.tables(n_positions)
        self._n_rot = 2 * cosines.shape[1]
        self._pairs = pairs
        self._cosines, self._sines = mx.array(cosines), mx.array(sines)

    def __call__(self, of_heads: Tensor, step: Step) -> Tensor:
        """Return the queries or keys `[n, heads, values]`, rotated by the positions of the step's rows."""
        cosines, sines = (table[step.positions][:, None] for table in (self._cosines, self._sines))
        turned, rest = of_heads[..., : self._n_rot], of_heads[..., self._n_rot :]
        if self._pairs is Pairs.ADJACENT:
            first, second = turned[..., 0::2], turned[..., 1::2]
        else:
            first, second = mx.split(turned, 2, axis=-1)
        both = [first * cosines - second * sines, first * sines + second * cosines]
        if self._pairs is Pairs.ADJACENT:
            done = mx.stack(both, axis=-1).reshape(turned.shape)
        else:
            done = mx.concatenate(both, axis=-1)
        return mx.concatenate([done, rest], axis=-1) if rest.shape[-1] else done


class Decoder:
    """The layers of a stage. Each family's subclass defines the computation of a layer.

    shapes: the keys and values that each layer caches, or None for a layer with a recurrent state instead.
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
        return Rotation(frequencies, pairs, self.config.kv_cells)

    def enter(self, rows: Tensor) -> Tensor:
        """Return the first layer's input, given the token embeddings."""
        return rows

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        """Return the output of layer `index` for the input `rows`."""
        raise NotImplementedError

    def leave(self, rows: Tensor) -> Tensor:
        """Return the logits, given the outputs of the last layer."""
        return self.head(norm(rows, self.head_norm, self.sizes.eps))


Gating = Callable[[Tensor, Tensor], Tensor]  # of the gate and of what it gates


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return gate * mx.sigmoid(gate) * up


def gelu(rows: Tensor) -> Tensor:
    """Return the tanh approximation of GELU, which llama.cpp also uses."""
    return 0.5 * rows * (1 + mx.tanh(TANH_SCALE * rows * (1 + TANH_CUBE * rows * rows)))


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    return gelu(gate) * up


class FeedForward:
    """A gated feed-forward network. In some families, one matrix contains both the gate and the up projection.

    suffix: appended to the tensors' base names; a shared expert uses it.
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
        gate, up = mx.split(self._up(rows), 2, axis=-1) if self._gate is None else (self._gate(rows), self._up(rows))
        return self._down(self._gating(gate, up))
