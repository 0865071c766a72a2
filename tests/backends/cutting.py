"""The smallest cutter of llama stage files: what the engine expects, written a second time for its tests."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from backends.contract import Layers, Role, StageConfig

DROPPED = ("tokenizer.", "GGUF.", "general.", "llama.block_count", "llama.vocab_size")


def stage_file(whole: Path, layers: Layers, role: Role) -> Path:
    """The run as a GGUF of its own beside the whole model's file."""
    path = whole.with_name(f"{whole.stem}-{layers.first}-{layers.last}-{role}.gguf")
    reader = gguf.GGUFReader(whole)
    writer = gguf.GGUFWriter(str(path), "llama")
    for field in reader.fields.values():
        if not field.name.startswith(DROPPED):
            writer.add_key_value(field.name, field.contents(), field.types[0])
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    head = tensors.get("output.weight", tensors["token_embd.weight"])
    n_vocab = head.data.shape[0] if role is Role.LAST else 32
    writer.add_block_count(len(layers))
    writer.add_vocab_size(n_vocab)
    writer.add_tokenizer_model("no_vocab")
    if role is Role.LAST:
        writer.add_tensor("token_embd.weight", head.data, raw_dtype=head.tensor_type)
    else:
        width = int(tensors["token_embd.weight"].shape[0])
        writer.add_tensor("token_embd.weight", np.zeros((32, width), dtype=np.float16))
    for name, tensor in _renamed(tensors, layers):
        writer.add_tensor(name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _renamed(tensors: dict[str, Any], layers: Layers) -> Iterable[tuple[str, Any]]:
    for name, tensor in tensors.items():
        kind, *rest = name.split(".")
        if kind == "output_norm":
            yield name, tensor
        elif kind == "blk" and layers.first <= int(rest[0]) < layers.last:
            yield ".".join(["blk", str(int(rest[0]) - layers.first), *rest[1:]]), tensor


def runs(n_layers: int, cuts: tuple[int, ...]) -> list[tuple[Layers, Role]]:
    """The runs between the cuts with their roles; no cut: the whole model."""
    ends = [0, *cuts, n_layers]
    pairs = [Layers(first, last) for first, last in pairwise(ends)]
    if len(pairs) == 1:
        return [(pairs[0], Role.WHOLE)]
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(pairs) - 2), Role.LAST]
    return list(zip(pairs, roles, strict=True))


def config(
    whole: Path, layers: Layers, role: Role, width: int, *, slots: int = 1, kv_cells: int = 256,
    batch_rows: int = 64, flash: bool = True, apart: bool = False,
) -> StageConfig:  # fmt: skip
    """A stage of this model, cut when it is not cut yet."""
    path = whole if role is Role.WHOLE else stage_file(whole, layers, role)
    return StageConfig(
        "llamacpp", str(path), str(whole), role, layers, width,
        slots, kv_cells, batch_rows, threads=1, flash_attention=flash, apart=apart,
    )  # fmt: skip
