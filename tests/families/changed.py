"""Files of tests/families with other metadata or more layers: what older converters wrote, and larger models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.catalog.gguf import layer_of
from app.catalog.gguf_bytes import header_bytes, u32_entry
from app.catalog.gguf_check import aligned, read_header
from app.catalog.gguf_header import Tensor


def rewritten(
    path: Path, to: Path, *, without: Sequence[str] = (), more: Sequence[bytes] = (),
    n_layers: int | None = None, lead: int = 0, again: Mapping[str, str] | None = None,
) -> Path:  # fmt: skip
    """The model of `path` without these entries and with others. n_layers: so many, the ones after the
    first `lead` again and again. again: tensors by another name too."""
    header = read_header(path)
    architecture = header.text("general.architecture")
    entries = [
        header.raw[value.start : value.end]
        for key, value in header.entries.items()
        if key not in (*without, f"{architecture}.block_count")
    ]
    had = header.integer(f"{architecture}.block_count", 1, 512)
    entries += [*more, u32_entry(f"{architecture}.block_count", n_layers or had)]
    tensors = _tensors(header.tensors, had, n_layers or had, lead)
    tensors += [(new, header.tensors[old]) for new, old in (again or {}).items()]
    listed = [(name, one.shape, one.kind, one.n_bytes) for name, one in tensors]
    head = header_bytes(header.alignment, entries, listed)
    whole = path.read_bytes()
    with to.open("wb") as file:
        file.write(head)
        for _, one in tensors:
            file.write(bytes(aligned(file.tell(), header.alignment) - file.tell()))
            file.write(whole[one.offset : one.offset + one.n_bytes])
        file.write(bytes(aligned(file.tell(), header.alignment) - file.tell()))
    return to


def _tensors(
    tensors: dict[str, Tensor], had: int, n_layers: int, lead: int
) -> list[tuple[str, Tensor]]:
    found = [(name, one) for name, one in tensors.items() if layer_of(name) is None]
    for layer in range(n_layers):
        source = layer if layer < lead else lead + (layer - lead) % (had - lead)
        prefix = f"blk.{source}."
        found += [
            (name.replace(prefix, f"blk.{layer}.", 1), one)
            for name, one in tensors.items()
            if name.startswith(prefix)
        ]
    return found
