"""The tiny models of this folder, as `make families` made them: what they are, and what transformers says with each."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent
TABLE = FOLDER / "table.json"


@dataclass(frozen=True, slots=True)
class Family:
    """One file, and the anchor it has in a second implementation."""

    name: str
    architecture: str  # GGUF's
    transformers: str  # the class
    layers: int  # without those for multi-token prediction
    mtp_layers: int  # after the others, in the file
    width: int
    seed: int
    n_bytes: int
    sha256: str
    note: str  # where llama.cpp says something else than transformers, and why
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]  # greedy, after the prompt
    margins: tuple[float, ...]  # of each token over the second best
    logits: NDArray[np.float32]  # after the prompt

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.gguf"


@cache
def families() -> dict[str, Family]:
    """All of the table, by name."""
    table: dict[str, dict[str, Any]] = json.loads(TABLE.read_text("utf-8"))
    return {name: _family(name, entry) for name, entry in table.items()}


def _family(name: str, entry: dict[str, Any]) -> Family:
    return Family(
        name=name,
        architecture=entry["architecture"],
        transformers=entry["transformers"],
        layers=entry["layers"],
        mtp_layers=entry["mtp_layers"],
        width=entry["width"],
        seed=entry["seed"],
        n_bytes=entry["n_bytes"],
        sha256=entry["sha256"],
        note=entry["note"],
        prompt=tuple(entry["prompt"]),
        tokens=tuple(entry["tokens"]),
        margins=tuple(entry["margins"]),
        logits=np.frombuffer(base64.b64decode(entry["logits"]), dtype="<f4"),
    )
