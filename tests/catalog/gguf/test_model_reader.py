"""Header -> Model: the facts of a real header, and a sentence for metadata that cannot be."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import pytest

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.core.errors import BadInput
from app.core.model import Model
from app.core.reasons import said
from backends.contract import Layers, Role
from testbed import tiny
from tests.catalog.raw import Raw, array, number, small, string, tensor


def model(path: Path, raw: Raw | None = None) -> Model:
    if raw is not None:
        path.write_bytes(raw.bytes())
    return model_of(read_header(path), "m", "0" * 64)


def odd(tmp_path: Path, raw: Raw) -> str:
    with pytest.raises(BadInput) as error:
        model(tmp_path / "odd.gguf", raw)
    assert said(error.value)
    return error.value.reason.code


@pytest.mark.parametrize("tied", [False, True])
def test_the_facts_of_a_model(tmp_path: Path, tied: bool) -> None:
    path = tiny.llama(tmp_path / "t.gguf", layers=3, width=256, ffn=512, quant="Q4_K_M", tied=tied)
    entry = model(path)
    sizes = {tensor.name: int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors}
    layers = [sum(n for name, n in sizes.items() if name.startswith(f"blk.{layer}.")) for layer in range(3)]
    assert (entry.architecture, entry.n_layers, entry.width, entry.n_vocab) == ("llama", 3, 256, 300)
    assert entry.weights.layer_bytes == tuple(layers)
    assert entry.weights.embedding_bytes == sizes["token_embd.weight"]
    assert entry.weights.head_bytes == sizes["token_embd.weight" if tied else "output.weight"]
    assert entry.weights.tied is tied
    assert entry.weights.shared_bytes == sizes["output_norm.weight"]
    assert entry.stage_bytes(entry.layers, Role.WHOLE) == sum(sizes.values())
    assert entry.file_bytes == path.stat().st_size
    assert entry.kv_bytes_per_token == (2 * (64 + 64) * 2,) * 3  # kv heads, head dim twice, f16
    assert entry.kv_bytes(Layers(1, 3), 100) == 100 * 2 * 512
    assert entry.quantization == "Q4_K_M"
    assert entry.has_template
    assert (entry.cuts.boundaries, entry.cuts.whole_reason) == ((1, 2), None)


def test_a_file_that_names_no_mix_is_named_by_most_of_its_bytes(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "t.gguf", layers=3, width=256, ffn=512, quant="Q4_K")
    assert model(path).quantization == "Q4_K"


def test_what_a_file_says_of_itself(tmp_path: Path) -> None:
    more = [
        number("general.file_type", 15),
        string("general.license", "apache-2.0\n\x1b[31m"),
        array("llama.attention.head_count_kv", 4, 2, struct.pack("<II", 2, 1)),
        number("llama.attention.key_length", 6),
        number("llama.attention.value_length", 4),
    ]
    entry = model(tmp_path / "m.gguf", small(more=more))
    assert entry.quantization == "Q4_K_M"
    assert entry.license == "apache-2.0??[31m"
    assert entry.kv_bytes_per_token == (2 * 10 * 2, 1 * 10 * 2)
    assert not entry.has_template


@pytest.mark.parametrize(
    ("architecture", "more", "layers", "code"),
    [
        ("qwen9", [], 2, "whole_family"),
        ("llama", [], 1, "whole_one_layer"),
        ("llama", [array("llama.strange", 4, 2, bytes(8))], 2, "whole_variant"),
        ("llama", [number("llama.nextn_predict_layers", 1)], 2, "whole_variant"),
        ("mistral4", [number("mistral4.leading_dense_block_count", 1)], 2, "whole_variant"),
        ("glm4", [array("glm4.rope.dimension_sections", 4, 4, bytes(16))], 2, "whole_variant"),
        ("gemma4", [number("gemma4.attention.shared_kv_layers", 1)], 2, "whole_variant"),
        ("gemma4", [number("gemma4.embedding_length_per_layer_input", 8)], 2, "whole_variant"),
        ("lfm2", [number("lfm2.attention.sliding_window", 9)], 2, "whole_variant"),
        ("smollm3", [], 2, "whole_small"),
    ],
)
def test_what_is_not_proved_runs_whole(
    tmp_path: Path, architecture: str, more: list[bytes], layers: int, code: str
) -> None:
    raw = small(more=more, architecture=architecture, block_count=layers)
    if layers == 1:
        raw.tensors[2] = tensor("rope_freqs.weight", (8,), offset=160)
    entry = model(tmp_path / "m.gguf", raw)
    assert entry.cuts.boundaries == ()
    assert entry.cuts.whole_reason
    assert entry.cuts.whole_reason.code == code
    assert said(entry.cuts.whole_reason)
    assert entry.may_cut((entry.layers,))


ABSURD = {
    "no layers": ("gguf_odd", small(block_count=0)),
    "a million layers": ("gguf_odd", small(block_count=1_000_000)),
    "no width": ("gguf_odd", small(embedding_length=0)),
    "huge width": ("gguf_odd", small(embedding_length=1 << 31)),
    "other width": ("gguf_shape", small(embedding_length=16)),
    "no context": ("gguf_odd", small(context_length=0)),
    "too many heads": ("gguf_odd", small(attention_head_count=9)),
    "layers as text": ("gguf_odd", small("block_count", [string("llama.block_count", "2")])),
    "layers as array": ("gguf_odd", small("block_count", [array("llama.block_count", 4, 1, bytes(4))])),
    "array too short": ("gguf_odd", small(more=[array("llama.attention.head_count_kv", 4, 1, bytes(4))])),
    "array of huge numbers": ("gguf_odd", small(more=[array("llama.attention.head_count_kv", 4, 2, b"\xff" * 8)])),
    "no heads": ("gguf_key_missing", small("attention.head_count")),
    "no layer count": ("gguf_key_missing", small("block_count")),
    "no context length": ("gguf_key_missing", small("context_length")),
    "no architecture": ("gguf_key_missing", small("general.architecture")),
    "missing layer": ("gguf_layer_missing", small(block_count=3)),
    "extra layer": ("gguf_layer_extra", small(block_count=1)),
    "part by its metadata": ("gguf_part", small(more=[number("split.count", 3)])),
    "other vocabulary": ("gguf_odd", small(more=[array("tokenizer.ggml.tokens", 8, 1, bytes(8))])),
    "vocabulary alone": ("gguf_layer_missing", Raw(small().entries)),
}


@pytest.mark.parametrize("case", ABSURD)
def test_absurd_metadata_has_its_sentence(tmp_path: Path, case: str) -> None:
    code, raw = ABSURD[case]
    assert odd(tmp_path, raw) == code


def test_an_embedding_is_needed(tmp_path: Path) -> None:
    raw = small()
    raw.tensors[0] = tensor("other.weight", (8, 4))
    assert odd(tmp_path, raw) == "gguf_tensor_missing"


def test_width_beyond_a_word(tmp_path: Path) -> None:
    raw = small("embedding_length")
    key = string("llama.embedding_length", "")[:-12]
    raw.entries.append(key + struct.pack("<IQ", 10, 1 << 40))
    assert odd(tmp_path, raw) == "gguf_odd"


def test_an_architecture_is_a_plain_word(tmp_path: Path) -> None:
    raw = small()
    raw.entries[0] = string("general.architecture", "../llama{x}")
    assert odd(tmp_path, raw) == "gguf_odd"
