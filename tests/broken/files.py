"""One model file broken by chance: the same seed, the same bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header, Tensor, align_up, entry, header_bytes, read_header

KINDS = (
    "number", "entry gone", "entry of another kind", "vocabulary", "shape", "type", "offset",
    "tensor gone", "tensor renamed", "tensor again", "cut short", "bits", "not numbers", "header bytes",
)  # fmt: skip
NAN_F32, NAN_F16 = struct.pack("<I", 0x7FC00000), struct.pack("<H", 0x7E00)
TOKENS = ("tokens", "token_type", "scores", "merges")
MOST_BITS = 200


@dataclass
class Parts:
    """A file taken apart: its entries as bytes, and its tensors with their data."""

    header: Header
    alignment: int
    entries: dict[str, bytes]
    tensors: list[tuple[str, Tensor, bytes]]

    def bytes(self) -> bytes:
        listed = [(name, tensor.shape, tensor.kind, len(data)) for name, tensor, data in self.tensors]
        made = bytearray(header_bytes(self.alignment, list(self.entries.values()), listed))
        for _, _, data in self.tensors:
            made += bytes(align_up(len(made), self.alignment) - len(made)) + data
        return bytes(made + bytes(align_up(len(made), self.alignment) - len(made)))


def parts_of(path: Path) -> Parts:
    """The parts of a sound file."""
    header, whole = read_header(path), path.read_bytes()
    entries = {key: header.raw[value.start : value.end] for key, value in header.entries.items()}
    tensors = [
        (name, tensor, whole[tensor.offset : tensor.offset + tensor.n_bytes]) for name, tensor in header.tensors.items()
    ]
    return Parts(header, header.alignment, entries, tensors)


def retyped(path: Path, to: Path, tensor: str, kind: int) -> None:
    """The file of `path` whose one tensor is said to be of another type, with as many bytes as that takes."""
    parts = parts_of(path)
    at = next(n for n, (name, _, _) in enumerate(parts.tensors) if name == tensor)
    name, item, data = parts.tensors[at]
    now = replace(item, kind=kind)
    parts.tensors[at] = (name, now, _sized(now, data))
    to.write_bytes(parts.bytes())


def without_numbers(path: Path, to: Path, tensor: str) -> None:
    """The file of `path` whose one tensor holds numbers that are none."""
    parts = parts_of(path)
    at = next(n for n, (name, _, _) in enumerate(parts.tensors) if name == tensor)
    name, item, data = parts.tensors[at]
    parts.tensors[at] = (name, item, _spoilt(item, data, 1))
    to.write_bytes(parts.bytes())


def broken(path: Path, to: Path, seed: int, kinds: Sequence[str] = KINDS) -> str:
    """Write the file of `path` to `to`, broken in one way; which, for whoever looks into it."""
    chance = Random(seed)
    kind = chance.choice(kinds)
    parts = parts_of(path)
    match kind:
        case "number" | "entry gone" | "entry of another kind" | "vocabulary":
            entries = _entries(chance, parts, kind)
        case "shape" | "type" | "tensor gone" | "tensor renamed" | "tensor again" | "not numbers":
            entries = _tensors(chance, parts, kind)
        case _:
            entries = ""
    data = bytearray(parts.bytes())
    match kind:
        case "offset":
            entries = _offset(chance, parts, data)
        case "cut short":
            entries = f"to {(n := chance.randrange(len(data)))} of {len(data)} bytes"
            del data[n:]
        case "bits":
            start = len(data) - sum(len(tensor) for _, _, tensor in parts.tensors)
            entries = str(n := chance.randrange(1, MOST_BITS))
            for _ in range(n):
                data[chance.randrange(max(24, start), len(data))] ^= 1 << chance.randrange(8)
        case "header bytes":
            end = len(data) - sum(len(tensor) for _, _, tensor in parts.tensors)
            at = [chance.randrange(24, end) for _ in range(chance.choice((1, 1, 3)))]
            entries = f"at {at}"
            for place in at:
                data[place] ^= 1 << chance.randrange(8)
    to.write_bytes(data)
    return f"{kind}: {entries}"


def _entries(chance: Random, parts: Parts, kind: str) -> str:
    header = parts.header
    tokens = [key for key in parts.entries if key.startswith("tokenizer.") and key.endswith(TOKENS)]
    if kind == "vocabulary":
        key = chance.choice(tokens)
        value, items = header.entries[key], list(header.items(key))
        n = chance.choice((0, 1, len(items) // 2, len(items) - 1, len(items) + 1, 2 * len(items)))
        items = (items * 3)[:n]
        if items and chance.random() < 0.3:
            items[chance.randrange(len(items))] = items[0]
        parts.entries[key] = entry(key, value.kind, items, is_list=True)
        return f"{key} has {n} values"
    key = chance.choice([name for name in parts.entries if name not in tokens])
    value = header.entries[key]
    if kind == "entry gone":
        del parts.entries[key]
        return key
    if kind == "entry of another kind":
        other = chance.choice(
            [number for number in (*tensor_types.SCALARS, tensor_types.STRING) if number != value.kind]
        )
        values = [1, 0][: chance.choice((1, 1, 2))]
        parts.entries[key] = entry(key, other, values, is_list=len(values) > 1)
        return f"{key} is of kind {other}"
    numbers = [
        name
        for name, value in header.entries.items()
        if value.kind in tensor_types.SCALARS and not value.is_array and name in parts.entries
    ]
    key = chance.choice(numbers)
    value = header.entries[key]
    made = _number(chance, value.kind, header.items(key)[0])
    parts.entries[key] = entry(key, value.kind, (made,))
    return f"{key} = {made}"


def _number(chance: Random, kind: int, now: object) -> object:
    letter, n_bytes = tensor_types.SCALARS[kind]
    if letter in "fd":
        return chance.choice((0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf")))
    if letter == "?":
        return not now
    assert isinstance(now, int)
    most = (1 << (8 * n_bytes - letter.islower())) - 1
    near = (0, 1, 2, now - 1, now + 1, 2 * now, now // 2, 3 * now, 1 << 16, most)
    return max(0, min(most, chance.choice(near)))


def _tensors(chance: Random, parts: Parts, kind: str) -> str:
    at = chance.randrange(len(parts.tensors))
    name, tensor, data = parts.tensors[at]
    match kind:
        case "tensor gone":
            del parts.tensors[at]
            return name
        case "tensor renamed":
            new = chance.choice((name.replace("weight", "bias"), f"{name}.x", name[:-1]))
            parts.tensors[at] = (new, tensor, data)
            return f"{name} is called {new}"
        case "tensor again":
            layer = name.split(".")
            new = ".".join([layer[0], "99", *layer[2:]]) if name.startswith("blk.") else f"blk.0.{name}"
            parts.tensors.append((new, tensor, data))
            return f"{name} also as {new}"
        case "shape":
            shape = list(tensor.shape)
            place = chance.randrange(len(shape))
            shape[place] = max(1, chance.choice((shape[place] // 2, shape[place] - 32, shape[place] * 2, 32)))
            if chance.random() < 0.3:
                shape = list(reversed(tensor.shape))
            now = replace(tensor, shape=tuple(shape))
            parts.tensors[at] = (name, now, _sized(now, data))
            return f"{name} is {shape}, was {list(tensor.shape)}"
        case "type":
            other = chance.choice([known for known in sorted(tensor_types.TENSORS) if known != tensor.kind])
            now = replace(tensor, kind=other)
            parts.tensors[at] = (name, now, _sized(now, data))
            return f"{name} is of type {other}, was {tensor.kind}"
        case _:  # not numbers
            every = chance.choice((1, 7, 64))
            parts.tensors[at] = (name, tensor, _spoilt(tensor, data, every))
            return f"{name}, each {every} blocks"


def _spoilt(tensor: Tensor, data: bytes, every: int) -> bytes:
    """The data with no number at the start of every so manieth block."""
    bad = NAN_F32 if tensor.kind == tensor_types.F32 else NAN_F16
    step, made = every * max(tensor_types.TENSORS[tensor.kind][2], len(bad)), bytearray(data)
    for place in range(0, len(made) - len(bad), step):
        made[place : place + len(bad)] = bad
    return bytes(made)


def _sized(tensor: Tensor, data: bytes) -> bytes:
    """Return as many of these bytes as this shape and type need."""
    _, n_block, block_bytes = tensor_types.TENSORS[tensor.kind]
    n = 1
    for size in tensor.shape:
        n *= size
    n_bytes = n // n_block * block_bytes
    return (data * (n_bytes // max(1, len(data)) + 1))[:n_bytes]


def _offset(chance: Random, parts: Parts, data: bytearray) -> str:
    """Another place for the data of one tensor: within the file, or not."""
    name, _, _ = chance.choice(parts.tensors)
    listed = struct.pack("<Q", len(name)) + name.encode()
    at = data.index(listed) + len(listed)
    (n_dims,) = struct.unpack_from("<I", data, at)
    at += 4 + 8 * n_dims + 4
    (now,) = struct.unpack_from("<Q", data, at)
    far = chance.choice((0, now + parts.alignment, now - parts.alignment, now + 1, 1 << 40, (1 << 64) - 32))
    struct.pack_into("<Q", data, at, far % (1 << 64))
    return f"of {name} is {far}, was {now}"
