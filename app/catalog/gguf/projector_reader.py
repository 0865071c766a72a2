"""Projectors (mmproj files), which turn pictures into rows for a model: their facts, and the models that they fit."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.gguf.gguf_file import Header, printable
from app.core.errors import BadInput, Reason
from app.core.model import Model, Projector
from backends.contract import MAX_BATCH_TOKENS, NumberFormat
from backends.frames import MAX_PAYLOAD

VISION = "clip.vision."


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of projector. most_rows: the limit for pictures, which can have any size; 0 for the limit in the file."""

    sees_all: bool = False  # whether the rows of a picture see each other
    is_grid: bool = False  # whether their positions have two dimensions (M-RoPE), which needs all of them in one step
    families: tuple[str, ...] = ()  # the only families of models that it belongs to, if any
    most_rows: int = 0
    marker: str = ""  # a token that its models have, where their family does not tell them apart


# The kinds that are verified (tests/vision). 280 rows are the usual limit of Gemma 4, and 448 are 592 x 592 pixels for
# Qwen; both fit into one step. Not among them is pixtral: the engine of 0.3.36 clears the rows of its line breaks by
# multiplying memory that was never written.
KINDS = {
    "gemma3": Kind(sees_all=True, families=("gemma3",)),
    "gemma4v": Kind(sees_all=True, families=("gemma4",), most_rows=280),
    "idefics3": Kind(marker="<fake_token_around_image>"),
    "qwen2vl_merger": Kind(is_grid=True, families=("qwen2vl",), most_rows=448),
    "qwen2.5vl_merger": Kind(is_grid=True, families=("qwen2vl",), most_rows=448),
    "qwen3vl_merger": Kind(is_grid=True, families=("qwen35", "qwen35moe", "qwen3vl", "qwen3vlmoe"), most_rows=448),
}
DEEP = ("qwen3vl", "qwen3vlmoe")  # families in which a picture also enters later layers
UNPROVED = Kind()
CAUSAL_GEMMA_4 = (1536, 2560)  # widths of the small ones, in which a row of a picture sees only those before it
MAX_WIDTH, MAX_SIDE, MAX_FACTOR = 1 << 17, 1 << 14, 1 << 6
USUAL_FACTOR = {"gemma3": 4, "gemma4v": 3, "qwen2vl_merger": 2, "qwen2.5vl_merger": 2, "qwen3vl_merger": 2}
WORK_FLOOR_BYTES = 16 << 20
MOST_WORK_BYTES = 8 << 30  # Gemma 3 takes 0.3 GiB
TOKENS = "tokenizer.ggml.tokens"
TOKENS_AROUND_TILE = 3  # such as <fake_token_around_image><row_1_col_1> and a line break
MOST_PICTURE_TOKENS = 1 << 20
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
    picture_rows: int  # rows of a picture that are computed in one step; 0 if they may be divided
    work_bytes: int  # memory in addition to its weights
    most_rows: int = 0  # see Kind
    picture_tokens: int = 0  # the most that a picture takes of a conversation


def projector_facts(header: Header) -> ProjectorFacts:
    """Return the facts about a projector. Raises BadInput if it is damaged."""
    kind = header.text("clip.projector_type") or header.text(f"{VISION}projector_type")
    has_vision = f"{VISION}block_count" in header.entries
    if not has_vision:
        return ProjectorFacts(printable(kind), 0, has_vision=False, picture_rows=0, work_bytes=0)
    width, known = _width(header, kind), KINDS.get(kind, UNPROVED)
    side = header.integer(f"{VISION}image_size", 1, MAX_SIDE, 1)
    patch = header.integer(f"{VISION}patch_size", 1, MAX_SIDE, 1)
    factor = header.integer(f"{VISION}projector.scale_factor", 1, MAX_FACTOR, USUAL_FACTOR.get(kind, 1))
    n_patches = max(1, side // patch) ** 2
    values = sum(
        header.integer(f"{VISION}{key}", 1, MAX_WIDTH, 1) for key in ("feed_forward_length", "embedding_length")
    )
    rows = known.most_rows or n_patches // factor**2
    if known.most_rows:
        n_patches = max(n_patches, known.most_rows * factor**2)
    longest = header.integer(f"{VISION}preproc_image_size", 1, MAX_SIDE, side)
    n_tiles = -(-longest // side)  # a larger picture is seen whole and in tiles
    picture_tokens = rows if n_tiles < 2 else (n_tiles**2 + 1) * (rows + TOKENS_AROUND_TILE)
    is_divided = not (known.sees_all or known.is_grid) or (kind == "gemma4v" and width in CAUSAL_GEMMA_4)
    return ProjectorFacts(
        printable(kind),
        width,
        has_vision=True,
        picture_rows=0 if is_divided else rows,
        work_bytes=WORK_FLOOR_BYTES + 4 * n_patches * values * VALUES_AT_ONCE,
        most_rows=known.most_rows,
        picture_tokens=min(picture_tokens, MOST_PICTURE_TOKENS),
    )


# The tensor of the last projection of each kind, and the place of the row's width in its shape
PROJECTIONS = {
    "gemma3": ("mm.input_projection.weight", 0),
    "gemma4v": ("mm.input_projection.weight", 1),
    "idefics3": ("mm.model.fc.weight", 1),
    "qwen2vl_merger": ("mm.2.weight", 1),
    "qwen2.5vl_merger": ("mm.2.weight", 1),
    "qwen3vl_merger": ("mm.2.weight", 1),
}


def _width(header: Header, kind: str) -> int:
    """Return the width of a row, read from the projection itself if the stated width may refer to something else."""
    name, place = PROJECTIONS.get(kind, ("", 0))
    tensor = header.tensors.get(name)
    if tensor is not None and place < len(tensor.shape):
        return tensor.shape[place]
    return header.integer(f"{VISION}projection_dim", 1, MAX_WIDTH)


def fits(facts: ProjectorFacts, model: Model) -> bool:
    """Return whether a projector is for a model of this family and width."""
    families = KINDS.get(facts.kind, UNPROVED).families or (model.architecture,)
    return model.writes and facts.has_vision and facts.width == model.width and model.architecture in families


def attached(facts: ProjectorFacts, header: Header, model: Model) -> Projector:
    """Return a projector as a part of a model, with the reason if it cannot be used."""
    reason = None
    if facts.kind not in KINDS:
        reason = Reason("projector_kind", {"model": model.name, "kind": facts.kind or "?"})
    elif model.architecture in DEEP:
        reason = Reason("projector_deep", {"model": model.name, "architecture": model.architecture})
    elif _is_large(facts):
        reason = Reason("projector_large", {"model": model.name})
    return Projector(
        header.path,
        facts.kind,
        header.file_bytes,
        facts.picture_rows if reason is None else 0,
        header.file_bytes + facts.work_bytes,
        reason,
        facts.most_rows,
    )


def _is_large(facts: ProjectorFacts) -> bool:
    """Return whether a picture is too large for any step, or its computation for any computer."""
    step_bytes = facts.picture_rows * NumberFormat.F32.row_bytes(facts.width)
    return facts.picture_rows > MAX_BATCH_TOKENS or step_bytes > MAX_PAYLOAD or facts.work_bytes > MOST_WORK_BYTES


def has_markers(facts: ProjectorFacts, header: Header) -> bool:
    """Return whether a model's vocabulary has the token that encloses pictures of this projector."""
    marker = KINDS.get(facts.kind, UNPROVED).marker
    return not marker or marker in map(str, header.items(TOKENS))


def other_model(header: Header, facts: ProjectorFacts) -> BadInput:
    """Return the error for a projector that fits no model."""
    return BadInput("projector_other", path=header.path, width=facts.width)
