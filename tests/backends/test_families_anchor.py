"""The anchor: llama.cpp with a whole tiny model says what transformers says with it in float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from numpy.typing import NDArray

from backends.contract import Layers, Logits, Role, Segment, StageConfig, Tokens
from backends.llamacpp.stage import LlamaStage
from tests.families.fixtures import Family, families

Row = NDArray[np.float32]
# Of a logit; they spread by one. llama.cpp computes with inputs in half precision. What is really different
# was apart by 0.05 (positions where there should be none) to 3 (another gate).
MOST_APART = 0.03
NEAR_TIE = 0.02  # two logits that are closer may change places
KV_CELLS, BATCH_ROWS = 256, 64


def rows(family: Family) -> Iterator[Row]:
    """The scores after the prompt and after each of the reference's tokens, in llama.cpp."""
    path, layers = str(family.path), Layers(0, family.layers)
    config = StageConfig(
        "llamacpp", path, path, Role.WHOLE, layers, family.width,
        slots=1, kv_cells=KV_CELLS, batch_rows=BATCH_ROWS, threads=1,
    )  # fmt: skip
    with closing(LlamaStage(config)) as stage:
        ids, pos = family.prompt, 0
        for token in family.tokens:
            out = stage.forward(Tokens((Segment(0, len(ids), pos),), ids), [0])
            assert isinstance(out, Logits)
            yield np.frombuffer(out.rows, np.float32).copy()
            ids, pos = (token,), pos + len(ids)


@pytest.mark.parametrize("family", [family for family in families().values() if not family.note], ids=lambda f: f.name)
def test_llamacpp_says_what_transformers_says(family: Family) -> None:
    results = list(rows(family))
    assert float(np.abs(results[0] - family.logits).max()) < MOST_APART
    for row, token, margin in zip(results, family.tokens, family.margins, strict=True):
        best = int(row.argmax())
        assert best == token or (margin < NEAR_TIE and row[best] - row[token] < NEAR_TIE)


@pytest.mark.parametrize("family", [family for family in families().values() if family.note], ids=lambda f: f.name)
def test_what_is_known_to_differ_still_does(family: Family) -> None:
    """Otherwise its note, and the line in docs/families-anchor.md, are no longer true."""
    first = next(rows(family))
    assert float(np.abs(first - family.logits).max()) > MOST_APART
