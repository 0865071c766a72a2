"""The catalog of current open models that ships with the app, with the models' files and known facts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf.gguf_file import MAX_PARTS, part_names
from app.catalog.hub.hub_address import check_file_names
from app.catalog.transfers.download_records import joint_hash
from app.core.errors import BadInput
from app.core.nearest_names import nearest_names
from app.decoding import decode

FILE = Path(__file__).resolve().parents[2] / "resources" / "catalog.json"

Short = Annotated[str, Meta(min_length=1, max_length=120)]
Size = Annotated[int, Meta(ge=1 << 20, le=1 << 42)]
Count = Annotated[int, Meta(ge=1, le=1 << 42)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
# what the model is good at in this app, where no model processes images or sound yet
GoodAt = Literal["chat", "code", "tools", "thinking", "languages", "small", "long texts"]
License = Literal[
    "Apache-2.0",
    "MIT",
    "Modified MIT",
    "Gemma Terms of Use",
    "Llama 3.1 Community",
    "Llama 3.2 Community",
    "Llama 3.3 Community",
    "Llama 4 Community",
    "LFM Open License v1.0",
    "as its model page says",
]
WORK_SHARE = 0.1  # memory that the engine needs besides the weights and the context, as a share of the weights
USUAL_CONTEXT = 4096


class OfferedPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One part of a version that is split into several files. Facts that are not known are null."""

    size_bytes: Size | None
    sha256: Hash | None


About = Annotated[str, Meta(min_length=20, max_length=200)]
Language = Annotated[str, Meta(pattern="^[a-z]{2}$")]


class OfferedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One quantization of a model. If it is split, `file` is the first part.

    A fact that could not be looked up is null. The hub reports it during the download, and the household pins it
    (app/catalog/transfers/hash_pins.py).
    """

    file: Short
    quantization: Short
    size_bytes: Size | None
    sha256: Hash | None
    recommended: bool = False
    parts: Annotated[tuple[OfferedPart, ...], Meta(max_length=MAX_PARTS)] = ()  # empty if unknown

    @property
    def whole_hash(self) -> str | None:
        """Return the hash that identifies this version after the download, or None if it is unknown."""
        return joint_hash(part.sha256 for part in self.parts) if self.parts else self.sha256


class OfferedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model in the catalog."""

    id: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9.-]{0,60}$")]
    name: Short
    maker: Short
    about: About
    about_in: dict[Language, About]  # translations of `about`, which is in English
    good_at: Annotated[tuple[GoodAt, ...], Meta(max_length=8)]
    n_languages: Annotated[int, Meta(ge=1, le=1000)] | None  # that its maker says it knows
    parameters: Count | None
    active_parameters: Count | None
    architecture: Short
    n_layers: Annotated[int, Meta(ge=1, le=512)] | None
    context_length: Count | None
    kv_bytes_per_token: Count | None
    license: License
    gated: bool
    repository: Short
    revision: Short
    files: Annotated[tuple[OfferedFile, ...], Meta(min_length=1, max_length=12)]
    whole_only: bool = False  # whether it is a variant that was not proved to split
    # rank among the models recommended to beginners; 1 is the best
    starter: Annotated[int, Meta(ge=1, le=99)] | None = None

    @property
    def is_pinned(self) -> bool:
        """Return whether the revision is a commit, whose files cannot change on the hub."""
        return bool(re.fullmatch(r"[0-9a-f]{40}", self.revision))

    @property
    def splits(self) -> bool:
        """Return whether the model may be split across machines."""
        return self.architecture in FAMILIES and not self.whole_only

    def version_for(self, memory_bytes: int, context: int = USUAL_CONTEXT) -> OfferedFile | None:
        """Return the largest version that fits in `memory_bytes` together with a context of `context` tokens, or
        None."""
        known = [(file.size_bytes, file) for file in self.files if file.size_bytes]
        room = memory_bytes - (self.kv_bytes_per_token or 0) * context
        fitting = [sized for sized in known if sized[0] * (1 + WORK_SHARE) <= room]
        return max(fitting, key=lambda sized: sized[0])[1] if fitting else None


class Catalog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All models in the catalog. `made` is the date when the facts were looked up."""

    made: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    models: tuple[OfferedModel, ...]

    def find(self, repository: str, file: str) -> tuple[OfferedModel, OfferedFile] | None:
        """Return the catalog's entry for a file on the hub, or None."""
        for offer in self.models:
            if offer.repository == repository:
                for offered in offer.files:
                    if offered.file == file:
                        return offer, offered
        return None

    def starters(self, use: GoodAt = "chat") -> list[OfferedModel]:
        """Return the models to recommend to a new household for a use, best first."""
        ranked = [(model.starter, model) for model in self.models if model.starter is not None and use in model.good_at]
        return [model for _, model in sorted(ranked, key=lambda pair: pair[0])]

    def other_starters(self, use: GoodAt = "chat") -> list[OfferedModel]:
        """Return the other freely downloadable models for a use, largest first, in case no starter model fits."""
        suitable = (model for model in self.models if use in model.good_at and model.starter is None)
        free = (model for model in suitable if not model.gated)
        return sorted(free, key=lambda model: -(model.parameters or 0))

    def find_by_name(self, name: str) -> tuple[OfferedModel, OfferedFile]:
        """Return the model with this name or id, or the only one whose id begins with it, together with one of its
        files.

        This is the recommended file unless a quantization follows a colon (`qwen3-8b:Q8_0`). Raises BadInput.
        """
        query, _, quantization = name.strip().casefold().partition(":")
        plain = query.replace(" ", "-")
        exact = [model for model in self.models if query == model.name.casefold() or plain == model.id]
        begins = [model for model in self.models if plain and model.id.startswith(plain)]
        matches = exact or begins
        if len(matches) > 1:
            raise BadInput("catalog_ambiguous", name=name[:100], there=", ".join(model.id for model in matches))
        if not matches:
            if near := ", ".join(self.nearest(name)):
                raise BadInput("catalog_unknown_near", name=name[:100], near=near)
            raise BadInput("catalog_unknown", name=name[:100], there=", ".join(model.id for model in self.models))
        files = matches[0].files
        for file in files:
            if file.quantization.casefold() == quantization or (not quantization and file.recommended):
                return matches[0], file
        there = ", ".join(file.quantization for file in files)
        raise BadInput("catalog_no_version", name=matches[0].id, there=there)

    def nearest(self, name: str) -> list[str]:
        """Return the ids of the models that may have been meant by a name that the catalog does not contain."""
        return nearest_names(name.partition(":")[0], (model.id for model in self.models))

    def has(self, sha256: str) -> bool:
        """Return whether the catalog contains a file with this hash."""
        return any(file.whole_hash == sha256 for offer in self.models for file in offer.files)


@cache
def load_catalog(path: Path = FILE) -> Catalog:
    """Load the catalog that ships with the app. Raises BadInput if its file is missing or damaged."""
    try:
        catalog = decode(path.read_bytes(), Catalog)
    except (OSError, ValueError):
        raise BadInput("catalog_damaged") from None
    for offer in catalog.models:
        for file in offer.files:
            check_file_names(offer.repository, file.file, offer.revision)
            if file.parts and len(file.parts) != len(part_names(file.file)):
                raise BadInput("catalog_damaged")
    return catalog
