"""The models on this computer and in the catalog, and whether they would fit."""

from __future__ import annotations

import msgspec

from app.api.plans import Plan
from app.core.errors import Reason
from app.core.planner.speed_estimates import Speed


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model as described by its file."""

    name: str
    id: str = ""
    architecture: str = ""
    quantization: str = ""
    n_layers: int = 0
    width: int = 0
    n_vocab: int | None = None
    context_length: int | None = None
    file_bytes: int = 0
    quantized_kv: bool = False  # whether its KV cache may be quantized
    license: str | None = None


class ShelfModel(Model, frozen=True, kw_only=True):
    """A model on this computer."""

    path: str = ""
    splits: bool = True  # whether its layers may be distributed over several machines
    whole_reason: str | None = None  # why they may not
    whole_reason_facts: Reason | None = None
    builtin: bool = False
    shipped: bool = False  # came with the app, beside the built-in model
    embeds: bool = False
    writes: bool = True
    has_template: bool = True
    ranks: bool = False
    n_parameters: int | None = None
    tools: bool = False  # whether its chat template describes tools to it
    thinks: bool = False  # whether its chat template knows thoughts
    # whether it looks at pictures: it has a vision projector (mmproj) that works here
    vision: bool = False
    projector: str | None = None  # the path of that projector
    projector_bytes: int = 0
    blind_reason: str | None = None  # why its projector cannot be used
    blind_reason_facts: Reason | None = None
    languages: list[str] = []  # as stated in its file
    maker: str = ""
    downloaded: bool = False  # whether Poolhouse downloaded it, so that removing the model deletes the file
    in_catalog: bool = False
    source: str | None = msgspec.field(name="from", default=None)  # the program that stored the file
    away: bool = False  # whether its disk is disconnected; otherwise a missing file is gone
    missing: str | None = None
    missing_facts: Reason | None = None

    @property
    def is_base(self) -> bool:
        """Return whether it is a base model, which completes text but does not chat."""
        return self.writes and not self.has_template


class OfferedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a host offers to this guest."""

    name: str
    id: str = ""
    architecture: str = ""
    quantization: str = ""
    file_bytes: int = 0
    embeds: bool = False
    writes: bool = True
    ranks: bool = False
    n_parameters: int = 0
    context: int = 0  # the context of a conversation, if the model is loaded
    machine: str = ""
    vision: bool = False  # whether it looks at pictures


class SharedModel(msgspec.Struct, frozen=True):
    """A model that another host of the household has loaded, and that answers questions from here."""

    model: str
    machine: str  # the name of the host
    machine_id: str
    reference: str  # `MODEL@MACHINE`, which requests use as the name of the model
    context: int = 0  # the context of a conversation
    ready: bool = True  # whether it can answer now; otherwise it is loading or being rebuilt
    default: bool = False  # whether it answers requests that name no model, as long as none is loaded here
    base: bool = False  # whether it completes text but does not chat
    vision: bool = False  # whether it looks at pictures
    picture_tokens: int = 0  # the most that a picture takes of its context; 0 if unknown


class Models(msgspec.Struct, frozen=True):
    """The response to `GET /models`."""

    models: list[ShelfModel] = []
    offered: list[OfferedModel] = []
    shared: list[SharedModel] = []


class ModelResponse(msgspec.Struct, frozen=True):
    """The response to `GET /models/{name}` and to an import. For a projector, it is the model that now sees."""

    model: ShelfModel


class RemoveModelResponse(msgspec.Struct, frozen=True):
    """The response to `DELETE /models/{name}`."""

    removed: str
    freed_bytes: int = 0
    file_deleted: bool = False


class UndoMoveResponse(msgspec.Struct, frozen=True):
    """The response to `POST /undo-move`: the model whose layers move back."""

    model: str


class UnloadResponse(msgspec.Struct, frozen=True):
    """The response to `POST /unload`: the first model that was unloaded, and all others."""

    unloaded: str | None = None
    also: list[str] = []


class HubFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model file in the catalog or on the hub. A model that consists of several files is represented by the first."""

    file: str = ""
    parts: int = 1
    quantization: str = ""
    size_bytes: int | None = None
    sha256: str | None = None
    recommended: bool = False
    usable: bool = True
    reason: str | None = None  # why it is not usable
    reason_facts: Reason | None = None
    on_shelf: str | None = None  # its name among the models of this computer
    download: str | None = None  # the ID of its download


class CatalogModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model in the catalog that is included with Poolhouse."""

    id: str
    name: str = ""
    maker: str = ""
    about: str = ""
    about_in: dict[str, str] = {}  # `about` in other languages
    good_at: list[str] = []
    n_languages: int | None = None  # that its maker says it knows
    parameters: int | None = None
    active_parameters: int | None = None
    architecture: str = ""
    n_layers: int | None = None
    context_length: int | None = None
    kv_bytes_per_token: int | None = None
    license: str = ""
    gated: bool = False
    splits: bool = True
    repository: str = ""
    revision: str = ""
    page: str = ""
    files: list[HubFile] = []


class Catalog(msgspec.Struct, frozen=True):
    """The response to `GET /catalog`. `made` is the date of the catalog."""

    made: str = ""
    models: list[CatalogModel] = []


class HubModel(msgspec.Struct, frozen=True, kw_only=True):
    """A repository on the hub that contains GGUF files. A field is None if the hub does not report it."""

    repository: str
    downloads: int | None = None
    likes: int | None = None
    updated: str | None = None
    gated: bool = False
    license: str | None = None
    architecture: str | None = None
    parameters: int | None = None
    context_length: int | None = None
    name: str = ""
    maker: str = ""
    splits: bool | None = None
    page: str = ""


class HubSearch(msgspec.Struct, frozen=True):
    """The response to `GET /search`."""

    source: str = ""
    models: list[HubModel] = []


class HubListing(HubModel, frozen=True, kw_only=True):
    """The response to `GET /search/files`: a repository and its files."""

    revision: str = ""
    files: list[HubFile] = []
    projectors: list[HubFile] = []  # files that let its models see (mmproj), the one to prefer first


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model file of another program on this computer."""

    path: str
    app: str = ""
    name: str = ""
    size_bytes: int = 0
    architecture: str | None = None
    quantization: str | None = None
    n_layers: int | None = None
    context_length: int | None = None
    splits: bool = False
    usable: bool = True
    reason: str | None = None
    reason_facts: Reason | None = None
    on_shelf: str | None = None


class SearchedFolder(msgspec.Struct, frozen=True):
    """A folder that was searched for model files."""

    app: str = ""
    folder: str = ""
    there: bool = False


class FoundFiles(msgspec.Struct, frozen=True):
    """The response to `GET /found`."""

    files: list[FoundFile] = []
    looked_in: list[SearchedFolder] = []


class MemoryParts(msgspec.Struct, frozen=True):
    """The memory that a whole model needs, and the memory that all machines lend together."""

    weight_bytes: int = 0
    kv_bytes: int = 0
    work_bytes: int = 0
    lends_bytes: int = 0

    @property
    def needs_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.work_bytes


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on whether a model would fit."""

    word: str = ""  # fits, tight, smaller context or too big
    spare_bytes: int = 0
    short_bytes: int = 0
    context: int = 0  # a context that fits
    parts: MemoryParts | None = None
    plan: Plan | None = None  # None if it was not requested or nothing fits
    tok_s: float | None = None  # the forecast speed of an answer, if it was requested
    spread: float = 1.0  # the factor by which an answer may be faster or slower than `tok_s`
    unforecast: str | None = None  # why the plan has no forecast
    unforecast_facts: Reason | None = None


class Verdicts(msgspec.Struct, frozen=True):
    """The response to `POST /verdicts`. Each verdict has the same key as its sketch."""

    verdicts: dict[str, Verdict] = {}


class Starter(msgspec.Struct, frozen=True):
    """The model in the catalog that suits this household best as its first model for a use."""

    id: str
    name: str = ""
    file: str = ""
    quantization: str = ""
    size_bytes: int | None = None
    needs_bytes: int = 0
    lends_bytes: int = 0
    tok_s: float | None = None
    machines: list[str] = []  # the names of the machines that would hold its layers
    spread: float = 1.0  # the factor by which an answer may be faster or slower than `tok_s`


class StarterResponse(msgspec.Struct, frozen=True):
    """The response to `GET /starter`. `starter` is None if no catalog model fits with memory to spare."""

    starter: Starter | None = None


class Speeds(msgspec.Struct, frozen=True):
    """The response to `POST /speeds`: how fast each machine computes layers of a model, by machine ID."""

    model: str
    n_layers: int = 0
    batch_rows: int = 0
    speeds: dict[str, Speed | None] = {}
    reasons: dict[str, str] = {}  # why a machine has no speed
    reasons_facts: dict[str, Reason] = {}


class TokenState(msgspec.Struct, frozen=True):
    """The response of the `/token` routes: whether an access token for the hub exists, and where it is stored."""

    set: bool = False
    where: str = ""
    where_facts: Reason | None = None
