"""Every family in MLX: what llama.cpp computes, whole, cut and mixed with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import mlx.core as mx
import pytest

from backends.apple import decoder
from backends.apple.families.registry import FAMILIES
from backends.contract import APPLE
from tests.engines.parity import Parity, parity
from tests.families import proof
from tests.families.fixtures import families

NAMES = tuple(name for name, family in families().items() if family.architecture in FAMILIES)
WITHIN = 5e-5  # of the largest logit
WITHIN_TABLE = 1e-3  # with GELU from a table of halves, whose last bits decide
CUT_WITHIN = {"glm4": 2e-6}  # its cuts hold rows in another order, which changes the order of sums
GELU = decoder.gelu


def gelu_of_halves(rows: Any) -> Any:
    """GELU as llama.cpp computes it on processors: from a table of halves, except where it is 0 or its input."""
    inner = GELU(rows.astype(mx.float16).astype(mx.float32)).astype(mx.float16).astype(mx.float32)
    return mx.where(rows <= -10, 0.0, mx.where(rows >= 10, rows, inner))


@pytest.mark.parametrize("name", NAMES)
def test_a_family_is_computed_as_by_llama_cpp(name: str, tmp_path: Path) -> None:
    is_gemma = families()[name].architecture.startswith("gemma")
    with patch.object(decoder, "gelu", gelu_of_halves):
        result: Parity = parity(proof.home(tmp_path), families()[name].path, tmp_path, name, APPLE)
    assert result.tokens_equal, result
    assert max(result.whole, result.mixed) <= (WITHIN_TABLE if is_gemma else WITHIN), result
    assert result.cut <= CUT_WITHIN.get(name, 0.0), result


def test_each_architecture_is_among_the_tiny_models() -> None:
    assert {families()[name].architecture for name in NAMES} == set(FAMILIES)
