"""Looks for models on the hub: repositories that hold GGUF files, and the files of one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from app.catalog.download_book import joint_hash
from app.catalog.families import FAMILIES
from app.catalog.gguf_names import is_model, part_names, quantisation_of, recommended
from app.catalog.hub_address import Hub, checked, checked_repository
from app.catalog.hub_limits import Limits
from app.core.errors import AppError, BadInput, Reason, Refused, Unreachable

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo, RepoSibling

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when huggingface_hub is imported

T = TypeVar("T")
SECONDS = 20.0
MAX_FOUND = 60
MAX_FILES = 300
MAX_BYTES = 1 << 44
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Found:
    """A repository with GGUF files. What the hub does not tell is None."""

    repository: str
    downloads: int | None
    likes: int | None
    updated: str | None
    gated: bool
    licence: str | None
    architecture: str | None
    parameters: int | None
    context_length: int | None

    @property
    def splits(self) -> bool | None:
        return self.architecture in FAMILIES if self.architecture else None


@dataclass(frozen=True, slots=True)
class HubFile:
    """One model of a repository, in one file or several; `reason` says why it cannot be used."""

    file: str  # of several the first
    quantisation: str | None
    size_bytes: int | None
    sha256: str | None
    recommended: bool = False
    reason: Reason | None = None
    n_parts: int = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """The GGUF files of a repository as they were at `revision`, the smallest first."""

    about: Found
    revision: str
    files: tuple[HubFile, ...]


def search(hub: Hub, text: str, limit: int, token: str | None, limits: Limits) -> list[Found]:
    """Repositories whose name holds the words, the most downloaded first. Blocks; raises AppError."""

    def ask(api: HfApi) -> list[Found]:
        models = api.list_models(
            search=text, filter="gguf", sort="downloads", limit=min(limit, MAX_FOUND),
            expand=["downloads", "likes", "gated", "tags", "lastModified", "gguf"],
        )  # fmt: skip
        return [found for model in models if (found := _found(model))]

    return _asked(hub, token, text, limits, ask)


def listing(hub: Hub, repository: str, token: str | None, limits: Limits) -> Listing:
    """The GGUF files of one repository, with sizes and hashes. Blocks; raises AppError."""
    checked_repository(repository)

    def ask(api: HfApi) -> Listing:
        model = api.model_info(repository, files_metadata=True)
        about = _found(model)
        if about is None or not re.fullmatch(r"[0-9a-f]{40}", str(model.sha)):
            raise Unreachable("hub_odd", source=hub.host)
        return Listing(about, str(model.sha), _files(model.siblings or []))

    return _asked(hub, token, repository, limits, ask)


def _asked(hub: Hub, token: str | None, what: str, limits: Limits, ask: Callable[[HfApi], T]) -> T:
    import httpx2  # heavy, as the others are
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    from app.catalog.hub_client import spoken_to

    try:
        with spoken_to(hub, limits):
            return ask(HfApi(endpoint=hub.endpoint, token=token or False))
    except AppError:
        raise
    except HfHubHTTPError as error:
        raise _refusal(hub, what, error.response.status_code, bool(token)) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError, AttributeError):
        raise Unreachable("hub_odd", source=hub.host) from None


def _refusal(hub: Hub, what: str, status: int, with_token: bool) -> AppError:
    if status in (401, 403) and with_token:
        return Refused("hub_token_wrong", source=hub.host)
    if status in (401, 403, 404):  # it says 401 of what is not there, too
        return BadInput("hub_unknown", repository=what[:200], source=hub.host)
    return Unreachable("hub_fault", source=hub.host, status=status)


def _found(model: ModelInfo) -> Found | None:
    try:
        checked_repository(model.id)
    except (BadInput, TypeError):
        return None
    given: list[object] = list(model.tags or [])
    tags = [tag for tag in given if isinstance(tag, str)]
    licences = [tag.removeprefix("license:") for tag in tags if tag.startswith("license:")]
    file: dict[str, Any] = model.gguf if isinstance(model.gguf, dict) else {}
    architecture = file.get("architecture")
    return Found(
        repository=model.id,
        downloads=_number(model.downloads),
        likes=_number(model.likes),
        updated=model.last_modified.date().isoformat() if model.last_modified else None,
        gated=bool(model.gated),
        licence=licences[0][:60] if licences else None,
        architecture=architecture[:60] if isinstance(architecture, str) else None,
        parameters=_number(file.get("total")),
        context_length=_number(file.get("context_length")),
    )


def _files(siblings: list[RepoSibling]) -> tuple[HubFile, ...]:
    found: list[HubFile] = []
    for sibling in siblings[: 10 * MAX_FILES]:
        name: object = sibling.rfilename
        if not isinstance(name, str) or not is_model(name):
            continue
        size = _number(sibling.lfs.size if sibling.lfs else sibling.size)
        promised: object = sibling.lfs.sha256 if sibling.lfs else None
        known = isinstance(promised, str) and _SHA256.fullmatch(promised)
        sha256 = known[0] if known else None
        found.append(HubFile(name, quantisation_of(name), size, sha256))
    found = _joined(found)
    found.sort(key=lambda file: (file.size_bytes or MAX_BYTES, file.file))
    return marked(found[:MAX_FILES])


def _joined(files: list[HubFile]) -> list[HubFile]:
    """The parts of one model are one line; where some are missing, it says so."""
    by_name = {one.file: one for one in files}
    found: list[HubFile] = []
    for first in dict.fromkeys(part_names(one.file)[0] for one in files):
        names = part_names(first)
        there = [by_name[name] for name in names if name in by_name]
        if len(names) == 1:
            found += there
            continue
        sizes = [one.size_bytes for one in there]
        whole = len(there) == len(names)
        found.append(HubFile(
            first,
            quantisation_of(first),
            sum(size or 0 for size in sizes) if whole and None not in sizes else None,
            joint_hash(one.sha256 for one in there) if whole else None,
            reason=None if whole else _missing(len(names), len(there)),
            n_parts=len(names),
        ))  # fmt: skip
    return found


def _missing(parts: int, here: int) -> Reason:
    return Reason("hub_parts_missing", {"parts": parts, "here": here})


def marked(files: list[HubFile]) -> tuple[HubFile, ...]:
    """The same files; the one to begin with is marked, and those that cannot be used say why."""
    best = recommended([file.file for file in files if file.reason is None])
    return tuple(
        replace(one, recommended=one.file == best, reason=one.reason or _reason(one.file))
        for one in files
    )


def _reason(file: str) -> Reason | None:
    try:
        checked("a/b", file, None)
    except BadInput as error:
        return error.reason
    return None


def _number(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= MAX_BYTES else None  # type: ignore[operator,return-value]
