"""Files that belong to a model and are none: each is named, with what to choose instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.core.errors import BadInput
from app.core.reasons import said

VALUES = np.zeros((4, 8), dtype=np.float32)
Write = Callable[[Any], None]


def written(path: Path, architecture: str, write: Write) -> Path:
    """Write a file as the programs that make such files do: a key or two, and tensors."""
    writer = gguf.GGUFWriter(str(path), architecture)
    write(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def lora(writer: Any) -> None:
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 16.0)
    for end in "ab":
        writer.add_tensor(f"blk.0.attn_q.weight.lora_{end}", VALUES)


def named_lora(writer: Any) -> None:
    lora(writer)
    writer.add_base_model_count(1)
    writer.add_base_model_name(0, "Qwen3 4B")


def bare_lora(writer: Any) -> None:
    for end in "ab":
        writer.add_tensor(f"blk.0.attn_q.weight.lora_{end}", VALUES)


def projector(writer: Any) -> None:
    writer.add_type("mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_tensor("v.patch_embd.weight", VALUES)


def old_projector(writer: Any) -> None:
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_tensor("v.patch_embd.weight", VALUES)


def imatrix(writer: Any) -> None:
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["calibration.txt"])
    writer.add_uint32("imatrix.chunk_count", 100)
    writer.add_tensor("blk.0.attn_q.weight.in_sum2", VALUES)


def control(writer: Any) -> None:
    writer.add_uint32("controlvector.layer_count", 1)
    writer.add_tensor("direction.1", VALUES[0])


def plain(writer: Any) -> None:
    writer.add_tensor("double_blocks.0.img_attn.qkv.weight", VALUES)


@pytest.mark.parametrize(
    ("architecture", "write", "code", "words"),
    [
        ("llama", lora, "gguf_lora", "LoRA adapter"),
        ("llama", bare_lora, "gguf_lora", "LoRA adapter"),
        ("qwen3", named_lora, "gguf_lora_of", "Choose the file of Qwen3 4B"),
        ("clip", projector, "gguf_mmproj", "without mmproj in its name"),
        ("clip", old_projector, "gguf_mmproj", "without mmproj in its name"),
        ("imatrix", imatrix, "gguf_imatrix", "importance matrix"),
        ("controlvector", control, "gguf_control_vector", "control vector"),
        ("flux", plain, "gguf_pictures", "generates images"),
    ],
)
def test_it_is_named_with_what_to_choose_instead(
    tmp_path: Path, architecture: str, write: Write, code: str, words: str
) -> None:
    path = written(tmp_path / "x.gguf", architecture, write)
    with pytest.raises(BadInput) as error:
        model_of(read_header(path), "x", "")
    assert error.value.reason.code == code
    assert words in said(error.value)
    assert "Choose" in said(error.value)


def test_an_imatrix_without_an_architecture_is_named_too(tmp_path: Path) -> None:
    """llama.cpp's own tool writes it this way."""
    path = written(tmp_path / "x.gguf", "", imatrix)
    with pytest.raises(BadInput) as error:
        model_of(read_header(path), "x", "")
    assert error.value.reason.code == "gguf_imatrix"
