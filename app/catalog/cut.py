"""The cut: a run of layers of a model as the manifest of a valid GGUF file of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.catalog import families, ggml
from app.catalog.files import CHUNK_BYTES, chunks
from app.catalog.gguf import EMBEDDING, HEAD, architecture_of, layer_of
from app.catalog.gguf_bytes import entry, header_bytes, text, u32, u32_entry
from app.catalog.gguf_check import aligned
from app.catalog.gguf_header import Header, Tensor, Value
from app.catalog.manifest import Manifest, Piece, Want
from app.core.errors import BadInput, Damaged
from app.core.model import PLACEHOLDER_ROWS, Model
from backends.contract import Layers, Role

# Text is handled by the host with the whole file, so no stage carries what only text needs.
_LEFT_OUT = ("tokenizer.", "split.", "general.", "quantize.")
_KEPT = frozenset({"general.architecture", "general.file_type", "general.quantization_version"})


@dataclass(frozen=True, slots=True)
class FromFile:
    """The bytes of a piece lie in the model's own file."""

    path: str
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Given:
    """The bytes of a piece were made by the cut."""

    data: bytes


Source = FromFile | Given


@dataclass(frozen=True, slots=True)
class Cut:
    """A stage as it is sent (the manifest), and where its host finds the bytes of each piece."""

    manifest: Manifest
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor of the stage, under its new name."""

    name: str
    tensor: Tensor
    sha256: str
    source: Source


def cut(model: Model, header: Header, hashes: Mapping[str, str], layers: Layers, role: Role) -> Cut:
    """The stage that holds `layers` of the model in this role (DESIGN.md 3.1).

    hashes: tensor name -> SHA-256 in hex, of every tensor in the header. Role.WHOLE has no stage
    file: the model's own file serves. Raises BadInput where the model may not be cut like this: a
    wrong cut would be silently wrong.
    """
    _check(model, layers, role)
    parts = list(_parts(model, header, hashes, layers, role))
    alignment = header.alignment
    listed = [(p.name, p.tensor.shape, p.tensor.kind, p.tensor.n_bytes) for p in parts]
    head = header_bytes(alignment, _entries(model, header, layers, role), listed)
    pieces, offset = [], aligned(len(head), alignment)
    for part in parts:
        pieces.append(Piece(part.sha256, part.tensor.n_bytes, offset))
        offset = aligned(offset + part.tensor.n_bytes, alignment)
    manifest = Manifest(model.id, head, tuple(pieces), total_bytes=offset)
    return Cut(manifest, tuple(part.source for part in parts))


def read_pieces(cut: Cut, wants: Iterable[Want]) -> Iterator[bytes]:
    """The bytes of the wanted pieces, one after another, in chunks of at most 1 MiB."""
    for want in wants:
        source = cut.sources[want.piece]
        if isinstance(source, Given):
            for start in range(want.start, len(source.data), CHUNK_BYTES):
                yield source.data[start : start + CHUNK_BYTES]
            continue
        yield from _read(source, want.start)


def _check(model: Model, layers: Layers, role: Role) -> None:
    if model.whole_reason:
        raise BadInput(model.whole_reason.code, **model.whole_reason.facts)
    ends = (layers.first == 0, layers.last == model.n_layers)
    fits = ends == (role is Role.FIRST, role is Role.LAST)
    cuts = {0, *model.boundaries, model.n_layers}
    if not fits or not {layers.first, layers.last} <= cuts:
        first, last = layers.first, layers.last
        raise BadInput("cut_illegal", model=model.name, first=first, last=last)


def _read(source: FromFile, start: int) -> Iterator[bytes]:
    left = source.n_bytes - start
    try:
        with open(source.path, "rb", buffering=0) as file:
            for chunk in chunks(file, source.offset + start, left):
                left -= len(chunk)
                yield chunk
    except OSError as error:
        raise Damaged("source_changed", path=source.path) from error
    if left:
        raise Damaged("source_changed", path=source.path)


def _parts(
    model: Model, header: Header, hashes: Mapping[str, str], layers: Layers, role: Role
) -> Iterator[_Part]:
    """The tensors of the stage in the order of its file."""
    tail = role is Role.LAST
    if not tail:
        yield _placeholder(model.width)
    head = EMBEDDING if model.tied else HEAD
    for name, tensor in header.tensors.items():
        layer = layer_of(name)
        if layer is not None and layers.first <= layer < layers.last:
            new = name.replace(f"blk.{layer}.", f"blk.{layer - layers.first}.", 1)
        elif layer is None and name not in (EMBEDDING, HEAD):
            new = name
        elif tail and name == head:
            new = EMBEDDING  # llama.cpp takes it for both ends, so nothing is held twice
        else:
            continue
        source = FromFile(header.path, tensor.offset, tensor.n_bytes)
        yield _Part(new, tensor, hashes[name], source)


def _placeholder(width: int) -> _Part:
    """The loader insists on an embedding; stages that are fed hidden states never read it."""
    shape = (width, PLACEHOLDER_ROWS)
    n_bytes = ggml.tensor_bytes(ggml.F16, shape)
    zeros = bytes(n_bytes or 0)
    tensor = Tensor(shape, ggml.F16, 0, len(zeros))
    return _Part(EMBEDDING, tensor, hashlib.sha256(zeros).hexdigest(), Given(zeros))


def _entries(model: Model, header: Header, layers: Layers, role: Role) -> list[bytes]:
    """The metadata of the stage, each entry as the bytes of its file."""
    architecture = architecture_of(header)
    changed = {
        f"{architecture}.block_count": len(layers),
        f"{architecture}.vocab_size": model.n_vocab if role is Role.LAST else PLACEHOLDER_ROWS,
    }
    per_layer = {key.format(a=architecture) for key in families.PER_LAYER_KEYS}
    found = []
    for key, value in header.entries.items():
        if key in changed or (key.startswith(_LEFT_OUT) and key not in _KEPT):
            continue
        if key in per_layer and value.is_array:
            found.append(_sliced(header, key, value, model.n_layers, layers))
        else:
            found.append(header.raw[value.start : value.end])
    found += [u32_entry(key, number) for key, number in changed.items()]
    found.append(u32_entry("general.alignment", header.alignment))
    found.append(entry("tokenizer.ggml.model", ggml.STRING, ("no_vocab",)))
    return found


def _sliced(header: Header, key: str, value: Value, n_layers: int, layers: Layers) -> bytes:
    """A per-layer array, cut like the layers."""
    if value.count != n_layers or value.kind == ggml.STRING:
        raise header.odd(key, f"{value.count} values for {n_layers} layers")
    _, size = ggml.SCALARS[value.kind]
    items = header.raw[value.data + layers.first * size : value.data + layers.last * size]
    kinds = u32(ggml.ARRAY) + u32(value.kind)
    return text(key.encode()) + kinds + len(layers).to_bytes(8, "little") + items
