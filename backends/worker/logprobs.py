"""How likely a sampled token was, and which were likelier: scores -> log probabilities, and their bytes."""

from __future__ import annotations

import struct

import numpy as np

from backends.contract import MOST_LIKELY
from backends.numbers import Rows

_PAIR = struct.Struct("<if")

Likely = tuple[
    tuple[int, float], ...
]  # token id, natural log of its probability; the sampled one first


def likeliest(logits: Rows, token: int, n: int) -> Likely:
    """The sampled token, then the `n` likeliest, by the model's own scores [n_vocab]: no temperature,
    bias, penalty or grammar."""
    scores = logits.astype(np.float64)
    scores -= scores.max()
    scores -= np.log(np.exp(scores).sum())
    n = min(n, MOST_LIKELY, len(scores))
    best = np.argpartition(-scores, n - 1)[:n] if n else np.empty(0, dtype=np.intp)
    best = best[np.lexsort((best, -scores[best]))]
    return tuple((int(one), float(scores[one])) for one in (token, *best))


def likely_to_wire(likely: Likely) -> bytes:
    return b"".join(_PAIR.pack(token, score) for token, score in likely)
