"""Models on this computer, models of the catalog, and whether they would fit."""

from __future__ import annotations

import msgspec

from app.api.plans import Plan
from app.core.errors import Reason
from app.core.planner.speed_estimates import Speed


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model as its file describes it."""

    name: str
    id: str = ""
    architecture: str = ""
    quantization: str = ""
    n_layers: int = 0
    width: int = 0
    n_vocab: int | None = None
    context_length: int | None = None
    file_bytes: int = 0
    quantized_kv: bool = False  # its KV cache may be quantized
    license: str | None = None


class ShelfModel(Model, frozen=True, kw_only=True):
    """A model on this computer."""

    path: str = ""
    splits: bool = True  # its layers may be on several machines
    whole_reason: str | None = None  # why not
    whole_reason_facts: Reason | None = None
    builtin: bool = False
    embeds: bool = False
    writes: bool = True
    has_template: bool = True
    ranks: bool = False
    n_parameters: int | None = None
    downloaded: bool = False  # by Poolhouse: removing the model deletes the file
    in_catalog: bool = False
    source: str | None = msgspec.field(name="from", default=None)  # the program that put the file there
    away: bool = False  # its disk is disconnected; otherwise a missing file is gone
    missing: str | None = None
    missing_facts: Reason | None = None


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
    context: int = 0  # of a conversation, if the model is loaded
    machine: str = ""


class Models(msgspec.Struct, frozen=True):
    """Answer of `GET /models`."""

    models: list[ShelfModel] = []
    offered: list[OfferedModel] = []


class ModelAnswer(msgspec.Struct, frozen=True):
    """Answer of `GET /models/{name}` and of an import."""

    model: ShelfModel


class ModelRemoved(msgspec.Struct, frozen=True):
    """Answer of `DELETE /models/{name}`."""

    removed: str
    freed_bytes: int = 0
    file_deleted: bool = False


class Unloaded(msgspec.Struct, frozen=True):
    """Answer of `POST /unload`: the first model, and the others."""

    unloaded: str | None = None
    also: list[str] = []


class HubFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model file of the catalog or the hub; for a model in several files, the first one."""

    file: str = ""
    parts: int = 1
    quantization: str = ""
    size_bytes: int | None = None
    sha256: str | None = None
    recommended: bool = False
    usable: bool = True
    reason: str | None = None  # why it is not usable
    reason_facts: Reason | None = None
    on_shelf: str | None = None  # its name on this computer
    download: str | None = None  # the ID of its download


class CatalogModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the catalog that comes with Poolhouse."""

    id: str
    name: str = ""
    maker: str = ""
    about: str = ""
    about_in: dict[str, str] = {}  # the same in other languages
    good_at: list[str] = []
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
    """Answer of `GET /catalog`. `made`: the day of the list."""

    made: str = ""
    models: list[CatalogModel] = []


class HubModel(msgspec.Struct, frozen=True, kw_only=True):
    """A repository of the hub with GGUF files. Fields are None if the hub does not report them."""

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
    """Answer of `GET /search`."""

    source: str = ""
    models: list[HubModel] = []


class HubListing(HubModel, frozen=True, kw_only=True):
    """Answer of `GET /search/files`: a repository with its files."""

    revision: str = ""
    files: list[HubFile] = []


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


class FoundPlace(msgspec.Struct, frozen=True):
    """A folder that was searched for model files."""

    app: str = ""
    folder: str = ""
    there: bool = False


class FoundFiles(msgspec.Struct, frozen=True):
    """Answer of `GET /found`."""

    files: list[FoundFile] = []
    looked_in: list[FoundPlace] = []


class MemoryParts(msgspec.Struct, frozen=True):
    """The memory that a whole model needs, and the memory that all machines lend."""

    weight_bytes: int = 0
    kv_bytes: int = 0
    work_bytes: int = 0
    lends_bytes: int = 0

    @property
    def needs_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.work_bytes


class Verdict(msgspec.Struct, frozen=True):
    """The judgment of whether a model would fit."""

    word: str = ""  # fits, tight, smaller context or too big
    spare_bytes: int = 0
    short_bytes: int = 0
    context: int = 0  # that fits
    parts: MemoryParts | None = None
    plan: Plan | None = None  # None: not requested, or nothing fits
    unforecast: str | None = None  # why the plan has no forecast
    unforecast_facts: Reason | None = None


class Verdicts(msgspec.Struct, frozen=True):
    """Answer of `POST /verdicts`, by the key of each sketch."""

    verdicts: dict[str, Verdict] = {}


class Starter(msgspec.Struct, frozen=True):
    """The model of the catalog that suits this household best as its first one."""

    id: str
    name: str = ""
    file: str = ""
    quantization: str = ""
    size_bytes: int | None = None
    needs_bytes: int = 0
    lends_bytes: int = 0
    tok_s: float | None = None


class StarterAnswer(msgspec.Struct, frozen=True):
    """Answer of `GET /starter`; None if no model of the catalog fits with room to spare."""

    starter: Starter | None = None


class Speeds(msgspec.Struct, frozen=True):
    """Answer of `POST /speeds`: how fast each machine computes layers of a model, by machine ID."""

    model: str
    n_layers: int = 0
    batch_rows: int = 0
    speeds: dict[str, Speed | None] = {}
    reasons: dict[str, str] = {}  # why a machine has no speed
    reasons_facts: dict[str, Reason] = {}


class TokenState(msgspec.Struct, frozen=True):
    """Answer of the `/token` routes: whether there is an access token of the hub, and where it is kept."""

    set: bool = False
    where: str = ""
    where_facts: Reason | None = None
