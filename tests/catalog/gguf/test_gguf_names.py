"""Tests of the facts in a file's name."""

from __future__ import annotations

import pytest

from app.catalog.gguf.gguf_file import is_model, part_names, parts_of, quantization_of, recommended_file


@pytest.mark.parametrize(
    ("file", "quantization"),
    [
        ("Qwen_Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("gemma-3-4b-it-q4_0.gguf", "Q4_0"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("Model-IQ2_XXS.gguf", "IQ2_XXS"),
        ("UD-Q4_K_XL/Model-UD-Q4_K_XL-00001-of-00002.gguf", "UD-Q4_K_XL"),
        ("llama.Q8_0.gguf", "Q8_0"),
        ("x-fp16.gguf", "F16"),
        ("x-BF16.gguf", "BF16"),
        ("Q4model.gguf", None),
        ("model.gguf", None),
    ],
)
def test_the_quantization_of_a_name(file: str, quantization: str | None) -> None:
    assert quantization_of(file) == quantization


def test_parts_and_companions_are_told_apart() -> None:
    assert parts_of("x-00001-of-00003.gguf") == 3
    assert parts_of("x-00001-of-00001.gguf") is None
    assert parts_of("x.gguf") is None
    assert part_names("a/x-00002-of-00002.GGUF") == ("a/x-00001-of-00002.GGUF", "a/x-00002-of-00002.GGUF")
    assert part_names("x.gguf") == ("x.gguf",)
    assert is_model("a/x.GGUF")
    assert not is_model("mmproj-x-f16.gguf")
    assert not is_model("README.md")


def test_the_one_to_begin_with() -> None:
    files = ["x-Q2_K.gguf", "x-Q8_0.gguf", "x-Q4_K_M-00001-of-00002.gguf", "x-Q5_K_M.gguf"]
    assert recommended_file(files) == "x-Q4_K_M-00001-of-00002.gguf"
    assert recommended_file([*files, "x-Q4_K_M.gguf"]) == "x-Q4_K_M.gguf"
    assert recommended_file(["x-Q2_K.gguf"]) is None
