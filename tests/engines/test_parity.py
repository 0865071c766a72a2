"""Every family in PyTorch: what llama.cpp computes, whole, cut and mixed with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.pytorch.families.registry import FAMILIES
from tests.engines.parity import gelu_of_halves, parity
from tests.families import proof
from tests.families.fixtures import families

NAMES = tuple(name for name, family in families().items() if family.architecture in FAMILIES)
WITHIN = 5e-5  # of the largest logit; up to 2.1e-5 was seen, depending on the processor
WITHIN_TABLE = 1e-3  # with GELU from a table of halves, whose last bits decide
CUT_WITHIN = {"glm4": 2e-6}  # its cuts hold rows in another order, which changes the order of sums


@pytest.mark.parametrize("name", NAMES)
def test_a_family_is_computed_as_by_llama_cpp(name: str, tmp_path: Path) -> None:
    is_gemma = families()[name].architecture.startswith("gemma")
    with gelu_of_halves():
        result = parity(proof.home(tmp_path), families()[name].path, tmp_path, name)
    assert result.tokens_equal, result
    assert max(result.whole, result.mixed) <= (WITHIN_TABLE if is_gemma else WITHIN), result
    assert result.cut <= CUT_WITHIN.get(name, 0.0), result


def test_each_architecture_is_among_the_tiny_models() -> None:
    assert {families()[name].architecture for name in NAMES} == set(FAMILIES)
