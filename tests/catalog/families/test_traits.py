"""The traits of a model that depend on its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from backends.contract import Role
from tests.catalog.raw import small, tensor


@pytest.mark.parametrize("has_factors", [False, True])
@pytest.mark.parametrize("architecture", ["phi3", "llama"])
def test_factors_for_long_contexts_tie_a_state_to_its_context(
    architecture: str, has_factors: bool, tmp_path: Path
) -> None:
    made = small(architecture=architecture)
    if has_factors:
        made.tensors.append(tensor("rope_factors_long.weight", (2,), offset=224))
        made.data += bytes(32)
    path = tmp_path / "some.gguf"
    path.write_bytes(made.bytes())
    model = model_of(read_header(path), "some", "0" * 64)
    assert {model.cuts.traits(role).by_context for role in Role} == {has_factors}
