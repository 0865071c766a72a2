"""Tiny models that see, with random weights: a text model of tests/families, and a projector made for it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from PIL import Image

from app.catalog.gguf.gguf_file import read_header

FAMILIES = Path(__file__).parent.parent / "families"
TOKENS, TYPES, MERGES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"
CONTROL, NORMAL = 3, 1
# Written over the last tokens of the vocabulary, which are merges: what mtmd looks up for each kind of projector
NAMED = {
    "gemma3": ("<start_of_image>", "<end_of_image>"),
    "gemma4v": ("<|image>", "<image|>"),
    "idefics3": ("<fake_token_around_image>", "<global-img>", "<row_1_col_1>", "<row_1_col_2>", "ĊĊ"),
    "qwen2vl_merger": ("<|vision_start|>", "<|vision_end|>"),
    "qwen2.5vl_merger": ("<|vision_start|>", "<|vision_end|>"),
    "qwen3vl_merger": ("<|vision_start|>", "<|vision_end|>"),
}
VISION_WIDTH, HEADS, BLOCKS, PATCH = 32, 2, 2, 4
IMAGE = {
    "gemma3": 32,
    "idefics3": 16,
    "gemma4v": 48,
    "pixtral": 48,
    "qwen2vl_merger": 48,
    "qwen2.5vl_merger": 48,
    "qwen3vl_merger": 48,
}  # pixels on a side, of the whole picture or of a tile
QWEN = ("qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger")
MERGE = {"gemma3": 2, "idefics3": 2, "gemma4v": 3, **dict.fromkeys(QWEN, 2)}  # so many patches on a side become one row
ROWS = {kind: (IMAGE[kind] // PATCH // MERGE[kind]) ** 2 for kind in ("gemma3", "idefics3")}  # 16 and 4


def text_model(kind: str, family: str, to: Path) -> Path:
    """Write the model of a family with the tokens that its projector needs."""
    path = FAMILIES / f"{family}.gguf"
    header, reader = read_header(path), gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(to, header.text("general.architecture"))
    names, types = list(map(str, header.items(TOKENS))), [int(n) for n in header.items(TYPES)]
    kept = len(names) - len(NAMED[kind])
    for number, name in enumerate(NAMED[kind], kept):
        names[number], types[number] = name, NORMAL if name.startswith("Ċ") else CONTROL
    merges = [str(merge) for merge in header.items(MERGES) if "".join(str(merge).split(" ")) in names[:kept]]
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", TOKENS, TYPES, MERGES):
            continue
        kind_of = field.types[0]
        of_items = field.types[-1] if kind_of is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind_of, of_items)
    writer.add_token_list(names)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    _written(writer)
    return to


def projector(kind: str, width: int, to: Path, *, seed: int = 7, stated: str | None = None) -> Path:
    """Write a projector with random weights that makes rows of this width. stated: the kind that the file claims."""
    chance = np.random.default_rng(seed)

    def values(*shape: int, spread: float = 0.3) -> np.ndarray:
        return (chance.standard_normal(shape) * spread).astype(np.float32)

    writer = gguf.GGUFWriter(to, "clip")
    writer.add_type("mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", stated or kind)
    for key, number in {
        "embedding_length": VISION_WIDTH,
        "feed_forward_length": 2 * VISION_WIDTH,
        "block_count": BLOCKS,
        "projection_dim": width,
        "attention.head_count": HEADS,
        "image_size": IMAGE[kind],
        "patch_size": PATCH,
        "projector.scale_factor": MERGE[kind],
    }.items():
        writer.add_uint32(f"clip.vision.{key}", number)
    if kind == "idefics3":
        writer.add_uint32("clip.vision.preproc_image_size", 2 * IMAGE[kind])
    if kind == "qwen2.5vl_merger":
        writer.add_uint32("clip.vision.n_wa_pattern", BLOCKS)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_bool("clip.use_gelu", True)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    tensors = {"v.patch_embd.weight": values(VISION_WIDTH, 3, PATCH, PATCH)}
    is_siglip, is_qwen = kind in ("gemma3", "idefics3"), kind in QWEN
    n_patches = (IMAGE[kind] // PATCH) ** 2
    if is_qwen:
        tensors["v.patch_embd.weight.1"] = values(VISION_WIDTH, 3, PATCH, PATCH)
    if is_siglip or kind == "qwen3vl_merger":
        tensors["v.patch_embd.bias"] = values(VISION_WIDTH)
        tensors["v.position_embd.weight"] = values(n_patches, VISION_WIDTH)
    elif kind == "gemma4v":
        tensors["v.position_embd.weight"] = values(2, n_patches, VISION_WIDTH)
    has_bias = is_siglip or is_qwen
    for name in (*(["v.post_ln"] if has_bias else []), *(f"v.blk.{n}.ln{at}" for n in range(BLOCKS) for at in (1, 2))):
        tensors[f"{name}.weight"] = 1 + values(VISION_WIDTH, spread=0.1)
        if has_bias:
            tensors[f"{name}.bias"] = values(VISION_WIDTH, spread=0.1)
    for block in range(BLOCKS):
        together = {"attn_qkv": 3, "attn_out": 1} if kind == "qwen3vl_merger" else {}
        for name, n in (together or dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_out"), 1)).items():
            tensors[f"v.blk.{block}.{name}.weight"] = values(n * VISION_WIDTH, VISION_WIDTH)
            if has_bias:
                tensors[f"v.blk.{block}.{name}.bias"] = values(n * VISION_WIDTH)
        for name, rows, columns in (("ffn_up", 2, 1), ("ffn_down", 1, 2)):
            tensors[f"v.blk.{block}.{name}.weight"] = values(rows * VISION_WIDTH, columns * VISION_WIDTH)
            if has_bias:
                tensors[f"v.blk.{block}.{name}.bias"] = values(rows * VISION_WIDTH)
    match kind:
        case "gemma3":
            tensors["mm.input_projection.weight"] = values(VISION_WIDTH, width)
            tensors["mm.soft_emb_norm.weight"] = 1 + values(VISION_WIDTH, spread=0.1)
        case "gemma4v":
            tensors["mm.input_projection.weight"] = values(width, VISION_WIDTH)
        case "idefics3":
            tensors["mm.model.fc.weight"] = values(width, VISION_WIDTH * MERGE[kind] ** 2)
        case "qwen2vl_merger" | "qwen2.5vl_merger" | "qwen3vl_merger":
            merged = VISION_WIDTH * MERGE[kind] ** 2
            tensors |= {"mm.0.weight": values(merged, merged), "mm.0.bias": values(merged)}
            spread = 1.0 if kind == "qwen3vl_merger" else 0.3  # recurrent layers take in less of a picture
            tensors |= {"mm.2.weight": values(width, merged, spread=spread), "mm.2.bias": values(width)}
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    _written(writer)
    return to


def _written(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@dataclass(frozen=True, slots=True)
class Rgb:
    """The pixels of a picture."""

    width: int
    height: int
    data: bytes


def pixels(seed: int, width: int = 30, height: int = 20) -> Rgb:
    """A picture by chance."""
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3))
    return Rgb(width, height, values.astype(np.uint8).tobytes())


def png(picture: Rgb) -> bytes:
    """The picture as a file that loses nothing."""
    written = io.BytesIO()
    Image.frombytes("RGB", (picture.width, picture.height), picture.data).save(written, "PNG")
    return written.getvalue()
