"""Embedding rows are, bit for bit, what llama.cpp reads; files that lie about theirs are refused."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from backends.contract import StageError
from backends.llamacpp.token_embedding import TokenEmbedding, native, unpacked
from testbed import tiny

KINDS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"]


@pytest.mark.parametrize("name", KINDS)
def test_both_ways_to_read_a_row_give_the_same_bits(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name]
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    chance = np.random.default_rng(1)
    raw = chance.integers(0, 256, (4, 512 // block * block_bytes), dtype=np.uint8)
    read = native(kind)
    assert read is not None
    values = np.empty((4, 512), dtype=np.float32)
    with np.errstate(all="ignore"):
        read(raw.ctypes.data, values.ctypes.data, values.size)
        other = unpacked(raw, kind)
    same = (values.view(np.uint32) == other.view(np.uint32)) | (np.isnan(values) & np.isnan(other))
    assert same.all()


@pytest.mark.parametrize("quant", ["F32", "F16", "Q8_0", "Q4_K_M"])
def test_rows_are_those_of_the_file(quant: str, tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", layers=1, width=256, ffn=256, quant=quant, tied=True)
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == "token_embd.weight")
    whole = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    ids = np.array([299, 0, 7, 7], dtype=np.int32)
    assert np.array_equal(TokenEmbedding(str(path), 256).rows(ids), whole[ids])


@pytest.mark.parametrize("token", [-1, 300])
def test_an_id_without_a_row_is_refused(token: int, tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", layers=1)
    with pytest.raises(StageError):
        TokenEmbedding(str(path), 64).rows(np.array([token], dtype=np.int32))


def test_a_file_without_such_an_embedding_is_refused(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", layers=1)
    data = path.read_bytes()
    for name, wrong in {
        "empty": b"",
        "other": b"PK" + data[2:],
        "short": data[:300],
        "no data": data[: data.index(b"token_embd.weight") + 2000],
        "renamed": data.replace(b"token_embd.weight", b"token_embd.weighs"),
    }.items():
        (tmp_path / name).write_bytes(wrong)
        with pytest.raises(StageError):
            TokenEmbedding(str(tmp_path / name), 64)
    with pytest.raises(StageError):
        TokenEmbedding(str(path), 65)
    with pytest.raises(StageError):
        TokenEmbedding(str(tmp_path / "nowhere"), 64)
