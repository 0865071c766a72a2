"""Files as people have them, with quantized weights: cut, they say what the whole says."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from app.catalog.gguf.gguf_file import read_header
from backends.llamacpp import binding
from tests.families import proof
from tests.families.driven import Workers
from tests.families.fixtures import families

# one of each way in which a cut changes tensors, or what stands beside them
KINDS = ("llama-tied", "gemma2", "olmo2", "glm4", "glm4-moe-mtp", "deepseek-v3", "qwen3-5-moe", "nemotron-h")
Q8_0 = 8  # ggml_type


def quantized(path: Path, to: Path) -> Path:
    """The model of `path` in Q8_0, by llama.cpp's own hand."""
    llama = binding.load()
    params = llama.llama_model_quantize_default_params()
    params.ftype, params.nthread = llama.LLAMA_FTYPE_MOSTLY_Q8_0, 1
    code = llama.llama_model_quantize(str(path).encode(), str(to).encode(), ctypes.byref(params))
    assert code == 0, binding.take_log()
    return to


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", KINDS)
async def test_a_quantized_file_is_cut_like_its_original(name: str, workers: Workers, tmp_path: Path) -> None:
    path = quantized(families()[name].path, tmp_path / "small-Q8_0.gguf")
    kinds = [tensor.kind for tensor in read_header(path).tensors.values()]
    assert kinds.count(Q8_0) > len(kinds) // 4
    home = proof.home(tmp_path)
    entry = home.shelf.import_file(path)
    cuts = [*proof.twos(entry.model)[::2], *proof.threes(entry.model)[:1]]
    verdict = await proof.prove(workers, home, entry, cuts)
    assert verdict.holds, verdict
