"""What a model's file says of itself beside what the pool computes with: for programs that show models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_check import part_paths, read_header
from app.catalog.gguf.gguf_header import Header, Scalar, shown

TEMPLATE = "tokenizer.chat_template"
TOKENS = "tokenizer.ggml.tokens"
MOST_TEMPLATE, MOST_TEXT = 1 << 20, 4096  # characters
MOST_ENTRIES = 512


@dataclass(frozen=True, slots=True)
class Card:
    """Of one file."""

    template: str  # of chats, as it is written; empty: none
    entries: dict[str, Scalar]  # single values alone, by GGUF's names; texts may be cut
    bos: str  # how templates write the token that begins a text; empty: none
    eos: str


def card_of(path: Path) -> Card:
    """Read the header. Raises BadInput."""
    header = read_header(part_paths(path)[0])
    single = {
        key: header.items(key)[0] for key, value in header.entries.items() if not value.is_array and key != TEMPLATE
    }
    entries = {
        key: shown(value, MOST_TEXT) if isinstance(value, str) else value
        for key, value in list(single.items())[:MOST_ENTRIES]
    }
    return Card(_template(header), entries, _token(header, "bos"), _token(header, "eos"))


def _template(header: Header) -> str:
    value = header.entries.get(TEMPLATE)
    if value is None or value.is_array or value.kind != tensor_types.STRING:
        return ""
    return str(header.items(TEMPLATE)[0])[:MOST_TEMPLATE]


def _token(header: Header, which: str) -> str:
    tokens = header.entries.get(TOKENS)
    number = header.integer(f"tokenizer.ggml.{which}_token_id", -1, 1 << 31, -1)
    if tokens is None or not tokens.is_array or not 0 <= number < tokens.count:
        return ""
    return shown(str(header.items(TOKENS)[number]))
