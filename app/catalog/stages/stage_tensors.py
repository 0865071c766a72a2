"""The tensors of a stage in the order of its file, and where their bytes come from."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.catalog.families.cut_rules import Rule
from app.catalog.families.family_facts import idle_kind
from app.catalog.families.layer_kinds import windows
from app.catalog.families.variants import n_layers, number
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_header import Header, Tensor
from app.catalog.gguf.model_reader import EMBEDDING, HEAD, HEAD_BIAS, head_tensor, layer_of
from app.catalog.stages.piece_sources import FromFile, Given, Reordered, Source, Zeros, sha256
from app.catalog.stages.stage_entries import Job, rotary
from app.core.errors import BadInput
from app.core.model import PLACEHOLDER_ROWS
from backends.contract import Role

ROPE_FREQS = "rope_freqs.weight"
QUERY_NORM = "attn_q_norm.weight"
TURNED = ("attn_q.weight", "attn_k.weight", "attn_q.bias", "attn_k.bias")
FUSED = "attn_qkv.weight"


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor of the stage, under its new name."""

    name: str
    tensor: Tensor
    sha256: str
    source: Source


def parts(job: Job, hashes: Mapping[str, str]) -> Iterator[Part]:
    """All of them. Raises BadInput for one that a rule cannot be applied to, Damaged."""
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


def _ends(job: Job, hashes: Mapping[str, str]) -> Iterator[Part]:
    """Embedding and output matrix: the loader insists on them, and at most one is ever read."""
    width, n_vocab = job.model.width, job.model.n_vocab
    needs_head = Rule.F1 in job.family.rules
    if job.role is not Role.LAST:
        yield _zeros(EMBEDDING, (width, PLACEHOLDER_ROWS), tensor_types.F16)
        if needs_head:
            yield _zeros(HEAD, (width, PLACEHOLDER_ROWS), tensor_types.F16)
        return
    name = EMBEDDING if job.model.tied else HEAD
    tensor = head_tensor(job.header)
    if needs_head:
        yield _zeros(EMBEDDING, (width, n_vocab), idle_kind(width))
    # llama.cpp takes one matrix for both ends where it may, so nothing is held twice
    yield _as_it_is(job, HEAD if needs_head else EMBEDDING, name, tensor, hashes)


def _goes(job: Job, name: str) -> bool:
    """Only full-attention layers take it up, and a tensor that nobody takes fails the load."""
    if name != ROPE_FREQS or Rule.F10 not in job.family.rules:
        return False
    kinds = windows(job.header, job.family)
    return kinds is not None and all(kinds[job.layers.first : job.layers.last])


def _shared(job: Job, name: str, tensor: Tensor, hashes: Mapping[str, str]) -> Part:
    if name == HEAD_BIAS and job.role is not Role.LAST:
        return _zeros(name, (PLACEHOLDER_ROWS,), tensor_types.F32)
    return _as_it_is(job, name, name, tensor, hashes)


def _of_layer(job: Job, layer: int, name: str, tensor: Tensor, hashes: Mapping[str, str]) -> Part:
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


def _scales_queries(job: Job) -> bool:
    return Rule.F8 in job.family.rules and n_layers(job.header) in job.family.not_long


def _turned(job: Job, own: str, new: str, tensor: Tensor) -> Part:
    """Rows that a position turns in pairs of neighbours, put so that it turns halves: the dot product
    of queries and keys is the same."""
    kind = "attention.head_count_kv" if "attn_k" in own else "attention.head_count"
    heads = max(1, number(job.header, kind, number(job.header, "attention.head_count", 1)))
    n_rows = tensor.shape[-1]
    size, pairs = n_rows // heads, rotary(job) // 2
    if n_rows % heads or 2 * pairs > size or tensor.n_bytes % n_rows:
        raise BadInput("gguf_shape", path=job.header.path, name=new, shape=str(tensor.shape))
    order = [*range(0, 2 * pairs, 2), *range(1, 2 * pairs, 2), *range(2 * pairs, size)]
    source = Reordered(_in_file(job.header, tensor), tensor.n_bytes // n_rows, tuple(order))
    return Part(new, tensor, sha256(source), source)


def _scaled(job: Job, new: str, name: str, tensor: Tensor) -> Part:
    """What the engine would multiply queries by, for this number of layers, goes into their norm."""
    if tensor.kind != tensor_types.F32:
        raise BadInput("gguf_shape", path=job.header.path, name=name, shape=str(tensor.shape))
    heads = max(1, number(job.header, "attention.head_count", 1))
    factor = math.sqrt(tensor.shape[0] / max(1, job.model.width // heads))
    with Path(job.header.path_of(tensor)).open("rb") as file:
        file.seek(tensor.offset)
        values = struct.unpack(f"<{tensor.shape[0]}f", file.read(tensor.n_bytes))
    source = Given(struct.pack(f"<{len(values)}f", *(value * factor for value in values)))
    return Part(new, tensor, sha256(source), source)


def _as_it_is(job: Job, new: str, name: str, tensor: Tensor, hashes: Mapping[str, str]) -> Part:
    return Part(new, tensor, hashes[name], _in_file(job.header, tensor))


def _in_file(header: Header, tensor: Tensor) -> FromFile:
    return FromFile(header.path_of(tensor), tensor.offset, tensor.n_bytes)


def _zeros(name: str, shape: tuple[int, ...], kind: int) -> Part:
    source = Zeros(tensor_types.tensor_bytes(kind, shape) or 0)
    return Part(name, Tensor(shape, kind, 0, source.n_bytes), sha256(source), source)
