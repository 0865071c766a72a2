"""Whether a model gives one vector for a whole text, or one score for two, and whether it writes at all."""

from __future__ import annotations

from app.catalog.gguf.gguf_header import Header

# Encoders: each position sees the ones behind it too, and none predicts the next. Source: llama.cpp's llm_arch.
ENCODERS = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "neo-bert", "modern-bert", "eurobert",
     "gemma-embedding", "llama-embed"}
)  # fmt: skip
NONE, RANK = 0, 4  # llama.cpp's pooling types that give no vector; 1 to 3 are mean, first and last
MOST = 64


def writes(header: Header, architecture: str) -> bool:
    """Whether it was made to write. A reranker of a family that writes was trained to judge instead."""
    return architecture not in ENCODERS and not ranks(header, architecture)


def embeds(header: Header, architecture: str) -> bool:
    """Whether the file says how its positions become one vector; what it may leave out is none."""
    return _kind(header, architecture) not in (NONE, RANK)


def ranks(header: Header, architecture: str) -> bool:
    """Whether it judges how well a text answers a question."""
    return _kind(header, architecture) == RANK


def _kind(header: Header, architecture: str) -> int:
    return header.integer(f"{architecture}.pooling_type", 0, MOST, NONE)
