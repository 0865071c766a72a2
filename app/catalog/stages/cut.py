"""Cuts a run of layers out of a model as a stage. The result is described by the manifest of a valid GGUF file.

Determines the stage's metadata (one function for each rule of family_table.py), its tensors in file order, and the
sources of their bytes: the model's file unchanged, the model's file reordered, or data computed by the cut.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.catalog.families.family_table import (
    FAMILIES,
    RECURRENT_LAYERS,
    WINDOW,
    WINDOW_LAYERS,
    Family,
    Kinds,
    Rule,
    idle_kind,
    is_lite,
    recurrent_layers,
    window_layers,
)
from app.catalog.families.layer_metadata import is_per_layer, metadata_key, n_layers, number, slice_entry
from app.catalog.files import CHUNK_BYTES, chunks
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header, Tensor, align_up, entry, header_bytes, header_in, u32_entry
from app.catalog.gguf.model_reader import EMBEDDING, HEAD, HEAD_BIAS, head_tensor, layer_of
from app.catalog.stages.manifest import Manifest, Piece, WantedPiece
from app.core.errors import BadInput, Damaged
from app.core.model import PLACEHOLDER_ROWS, Model
from backends.contract import Layers, Role

# The host has the whole file and processes all text, so stages lack data that only concerns text.
_LEFT_OUT = ("tokenizer.", "split.", "general.", "quantize.")
_KEPT = frozenset({"general.architecture", "general.file_type", "general.quantization_version"})


@dataclass(frozen=True, slots=True)
class Cut:
    """A stage that was cut out of a model: the manifest to send, and the sources of the pieces' bytes on the host."""

    manifest: Manifest
    sources: tuple[Source, ...]


def cut(model: Model, header: Header, hashes: Mapping[str, str], layers: Layers, role: Role) -> Cut:
    """Return the stage that consists of these layers of a model, in this role (DESIGN.md 3.1).

    A stage with Role.WHOLE is meant for another machine and lacks the vocabulary; this machine would use the
    model's own file. Raises BadInput if the model may not be cut this way, since a wrong cut would silently produce
    wrong answers.

    hashes: the SHA-256 in hex of every tensor in the header, by name.
    """
    _check(model, layers, role)
    return assemble(CutJob(model, header, FAMILIES[model.architecture], layers, role), hashes)


def assemble(job: CutJob, hashes: Mapping[str, str]) -> Cut:
    """Return the stage of a job without checking whether the cut is allowed. Raises BadInput."""
    stage_parts = list(stage_tensors(job, hashes))
    alignment = job.header.alignment
    listed = [(p.name, p.tensor.shape, p.tensor.kind, p.tensor.n_bytes) for p in stage_parts]
    head = header_bytes(alignment, _entries(job), listed)
    pieces, offset = [], align_up(len(head), alignment)
    for part in stage_parts:
        pieces.append(Piece(part.sha256, part.tensor.n_bytes, offset))
        offset = align_up(offset + part.tensor.n_bytes, alignment)
    manifest = Manifest(job.model.id, head, tuple(pieces), total_bytes=offset)
    return Cut(manifest, tuple(part.source for part in stage_parts))


def read_pieces(cut: Cut, wants: Iterable[WantedPiece]) -> Iterator[bytes]:
    """Yield the bytes of the wanted pieces, one piece at a time, in chunks of at most 1 MiB."""
    for want in wants:
        yield from read(cut.sources[want.piece], want.start)


def _check(model: Model, layers: Layers, role: Role) -> None:
    if model.cuts.whole_reason:
        raise BadInput(model.cuts.whole_reason.code, **model.cuts.whole_reason.facts)
    ends = (layers.first == 0, layers.last == model.n_layers)
    whole = role is Role.WHOLE
    fits = ends == (whole or role is Role.FIRST, whole or role is Role.LAST)
    cuts = {0, *model.cuts.boundaries, model.n_layers}
    legal = whole or ({layers.first, layers.last} <= cuts and model.cuts.rules.allow(layers))
    if not fits or not legal:
        first, last = layers.first, layers.last
        raise BadInput("cut_illegal", model=model.name, first=first, last=last)


def stage_header(model: Model, header: Header, role: Role, layers: Layers) -> Header:
    """Return the header of the stage with these layers in this role, without its tensors."""
    job = CutJob(model, header, FAMILIES[model.architecture], layers, role)
    data = header_bytes(header.alignment, _entries(job), [])
    return header_in(data, Path(header.path))


def _entries(job: CutJob) -> list[bytes]:
    """Return the encoded metadata entries of the stage."""
    header, changed, entries = job.header, changed_entries(job), []
    slices = Rule.F14 in job.family.rules and job.role is not Role.WHOLE
    for key, value in header.entries.items():
        if key in changed or (key.startswith(_LEFT_OUT) and key not in _KEPT):
            continue
        if slices and is_per_layer(header, key):
            entries.append(slice_entry(header, key, job.layers))
        else:
            entries.append(header.raw[value.start : value.end])
    entries += [entry_bytes for entry_bytes in changed.values() if entry_bytes is not None]
    entries.append(u32_entry("general.alignment", header.alignment))
    entries.append(entry("tokenizer.ggml.model", tensor_types.STRING, ("no_vocab",)))
    return entries


SOFTMAX, SIGMOID = 1, 2  # llama_expert_gating_func_type


SIGMOID_LAYERS, SIGMOID_VOCABULARY = (47, 48), 154_880  # GLM-4.7-Flash


Entries = Iterator[tuple[str, bytes | None]]  # key, and its new entry or None to omit it


@dataclass(frozen=True, slots=True)
class CutJob:
    """A stage to be cut: the model, its family, the layers and the role."""

    model: Model
    header: Header
    family: Family
    layers: Layers
    role: Role

    def key(self, name: str) -> str:
        return metadata_key(self.header, name)

    def has(self, name: str) -> bool:
        return self.key(name) in self.header.entries


def changed_entries(job: CutJob) -> dict[str, bytes | None]:
    """Return the stage's entries that differ from the model's, by key. None means that the stage omits the entry."""
    if job.role is Role.WHOLE:
        return dict([_number(job, "vocab_size", job.model.n_vocab)])
    changed = dict(_always(job))
    for rule, entries in BY_RULE.items():
        if rule in job.family.rules:
            changed.update(entries(job))
    return changed


def _always(job: CutJob) -> Entries:
    n_vocab = job.model.n_vocab if job.role is Role.LAST else PLACEHOLDER_ROWS
    yield _number(job, "block_count", len(job.layers))
    yield _number(job, "vocab_size", n_vocab)


def _dense_lead(job: CutJob) -> Entries:
    name = "leading_dense_block_count"
    if job.has(name):
        last = min(number(job.header, name), job.layers.last)
        yield _number(job, name, max(0, last - job.layers.first))


def _windows(job: CutJob) -> Entries:
    kinds = window_layers(job.header, job.family)
    if kinds is None:
        return
    own = kinds[job.layers.first : job.layers.last]
    if job.family.window and job.family.window.may_go and not any(own):
        yield job.key(WINDOW), None
        yield job.key(WINDOW_LAYERS), None
    else:
        yield _kinds(job, WINDOW_LAYERS, own)


def _recurrents(job: CutJob) -> Entries:
    kinds = recurrent_layers(job.header, job.family)
    if kinds is not None:
        yield _kinds(job, RECURRENT_LAYERS, kinds[job.layers.first : job.layers.last])


def _planes(job: CutJob) -> Entries:
    """Assign nearly all rotated pairs to the first plane. This is correct because positions are the same in every
    plane."""
    half = rotary(job) // 2
    sections = (half - 2, 1, 1, 0)
    key = job.key("rope.dimension_sections")
    yield key, entry(key, tensor_types.U32, sections, is_list=True)


def _no_predictors(job: CutJob) -> Entries:
    if job.has("nextn_predict_layers"):
        yield _number(job, "nextn_predict_layers", 0)


def _no_deepstack(job: CutJob) -> Entries:
    if job.has("n_deepstack_layers"):
        yield _number(job, "n_deepstack_layers", 0)


def _guesses(job: CutJob) -> Entries:
    n, n_vocab = n_layers(job.header), job.model.n_vocab
    if is_lite(job.header, n_vocab):
        yield _number(job, "attention.q_lora_rank", 0)
    if number(job.header, "expert_gating_func") == 0:
        flash = n in SIGMOID_LAYERS and n_vocab == SIGMOID_VOCABULARY
        yield _number(job, "expert_gating_func", SIGMOID if flash else SOFTMAX)


def _scaled_once(job: CutJob) -> Entries:
    """Set the embedding scale to 1 in all stages except the first, which scales the embeddings. The host looks up
    unscaled embeddings."""
    if job.role is not Role.FIRST and job.has("embedding_scale"):
        key = job.key("embedding_scale")
        yield key, entry(key, tensor_types.F32_VALUE, (1.0,))


BY_RULE: dict[Rule, Callable[[CutJob], Entries]] = {
    Rule.F2: _dense_lead,
    Rule.F3: _windows,
    Rule.F4: _recurrents,
    Rule.F5: _planes,
    Rule.F6: _no_predictors,
    Rule.F9: _no_deepstack,
    Rule.F11: _guesses,
    Rule.F12: _scaled_once,
}


def rotary(job: CutJob) -> int:
    """Return the number of values in each head that are rotated by position."""
    heads = max(1, number(job.header, "attention.head_count", 1))
    length = number(job.header, "attention.key_length", job.model.width // heads)
    return number(job.header, "rope.dimension_count", length)


def _number(job: CutJob, name: str, value: int) -> tuple[str, bytes]:
    key = job.key(name)
    return key, u32_entry(key, value)


def _kinds(job: CutJob, name: str, kinds: Kinds) -> tuple[str, bytes]:
    key = job.key(name)
    return key, entry(key, tensor_types.BOOL, kinds, is_list=True)


ROPE_FREQS = "rope_freqs.weight"


QUERY_NORM = "attn_q_norm.weight"


TURNED = ("attn_q.weight", "attn_k.weight", "attn_q.bias", "attn_k.bias")


FUSED = "attn_qkv.weight"


@dataclass(frozen=True, slots=True)
class StageTensor:
    """A tensor of the stage, with its new name and the source of its bytes."""

    name: str
    tensor: Tensor
    sha256: str
    source: Source


def stage_tensors(job: CutJob, hashes: Mapping[str, str]) -> Iterator[StageTensor]:
    """Yield all tensors of the stage. Raises BadInput if a rule cannot be applied, or Damaged if the model's file has
    changed."""
    if job.role is Role.WHOLE:
        for name, tensor in job.header.tensors.items():
            yield _as_it_is(job, name, name, tensor, hashes)
        return
    yield from _ends(job, hashes)
    for name, tensor in job.header.tensors.items():
        layer = layer_of(name)
        if layer is None:
            if name not in (EMBEDDING, HEAD) and not _goes(job, name):
                yield _shared(job, name, tensor, hashes)
        elif job.layers.first <= layer < job.layers.last:
            yield _of_layer(job, layer, name, tensor, hashes)


def _ends(job: CutJob, hashes: Mapping[str, str]) -> Iterator[StageTensor]:
    """Yield the embedding and, if the loader requires one, the output matrix. The engine reads at most one of them."""
    width, n_vocab = job.model.width, job.model.n_vocab
    needs_head = Rule.F1 in job.family.rules
    if job.role is not Role.LAST:
        yield _zeros(EMBEDDING, (width, PLACEHOLDER_ROWS), tensor_types.F16)
        if needs_head:
            yield _zeros(HEAD, (width, PLACEHOLDER_ROWS), tensor_types.F16)
        return
    name = EMBEDDING if job.model.weights.tied else HEAD
    tensor = head_tensor(job.header)
    if needs_head:
        yield _zeros(EMBEDDING, (width, n_vocab), idle_kind(width))
    # llama.cpp uses one matrix as embedding and as output matrix if it can, which saves memory
    yield _as_it_is(job, HEAD if needs_head else EMBEDDING, name, tensor, hashes)


def _goes(job: CutJob, name: str) -> bool:
    """Return whether to omit this tensor. Only full-attention layers use `rope_freqs`, and the loader rejects unused
    tensors."""
    if name != ROPE_FREQS or Rule.F10 not in job.family.rules:
        return False
    kinds = window_layers(job.header, job.family)
    return kinds is not None and all(kinds[job.layers.first : job.layers.last])


def _shared(job: CutJob, name: str, tensor: Tensor, hashes: Mapping[str, str]) -> StageTensor:
    if name == HEAD_BIAS and job.role is not Role.LAST:
        return _zeros(name, (PLACEHOLDER_ROWS,), tensor_types.F32)
    return _as_it_is(job, name, name, tensor, hashes)


def _of_layer(job: CutJob, layer: int, name: str, tensor: Tensor, hashes: Mapping[str, str]) -> StageTensor:
    own = name.removeprefix(f"blk.{layer}.")
    new = f"blk.{layer - job.layers.first}.{own}"
    if job.family.turns and Rule.F5 in job.family.rules:
        if own == FUSED:
            raise BadInput("whole_variant", architecture=job.model.architecture)
        if own in TURNED:
            return _turned(job, own, new, tensor)
    if own == QUERY_NORM and _scales_queries(job):
        return _scaled(job, new, name, tensor)
    return _as_it_is(job, new, name, tensor, hashes)


def _scales_queries(job: CutJob) -> bool:
    return Rule.F8 in job.family.rules and n_layers(job.header) in job.family.not_long


def _turned(job: CutJob, own: str, new: str, tensor: Tensor) -> StageTensor:
    """Reorder the rows of a query or key tensor, because the stage rotates halves but the model rotates adjacent
    pairs.

    Queries and keys are reordered the same way, so their dot products do not change.
    """
    kind = "attention.head_count_kv" if "attn_k" in own else "attention.head_count"
    heads = max(1, number(job.header, kind, number(job.header, "attention.head_count", 1)))
    n_rows = tensor.shape[-1]
    size, pairs = n_rows // heads, rotary(job) // 2
    if n_rows % heads or 2 * pairs > size or tensor.n_bytes % n_rows:
        raise BadInput("gguf_shape", path=job.header.path, name=new, shape=str(tensor.shape))
    order = [*range(0, 2 * pairs, 2), *range(1, 2 * pairs, 2), *range(2 * pairs, size)]
    source = Reordered(_in_file(job.header, tensor), tensor.n_bytes // n_rows, tuple(order))
    return StageTensor(new, tensor, sha256(source), source)


def _scaled(job: CutJob, new: str, name: str, tensor: Tensor) -> StageTensor:
    """Multiply the query norm by a factor that compensates for the engine's scale, which depends on the number of
    layers."""
    if tensor.kind != tensor_types.F32:
        raise BadInput("gguf_shape", path=job.header.path, name=name, shape=str(tensor.shape))
    heads = max(1, number(job.header, "attention.head_count", 1))
    factor = math.sqrt(tensor.shape[0] / max(1, job.model.width // heads))
    with Path(job.header.path_of(tensor)).open("rb") as file:
        file.seek(tensor.offset)
        values = struct.unpack(f"<{tensor.shape[0]}f", file.read(tensor.n_bytes))
    source = ComputedBytes(struct.pack(f"<{len(values)}f", *(value * factor for value in values)))
    return StageTensor(new, tensor, sha256(source), source)


def _as_it_is(job: CutJob, new: str, name: str, tensor: Tensor, hashes: Mapping[str, str]) -> StageTensor:
    return StageTensor(new, tensor, hashes[name], _in_file(job.header, tensor))


def _in_file(header: Header, tensor: Tensor) -> FromFile:
    return FromFile(header.path_of(tensor), tensor.offset, tensor.n_bytes)


def _zeros(name: str, shape: tuple[int, ...], kind: int) -> StageTensor:
    source = Zeros(tensor_types.tensor_bytes(kind, shape) or 0)
    return StageTensor(name, Tensor(shape, kind, 0, source.n_bytes), sha256(source), source)


@dataclass(frozen=True, slots=True)
class FromFile:
    """A source that reads a range of the model's file."""

    path: str
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class ComputedBytes:
    """A source of bytes that the cut computed."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Zeros:
    """A source of zeros, for a piece that the engine never reads."""

    n_bytes: int


@dataclass(frozen=True, slots=True)
class Reordered:
    """A source that reads a tensor with its rows reordered, the same way within each group of len(order) rows."""

    tensor: FromFile
    row_bytes: int
    order: tuple[int, ...]


Source = FromFile | ComputedBytes | Zeros | Reordered


def read(source: Source, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a source from offset `start`, in chunks of at most 1 MiB. Raises Damaged if its file has
    changed."""
    match source:
        case FromFile():
            yield from _from_file(source, start)
        case ComputedBytes(data):
            yield from _parts(data, start)
        case Zeros(n_bytes):
            for at in range(start, n_bytes, CHUNK_BYTES):
                yield bytes(min(CHUNK_BYTES, n_bytes - at))
        case Reordered():
            yield from _reordered(source, start)


def sha256(source: Source) -> str:
    """Return the SHA-256 of a source's bytes in hex. Raises Damaged."""
    digest = hashlib.sha256()
    for chunk in read(source):
        digest.update(chunk)
    return digest.hexdigest()


def _parts(data: bytes, start: int) -> Iterator[bytes]:
    for at in range(start, len(data), CHUNK_BYTES):
        yield data[at : at + CHUNK_BYTES]


def _reordered(source: Reordered, start: int) -> Iterator[bytes]:
    group = source.row_bytes * len(source.order)
    skipped, rest = start - start % group, start % group
    waiting = b""
    for chunk in _from_file(source.tensor, skipped):
        waiting += chunk
        whole = len(waiting) - len(waiting) % group
        for at in range(0, whole, group):
            rows = waiting[at : at + group]
            size = source.row_bytes
            moved = b"".join(rows[row * size : (row + 1) * size] for row in source.order)
            yield from _parts(moved, rest)
            rest = 0
        waiting = waiting[whole:]


def _from_file(source: FromFile, start: int) -> Iterator[bytes]:
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
