"""The frequencies of rotary positions, as llama.cpp computes them from a file's metadata."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backends.contract import StageError
from backends.gguf_weights.stage_file import StageFile

BETA_FAST, BETA_SLOW = 32.0, 1.0


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The angle by which each pair of values rotates per position, and a factor for all rotated values."""

    per_pair: NDArray[np.float64]
    magnitude: float = 1.0

    def tables(self, n_positions: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the cosines and the sines for each position, times the factor: float32 `[n_positions, pairs]`."""
        angles = np.arange(n_positions)[:, None] * self.per_pair
        cosines, sines = np.cos(angles) * self.magnitude, np.sin(angles) * self.magnitude
        return cosines.astype(np.float32), sines.astype(np.float32)


def plain(base: float, n_rot: int, factors: NDArray[np.float32] | None = None, scale: float = 1.0) -> Frequencies:
    """Return frequencies that fall from 1 toward 1/base, each multiplied by `scale` and divided by its factor."""
    per_pair = scale * base ** (-np.arange(0, n_rot, 2, dtype=np.float64) / n_rot)
    return Frequencies(per_pair if factors is None else per_pair / factors.astype(np.float64))


def scaled(file: StageFile, base: float, n_rot: int, factors: NDArray[np.float32] | None = None) -> Frequencies:
    """Return frequencies with the scaling that the file specifies (linear, YaRN, or long and short factors).

    Raises StageError if they are not finite numbers.
    """
    try:
        with np.errstate(all="ignore"):
            frequencies = _scaled(file, base, n_rot, factors)
    except (ArithmeticError, ValueError):  # such as the logarithm of a length of 0
        frequencies = None
    if frequencies is None or not np.isfinite([*frequencies.per_pair, frequencies.magnitude]).all():
        raise StageError(f"{file.path} has impossible rotations", "weights_metadata", key=f"{file.architecture}.rope")
    return frequencies


def _scaled(file: StageFile, base: float, n_rot: int, factors: NDArray[np.float32] | None) -> Frequencies:
    factor = file.number("rope.scaling.factor", file.number("rope.scale_linear", 0.0))
    kind = file.text("rope.scaling.type", "linear")
    own = file.number("rope.scaling.attn_factor", 1.0)
    scale = 1.0 if kind == "none" or not factor else 1.0 / factor
    if kind != "yarn":
        return Frequencies(plain(base, n_rot, factors, scale).per_pair, own)
    stretched = plain(base, n_rot, factors).per_pair
    fast, slow = (file.number(f"rope.scaling.yarn_beta_{name}", value)
                  for name, value in (("fast", BETA_FAST), ("slow", BETA_SLOW)))  # fmt: skip
    trained = file.integer("rope.scaling.original_context_length", file.integer("context_length"))
    first = max(0.0, math.floor(_turns_at(n_rot, trained, fast, base)))
    last = min(n_rot - 1.0, math.ceil(_turns_at(n_rot, trained, slow, base)))
    ramp = 1 - np.clip((np.arange(n_rot // 2) - first) / max(0.001, last - first), 0, 1)
    per_pair = stretched * (scale * (1 - ramp) + ramp)
    logarithm = file.number("rope.scaling.yarn_log_multiplier", 0.0)
    if file.architecture == "deepseek2":
        return Frequencies(per_pair, own if logarithm else own * magnitude(1 / scale, 1.0))
    return Frequencies(per_pair, own * magnitude(1 / scale, 1.0) / magnitude(1 / scale, logarithm))


def magnitude(factor: float, multiplier: float) -> float:
    """Return YaRN's scale for queries and keys if the context is `factor` times the one of the training."""
    return 1.0 if factor <= 1 else 0.1 * multiplier * math.log(factor) + 1.0


def _turns_at(n_rot: int, trained: int, turns: float, base: float) -> float:
    """Return the index of the pair that makes `turns` full turns within `trained` positions."""
    return n_rot * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(base))
