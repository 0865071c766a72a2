"""GGUF files that are no model which writes or reads texts: what each is, and what to choose instead."""

from __future__ import annotations

from app.catalog.gguf.gguf_header import Header, shown
from app.core.errors import BadInput

# What other programs than llama.cpp make pictures, films and sounds with, by the architecture in the file.
MAKES_PICTURES = frozenset(
    {"aura", "chroma", "cosmos", "flux", "flux2", "hidream", "hunyuan_image", "hunyuan_video", "hyvid", "lens", "ltxv",
     "lumina2", "mochi", "omnigen2", "qwen_image", "sana", "sd1", "sd2", "sd3", "sdxl", "wan", "z_image"}
)  # fmt: skip
PROJECTORS = ("clip.", "mmproj.")
ADAPTER_ENDS = (".lora_a", ".lora_b")


def check(header: Header) -> None:
    """Raises BadInput for a file that belongs to a model and is none."""
    kind = header.text("general.type").casefold()
    architecture = header.text("general.architecture").casefold()
    if architecture == "controlvector":
        raise BadInput("gguf_control_vector", path=header.path)
    if kind == "adapter" or "adapter.type" in header.entries or _is_lora(header):
        base = shown(header.text("general.base_model.0.name"))
        if base:
            raise BadInput("gguf_lora_of", path=header.path, model=base)
        raise BadInput("gguf_lora", path=header.path)
    if kind == "mmproj" or architecture in ("clip", "mmproj") or _has(header, *PROJECTORS):
        raise BadInput("gguf_mmproj", path=header.path)
    if kind == "imatrix" or _has(header, "imatrix."):
        raise BadInput("gguf_imatrix", path=header.path)
    if architecture in MAKES_PICTURES:
        raise BadInput("gguf_pictures", path=header.path, architecture=architecture)
    if not header.tensors and "tokenizer.ggml.tokens" in header.entries:
        raise BadInput("gguf_vocabulary", path=header.path)


def _is_lora(header: Header) -> bool:
    return bool(header.tensors) and all(name.endswith(ADAPTER_ENDS) for name in header.tensors)


def _has(header: Header, *beginnings: str) -> bool:
    return any(key.startswith(beginnings) for key in header.entries)
