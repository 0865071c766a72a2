"""Searches the hub for repositories with GGUF files, and lists the files of a repository."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import aiohttp
import msgspec
from yarl import URL

from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf.gguf_file import is_model, is_projector_name, part_names, quantization_of, recommended_file
from app.catalog.hub.hub_address import Hub, check_file_names, check_repository, proxy_of
from app.catalog.hub.hub_files import MAX_REDIRECTS, REDIRECTS, new_session
from app.catalog.transfers.download_records import joint_hash
from app.core.errors import AppError, BadInput, Busy, Reason, Refused, Unreachable
from app.decoding import decode

# Each listing has one deadline and one size limit, is requested only from the hub's own hosts, and sends nothing about
# the user.

MAX_ANSWER_BYTES = 16 << 20
SECONDS = 20.0


async def fetch_listing(
    hub: Hub, path: str, query: Sequence[tuple[str, str]], *, named: str, token: str | None, seconds: float
) -> bytes:
    """Request a listing from the hub's API and return it as JSON. Raises AppError.

    A failed request is not retried, because a user who searches wants to know immediately.

    named: the subject of the listing, for the error if it does not exist.
    """
    source = hub.host
    try:
        async with asyncio.timeout(seconds), new_session() as session:
            url = str(URL(f"{hub.endpoint}{path}").with_query(list(query)))
            for _ in range(MAX_REDIRECTS):
                headers = {}
                if token and hub.is_own(url):
                    headers["Authorization"] = f"Bearer {token}"
                async with session.get(
                    URL(url, encoded=True), headers=headers, allow_redirects=False, proxy=proxy_of(url)
                ) as answer:
                    if answer.status in REDIRECTS:
                        url = hub.next(url, answer.headers.get("Location", ""))
                        continue
                    return await _body(hub, answer, named, bool(token))
    except TimeoutError:
        raise Unreachable("hub_slow", source=source) from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise Unreachable("hub_away", source=source) from None
    raise Unreachable("hub_odd", source=source)


async def _body(hub: Hub, answer: aiohttp.ClientResponse, named: str, with_token: bool) -> bytes:
    if answer.status != 200:
        raise _refusal(hub, named, answer.status, with_token)
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise Unreachable("hub_odd", source=hub.host)  # a compressed response could exceed the limit unnoticed
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise Unreachable("hub_answer_long", source=hub.host)
    return bytes(body)


def _refusal(hub: Hub, named: str, status: int, with_token: bool) -> AppError:
    if status in (401, 403) and with_token:
        return Refused("hub_token_wrong", source=hub.host)
    if status in (401, 403, 404):  # the hub also answers 401 if something does not exist
        return BadInput("hub_unknown", repository=named[:200], source=hub.host)
    if status == 429:
        return Busy("hub_busy", source=hub.host)
    return Unreachable("hub_fault", source=hub.host, status=status)


T = TypeVar("T")
MAX_FOUND = 60
MAX_FILES = 300
MAX_BYTES = 1 << 44
EXPANDED = ("downloads", "likes", "gated", "tags", "lastModified", "gguf")  # facts to request for each search result
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubModel:
    """A repository with GGUF files. Facts that the hub does not report are None."""

    repository: str
    downloads: int | None
    likes: int | None
    updated: str | None
    gated: bool
    license: str | None
    architecture: str | None
    parameters: int | None
    context_length: int | None

    @property
    def splits(self) -> bool | None:
        return self.architecture in FAMILIES if self.architecture else None


@dataclass(frozen=True, slots=True)
class HubFile:
    """A model file in a repository, which may be split into parts. If it cannot be used, `reason` says why."""

    file: str  # the first part if the model is split
    quantization: str | None
    size_bytes: int | None
    sha256: str | None
    recommended: bool = False
    reason: Reason | None = None
    n_parts: int = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """The GGUF files of a repository as of `revision`, smallest first."""

    about: HubModel
    revision: str
    files: tuple[HubFile, ...]
    projectors: tuple[HubFile, ...] = ()  # that let its models see, the one to prefer first


class _File(msgspec.Struct, frozen=True):
    """A large file, as described by the hub."""

    size: int | None = None
    sha256: str | None = None


class _Sibling(msgspec.Struct, frozen=True):
    """A file in a repository. `lfs` describes a large file, which is stored separately."""

    rfilename: str
    size: int | None = None
    lfs: _File | None = None


class _Gguf(msgspec.Struct, frozen=True):
    """The header of a repository's first GGUF file, as read by the hub. `total` is the number of parameters."""

    total: int | None = None
    architecture: str | None = None
    context_length: int | None = None


class _Model(msgspec.Struct, frozen=True, rename="camel"):
    """A repository in the hub's API. `gated` is "auto" or "manual" if access must be requested."""

    id: str
    sha: str | None = None
    downloads: int | None = None
    likes: int | None = None
    last_modified: datetime | None = None
    gated: bool | str | None = None
    tags: list[str] | None = None
    gguf: _Gguf | None = None
    siblings: list[_Sibling] | None = None


async def search(hub: Hub, text: str, limit: int, token: str | None, seconds: float = SECONDS) -> list[HubModel]:
    """Return the repositories with GGUF files that match a text, most downloaded first. Raises AppError."""
    query = [
        ("search", text),
        ("filter", "gguf"),
        ("sort", "downloads"),
        ("limit", str(min(limit, MAX_FOUND))),
        *(("expand", field) for field in EXPANDED),
    ]
    body = await fetch_listing(hub, "/api/models", query, named=text, token=token, seconds=seconds)
    return [repository for model in _read(hub, body, list[_Model]) if (repository := _hub_model(model))]


async def list_files(hub: Hub, repository: str, token: str | None, seconds: float = SECONDS) -> Listing:
    """Return the GGUF files of a repository with their sizes and hashes. Raises AppError."""
    path, query = f"/api/models/{check_repository(repository)}", [("blobs", "true")]
    body = await fetch_listing(hub, path, query, named=repository, token=token, seconds=seconds)
    model = _read(hub, body, _Model)
    about = _hub_model(model)
    if about is None or not _COMMIT.fullmatch(model.sha or ""):
        raise Unreachable("hub_odd", source=hub.host)
    siblings = model.siblings or []
    return Listing(about, str(model.sha), _files(siblings), _projectors(siblings))


def _read(hub: Hub, body: bytes, kind: type[T]) -> T:
    try:
        return decode(body, kind)
    except ValueError:
        raise Unreachable("hub_odd", source=hub.host) from None


def _hub_model(model: _Model) -> HubModel | None:
    try:
        check_repository(model.id)
    except BadInput:
        return None
    tags = model.tags or []
    licenses = [tag.removeprefix("license:") for tag in tags if tag.startswith("license:")]
    file = model.gguf or _Gguf()
    return HubModel(
        repository=model.id,
        downloads=_number(model.downloads),
        likes=_number(model.likes),
        updated=model.last_modified.date().isoformat() if model.last_modified else None,
        gated=bool(model.gated),
        license=licenses[0][:60] if licenses else None,
        architecture=file.architecture[:60] if file.architecture else None,
        parameters=_number(file.total),
        context_length=_number(file.context_length),
    )


def _files(siblings: list[_Sibling]) -> tuple[HubFile, ...]:
    models = _joined([_file(sibling) for sibling in siblings[: 10 * MAX_FILES] if is_model(sibling.rfilename)])
    models.sort(key=lambda file: (file.size_bytes or MAX_BYTES, file.file))
    return mark_recommended(models[:MAX_FILES])


PREFERRED = ("F16", "BF16", "Q8_0", "F32")  # number formats of projectors, which are small


def _projectors(siblings: list[_Sibling]) -> tuple[HubFile, ...]:
    there = [_file(sibling) for sibling in siblings[: 10 * MAX_FILES] if is_projector_name(sibling.rfilename)]
    there.sort(
        key=lambda file: PREFERRED.index(file.quantization) if file.quantization in PREFERRED else len(PREFERRED)
    )
    return tuple(replace(file, reason=_reason(file.file)) for file in there[:MAX_FILES])


def _file(sibling: _Sibling) -> HubFile:
    size = _number(sibling.lfs.size if sibling.lfs else sibling.size)
    promised = sibling.lfs.sha256 if sibling.lfs else None
    sha256 = promised if promised and _SHA256.fullmatch(promised) else None
    return HubFile(sibling.rfilename, quantization_of(sibling.rfilename), size, sha256)


def _joined(files: list[HubFile]) -> list[HubFile]:
    """Merge the parts of each split model into one entry. If parts are missing, the entry's reason says so."""
    by_name = {file.file: file for file in files}
    joined: list[HubFile] = []
    for first in dict.fromkeys(part_names(file.file)[0] for file in files):
        names = part_names(first)
        there = [by_name[name] for name in names if name in by_name]
        if len(names) == 1:
            joined += there
            continue
        sizes = [part.size_bytes for part in there]
        whole = len(there) == len(names)
        joined.append(
            HubFile(
                first,
                quantization_of(first),
                sum(size or 0 for size in sizes) if whole and None not in sizes else None,
                joint_hash(part.sha256 for part in there) if whole else None,
                reason=None if whole else _missing(len(names), len(there)),
                n_parts=len(names),
            )
        )
    return joined


def _missing(parts: int, here: int) -> Reason:
    return Reason("hub_parts_missing", {"parts": parts, "here": here})


def mark_recommended(files: list[HubFile]) -> tuple[HubFile, ...]:
    """Mark the recommended file, and add a reason to each file that cannot be used."""
    best = recommended_file([file.file for file in files if file.reason is None])
    return tuple(
        replace(file, recommended=file.file == best, reason=file.reason or _reason(file.file)) for file in files
    )


def _reason(file: str) -> Reason | None:
    try:
        check_file_names("a/b", file, None)
    except BadInput as error:
        return error.reason
    return None


def _number(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MAX_BYTES else None
