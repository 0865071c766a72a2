"""Files of tests/families with other metadata or more layers: what older converters wrote, and larger models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.catalog.families.family_table import FAMILIES
from app.catalog.families.layer_metadata import is_per_layer, n_blocks, number
from app.catalog.families.layer_metadata import n_layers as layer_count
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header, Tensor, align_up, entry, header_bytes, read_header, u32_entry
from app.catalog.gguf.model_reader import layer_of


def rewritten(
    path: Path, to: Path, *, without: Sequence[str] = (), more: Sequence[bytes] = (),
    n_layers: int | None = None, lead: int = 0, again: Mapping[str, str] | None = None,
) -> Path:  # fmt: skip
    """The model of `path` without these entries and with others. n_layers: so many, the ones after the
    first `lead` again and again, and then those that predict. again: tensors by another name too."""
    header = read_header(path)
    architecture = header.text("general.architecture")
    blocks = _blocks(header, n_layers, lead)
    entries = [
        _listed(header, key, blocks) if is_per_layer(header, key) else header.raw[value.start : value.end]
        for key, value in header.entries.items()
        if key not in (*without, f"{architecture}.block_count")
    ]
    entries += [*more, u32_entry(f"{architecture}.block_count", len(blocks))]
    tensors = _tensors(header.tensors, blocks)
    tensors += [(new, header.tensors[old]) for new, old in (again or {}).items()]
    _write(to, header.alignment, entries, tensors, path.read_bytes())
    return to


def fewer_heads(path: Path, to: Path, layers: Sequence[int], n_heads: int) -> Path:
    """The model of `path`, whose head counts are listed, with so many heads in these layers: their first ones."""
    header, whole = read_header(path), bytearray(path.read_bytes())
    architecture = header.text("general.architecture")
    key, size = f"{architecture}.attention.head_count", f"{architecture}.attention.key_length"
    had, head_dim = [int(n) for n in header.items(key)], header.integer(size, 1, 512)
    tensors = dict(header.tensors)
    for layer in layers:
        kept = {"attn_q": n_heads * head_dim, "attn_gate": n_heads}
        for name, rows in kept.items():
            full = f"blk.{layer}.{name}.weight"
            old = tensors[full]
            shape = (old.shape[0], rows)
            tensors[full] = replace(old, shape=shape, n_bytes=old.n_bytes // old.shape[1] * rows)
        full = f"blk.{layer}.attn_output.weight"
        old, row = tensors[full], tensors[full].n_bytes // tensors[full].shape[1]
        short = row // had[layer] * n_heads
        starts = range(old.offset, old.offset + old.n_bytes, row)
        lines = [whole[start : start + short] for start in starts]
        whole[old.offset : old.offset + short * len(lines)] = b"".join(lines)
        shape = (n_heads * head_dim, old.shape[1])
        tensors[full] = replace(old, shape=shape, n_bytes=short * len(lines))
    counts = [n_heads if layer in layers else n for layer, n in enumerate(had)]
    values = [value for name, value in header.entries.items() if name != key]
    entries = [header.raw[other.start : other.end] for other in values]
    entries.append(entry(key, tensor_types.U32, counts, is_list=True))
    _write(to, header.alignment, entries, list(tensors.items()), bytes(whole))
    return to


def wide_heads(path: Path, to: Path) -> Path:
    """The model of `path` with half as many heads, each twice as long: the same matrices, read otherwise."""
    header, whole = read_header(path), path.read_bytes()
    prefix = f"{header.text('general.architecture')}.attention."
    longer_ones = [f"{prefix}{kind}_length" for kind in ("key", "value")]
    fewer = [f"{prefix}head_count", f"{prefix}head_count_kv"]
    entries = []
    for key, value in header.entries.items():
        values = [int(n) for n in header.items(key)] if key in (*longer_ones, *fewer) else []
        changed = [n * 2 if key in longer_ones else n // 2 for n in values]
        raw = header.raw[value.start : value.end]
        entries.append(entry(key, value.kind, changed, is_list=value.is_array) if changed else raw)
    tensors = [
        (name, _half(tensor) if name.endswith("attn_sinks.weight") else tensor)
        for name, tensor in header.tensors.items()
    ]
    _write(to, header.alignment, entries, tensors, whole)
    return to


def _half(tensor: Tensor) -> Tensor:
    """Its first values."""
    (n,) = tensor.shape
    return replace(tensor, shape=(n // 2,), n_bytes=tensor.n_bytes // 2)


def _write(to: Path, alignment: int, entries: list[bytes], tensors: list[tuple[str, Tensor]], data: bytes) -> None:
    """data: where the tensors say that their bytes lie."""
    listed = [(name, tensor.shape, tensor.kind, tensor.n_bytes) for name, tensor in tensors]
    with to.open("wb") as file:
        file.write(header_bytes(alignment, entries, listed))
        for _, tensor in tensors:
            file.write(bytes(align_up(file.tell(), alignment) - file.tell()))
            file.write(data[tensor.offset : tensor.offset + tensor.n_bytes])
        file.write(bytes(align_up(file.tell(), alignment) - file.tell()))


def longer(path: Path, to: Path, more: int) -> Path:
    """The model of `path` with so many layers more, each a copy of one that stands alike in its period."""
    header = read_header(path)
    had, family = layer_count(header), FAMILIES[header.text("general.architecture")]
    step, dense = family.step(header), number(header, "leading_dense_block_count")
    lead = had - (had - dense) // step * step
    return rewritten(path, to, n_layers=had + more, lead=lead)


def _blocks(header: Header, n_layers: int | None, lead: int) -> list[int]:
    """Return for each block the block of the file of which it is a copy."""
    had, n_file = layer_count(header), n_blocks(header)
    own = [layer if layer < lead else lead + (layer - lead) % (had - lead) for layer in range(n_layers or had)]
    return [*own, *range(had, n_file)]


def _listed(header: Header, key: str, blocks: Sequence[int]) -> bytes:
    """A list with a value for each layer, for these."""
    value, had = header.entries[key], header.items(key)
    some = [block for block in blocks if block < len(had)]  # it may have none for those that predict
    return entry(key, value.kind, [had[block] for block in some], is_list=True)


def _tensors(tensors: dict[str, Tensor], blocks: Sequence[int]) -> list[tuple[str, Tensor]]:
    results = [(name, tensor) for name, tensor in tensors.items() if layer_of(name) is None]
    for layer, source in enumerate(blocks):
        prefix = f"blk.{source}."
        results += [
            (name.replace(prefix, f"blk.{layer}.", 1), tensor)
            for name, tensor in tensors.items()
            if name.startswith(prefix)
        ]
    return results
