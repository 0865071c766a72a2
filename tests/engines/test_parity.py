"""Every family in PyTorch: what llama.cpp computes, whole, cut and mixed with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch.nn import functional

from backends.pytorch.families.registry import FAMILIES
from tests.engines.parity import Parity, parity
from tests.families import proof
from tests.families.fixtures import families

NAMES = tuple(name for name, family in families().items() if family.architecture in FAMILIES)
WITHIN = 2e-5  # of the largest logit
WITHIN_TABLE = 1e-3  # with GELU from a table of halves, whose last bits decide
CUT_WITHIN = {"glm4": 2e-6}  # its cuts hold rows in another order, which changes the order of sums


def gelu_of_halves(gelu: Callable[..., Any]) -> Callable[..., Any]:
    """GELU as llama.cpp computes it on processors: from a table of halves, except where it is 0 or its input."""

    def rounded(rows: Any, *, approximate: str) -> Any:
        inner = gelu(rows.half().float(), approximate=approximate).half().float()
        return torch.where(rows <= -10, 0.0, torch.where(rows >= 10, rows, inner))

    return rounded


@pytest.mark.parametrize("name", NAMES)
def test_a_family_is_computed_as_by_llama_cpp(name: str, tmp_path: Path) -> None:
    is_gemma = families()[name].architecture.startswith("gemma")
    with patch.object(functional, "gelu", gelu_of_halves(functional.gelu)):
        found: Parity = parity(proof.home(tmp_path), families()[name].path, tmp_path, name)
    assert found.tokens_equal, found
    assert max(found.whole, found.mixed) <= (WITHIN_TABLE if is_gemma else WITHIN), found
    assert found.cut <= CUT_WITHIN.get(name, 0.0), found


def test_each_architecture_is_among_the_tiny_models() -> None:
    assert {families()[name].architecture for name in NAMES} == set(FAMILIES)
