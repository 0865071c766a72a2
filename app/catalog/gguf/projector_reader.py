"""Projectors (mmproj files), which turn pictures into rows for a model: their facts, and the models that they fit."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf.gguf_file import Header, printable
from app.core.errors import BadInput, Reason
from app.core.model import Model, Projector

VISION = "clip.vision."
# The kinds that are proved (tests/vision), and whether the rows of a picture see each other
KINDS = {"gemma3": True, "idefics3": False}
ONE_FAMILY = {"gemma3": "gemma3"}  # kinds that belong to one family of models
MAX_WIDTH, MAX_SIDE, MAX_FACTOR = 1 << 17, 1 << 14, 1 << 6
USUAL_FACTOR = {"gemma3": 4}
WORK_FLOOR_BYTES = 16 << 20
VALUES_AT_ONCE = 3  # copies of the widest values of all patches that are computed at the same time


def is_projector(header: Header) -> bool:
    """Return whether a file is a projector rather than a model."""
    kind, architecture = header.text("general.type").casefold(), header.text("general.architecture").casefold()
    return kind == "mmproj" or architecture in ("clip", "mmproj")


@dataclass(frozen=True, slots=True)
class ProjectorFacts:
    """The facts about a projector file."""

    kind: str
    width: int  # values of a row, which is the width of the models that it fits
    has_vision: bool  # it may also be for sound alone
    picture_rows: int  # rows of a picture that see each other; 0 if each sees only those before it
    work_bytes: int  # memory in addition to its weights


def projector_facts(header: Header) -> ProjectorFacts:
    """Return the facts about a projector. Raises BadInput if it is damaged."""
    kind = header.text("clip.projector_type") or header.text(f"{VISION}projector_type")
    has_vision = f"{VISION}block_count" in header.entries
    if not has_vision:
        return ProjectorFacts(printable(kind), 0, has_vision=False, picture_rows=0, work_bytes=0)
    width = _width(header)
    side = header.integer(f"{VISION}image_size", 1, MAX_SIDE, 1)
    patch = header.integer(f"{VISION}patch_size", 1, MAX_SIDE, 1)
    factor = header.integer(f"{VISION}projector.scale_factor", 1, MAX_FACTOR, USUAL_FACTOR.get(kind, 1))
    n_patches = max(1, side // patch) ** 2
    values = sum(
        header.integer(f"{VISION}{key}", 1, MAX_WIDTH, 1) for key in ("feed_forward_length", "embedding_length")
    )
    return ProjectorFacts(
        printable(kind),
        width,
        has_vision=True,
        picture_rows=n_patches // factor**2 if KINDS.get(kind) else 0,
        work_bytes=WORK_FLOOR_BYTES + 4 * n_patches * values * VALUES_AT_ONCE,
    )


def _width(header: Header) -> int:
    """Return the width of a row, from the projection itself where the stated one may be that of something else."""
    tensors = header.tensors
    if (gemma := tensors.get("mm.input_projection.weight")) is not None:
        return gemma.shape[0]
    if (idefics := tensors.get("mm.model.fc.weight")) is not None:
        return prod(idefics.shape[1:])
    return header.integer(f"{VISION}projection_dim", 1, MAX_WIDTH)


def fits(facts: ProjectorFacts, model: Model) -> bool:
    """Return whether a projector is for a model of this family and width."""
    family = ONE_FAMILY.get(facts.kind, model.architecture)
    return model.writes and facts.has_vision and facts.width == model.width and family == model.architecture


def attached(facts: ProjectorFacts, header: Header, model: Model) -> Projector:
    """Return a projector as a part of a model, with the reason if it cannot be used."""
    reason = None
    if has_planes(model.architecture):
        reason = Reason("projector_positions", {"model": model.name, "architecture": model.architecture})
    elif facts.kind not in KINDS:
        reason = Reason("projector_kind", {"model": model.name, "kind": facts.kind or "?"})
    return Projector(
        header.path,
        facts.kind,
        header.file_bytes,
        facts.picture_rows if reason is None else 0,
        header.file_bytes + facts.work_bytes,
        reason,
    )


def has_planes(architecture: str) -> bool:
    """Return whether a family numbers the positions of a picture in several dimensions (M-RoPE)."""
    family = FAMILIES.get(architecture)
    return family is not None and family.planes > 1


def other_model(header: Header, facts: ProjectorFacts) -> BadInput:
    """Return the error for a projector that fits no model."""
    return BadInput("projector_other", path=header.path, width=facts.width)
