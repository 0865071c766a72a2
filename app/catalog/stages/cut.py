"""The cut: a run of layers of a model as the manifest of a valid GGUF file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.catalog.families.cut_rules import Rule
from app.catalog.families.family_table import FAMILIES
from app.catalog.families.per_layer import is_per_layer, sliced
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_bytes import entry, header_bytes, u32_entry
from app.catalog.gguf.gguf_check import aligned, header_in
from app.catalog.gguf.gguf_header import Header
from app.catalog.stages.manifest import Manifest, Piece, Want
from app.catalog.stages.piece_sources import Source, read
from app.catalog.stages.stage_entries import Job, changed_entries
from app.catalog.stages.stage_tensors import parts
from app.core.errors import BadInput
from app.core.model import Model
from backends.contract import Layers, Role

# Text is handled by the host with the whole file, so no stage carries what only text needs.
_LEFT_OUT = ("tokenizer.", "split.", "general.", "quantize.")
_KEPT = frozenset({"general.architecture", "general.file_type", "general.quantization_version"})


@dataclass(frozen=True, slots=True)
class Cut:
    """A stage as it is sent (the manifest), and where its host finds the bytes of each piece."""

    manifest: Manifest
    sources: tuple[Source, ...]


def cut(model: Model, header: Header, hashes: Mapping[str, str], layers: Layers, role: Role) -> Cut:
    """The stage that holds `layers` of the model in this role (DESIGN.md 3.1).

    hashes: tensor name -> SHA-256 in hex, of every tensor in the header. Role.WHOLE is for other
    machines: the model's own file without its vocabulary; here that file itself serves. Raises
    BadInput where the model may not be cut like this: a wrong cut would be silently wrong.
    """
    _check(model, layers, role)
    return assembled(Job(model, header, FAMILIES[model.architecture], layers, role), hashes)


def assembled(job: Job, hashes: Mapping[str, str]) -> Cut:
    """The stage of a job, without asking whether it is one that a whole pipeline has. Raises BadInput."""
    found = list(parts(job, hashes))
    alignment = job.header.alignment
    listed = [(p.name, p.tensor.shape, p.tensor.kind, p.tensor.n_bytes) for p in found]
    head = header_bytes(alignment, _entries(job), listed)
    pieces, offset = [], aligned(len(head), alignment)
    for part in found:
        pieces.append(Piece(part.sha256, part.tensor.n_bytes, offset))
        offset = aligned(offset + part.tensor.n_bytes, alignment)
    manifest = Manifest(job.model.id, head, tuple(pieces), total_bytes=offset)
    return Cut(manifest, tuple(part.source for part in found))


def read_pieces(cut: Cut, wants: Iterable[Want]) -> Iterator[bytes]:
    """The bytes of the wanted pieces, one after another, in chunks of at most 1 MiB."""
    for want in wants:
        yield from read(cut.sources[want.piece], want.start)


def _check(model: Model, layers: Layers, role: Role) -> None:
    if model.whole_reason:
        raise BadInput(model.whole_reason.code, **model.whole_reason.facts)
    ends = (layers.first == 0, layers.last == model.n_layers)
    whole = role is Role.WHOLE
    fits = ends == (whole or role is Role.FIRST, whole or role is Role.LAST)
    cuts = {0, *model.boundaries, model.n_layers}
    legal = whole or ({layers.first, layers.last} <= cuts and model.runs.allow(layers))
    if not fits or not legal:
        first, last = layers.first, layers.last
        raise BadInput("cut_illegal", model=model.name, first=first, last=last)


def stage_header(model: Model, header: Header, role: Role, layers: Layers) -> Header:
    """The metadata that a stage of these layers in this role has, without its tensors."""
    job = Job(model, header, FAMILIES[model.architecture], layers, role)
    data = header_bytes(header.alignment, _entries(job), [])
    return header_in(data, Path(header.path))


def _entries(job: Job) -> list[bytes]:
    """The metadata of the stage, each entry as the bytes of its file."""
    header, changed, found = job.header, changed_entries(job), []
    slices = Rule.F14 in job.family.rules and job.role is not Role.WHOLE
    for key, value in header.entries.items():
        if key in changed or (key.startswith(_LEFT_OUT) and key not in _KEPT):
            continue
        if slices and is_per_layer(header, key):
            found.append(sliced(header, key, job.layers))
        else:
            found.append(header.raw[value.start : value.end])
    found += [one for one in changed.values() if one is not None]
    found.append(u32_entry("general.alignment", header.alignment))
    found.append(entry("tokenizer.ggml.model", tensor_types.STRING, ("no_vocab",)))
    return found
