"""GGUF files byte by byte, so that each rule of the pre-check can be broken alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

U32, STRING, ARRAY = 4, 8, 9


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def entry(key: str | bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def number(key: str, value: int) -> bytes:
    return entry(key, U32, struct.pack("<I", value))


def string(key: str, value: str | bytes) -> bytes:
    return entry(key, STRING, text(value))


def array(key: str, kind: int, count: int, items: bytes) -> bytes:
    return entry(key, ARRAY, struct.pack("<IQ", kind, count) + items)


def tensor(name: str | bytes, shape: tuple[int, ...], kind: int = 0, offset: int = 0, dims: int | None = None) -> bytes:
    n = len(shape) if dims is None else dims
    place = struct.pack("<IQ", kind, offset)
    return text(name) + struct.pack(f"<I{len(shape)}Q", n, *shape) + place


@dataclass
class Raw:
    """A file with these entries and tensors; numbers that are None are counted."""

    entries: list[bytes] = field(default_factory=list)
    tensors: list[bytes] = field(default_factory=list)
    data: bytes = b""
    magic: bytes = b"GGUF"
    version: int = 3
    n_entries: int | None = None
    n_tensors: int | None = None

    def bytes(self) -> bytes:
        n_tensors = len(self.tensors) if self.n_tensors is None else self.n_tensors
        n_entries = len(self.entries) if self.n_entries is None else self.n_entries
        counts = struct.pack("<IQQ", self.version, n_tensors, n_entries)
        head = self.magic + counts + b"".join(self.entries) + b"".join(self.tensors)
        return head + bytes(-len(head) % 32) + self.data


# The smallest llama: two layers of one tensor each, width 8, 4 tokens.
SIZES = {"block_count": 2, "embedding_length": 8, "context_length": 64, "attention.head_count": 2}


def small(without: str = "", more: list[bytes] | None = None, architecture: str = "llama", **changed: int) -> Raw:
    """A valid little model; one key left out, or numbers changed (`attention_head_count=0`)."""
    sizes = {name: changed.get(name.replace(".", "_"), value) for name, value in SIZES.items()}
    entries = [string("general.architecture", architecture)]
    entries += [number(f"{architecture}.{name}", value) for name, value in sizes.items() if name != without]
    tensors = [
        tensor("token_embd.weight", (8, 4), offset=0),
        tensor("blk.0.attn_norm.weight", (8,), offset=128),
        tensor("blk.1.attn_norm.weight", (8,), offset=160),
        tensor("output_norm.weight", (8,), offset=192),
    ]
    if without == "general.architecture":
        entries = entries[1:]
    return Raw(entries + (more or []), tensors, bytes(224))
