"""Whether a model gives one vector for a whole text, and whether it writes at all."""

from __future__ import annotations

from app.catalog.gguf_header import Header

# Encoders: each position sees the ones behind it too, and none predicts the next. Source: llama.cpp's llm_arch.
ENCODERS = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "neo-bert", "modern-bert", "eurobert",
     "gemma-embedding", "llama-embed"}
)  # fmt: skip
NONE, RANK = 0, 4  # llama.cpp's pooling types that give no vector; 1 to 3 are mean, first and last
MOST = 64


def writes(architecture: str) -> bool:
    return architecture not in ENCODERS


def embeds(header: Header, architecture: str) -> bool:
    """Whether the file says how its positions become one vector; what it may leave out is none."""
    kind = header.integer(f"{architecture}.pooling_type", 0, MOST, NONE)
    return kind not in (NONE, RANK)
