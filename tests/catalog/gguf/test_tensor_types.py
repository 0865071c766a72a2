"""The table of number types, beside the one of the gguf package."""

from __future__ import annotations

import gguf

from app.catalog.gguf import tensor_types


def test_sizes_are_those_of_gguf_which_lacks_one_and_is_wrong_about_another() -> None:
    """A block of Q8_1 holds two half floats beside its 32 bytes, by `ggml-common.h`, and gguf counts two floats."""
    theirs = {int(kind): (kind.name, *size) for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert dict(theirs.items() - tensor_types.TENSORS.items()) == {9: ("Q8_1", 32, 40)}
    assert dict(tensor_types.TENSORS.items() - theirs.items()) == {9: ("Q8_1", 32, 36), 42: ("Q2_0", 64, 18)}
