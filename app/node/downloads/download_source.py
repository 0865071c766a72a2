"""Where a download comes from, and what was promised of it: the hub, or a machine of the household."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aiohttp import ClientSession

from app.catalog.catalogue import Catalogue, Offer, OfferedFile
from app.catalog.hub.hub_address import MAIN, Hub
from app.catalog.hub.hub_files import HubFiles
from app.catalog.transfers.download_records import PartFacts, Record, id_of, joint_hash
from app.catalog.transfers.file_transfer import Files
from app.catalog.transfers.hash_pins import Pin
from app.core.errors import BadInput, Refused
from app.node.downloads.download_fetch import new_parts


@dataclass(frozen=True, slots=True)
class Copy:
    """A machine of the household that has the very file; its bytes are checked against the hash."""

    machine: str  # its id
    name: str
    sha256: str | None = None  # where the catalogue does not know the file


def no_members(_: Record) -> Files:
    """For a place without a household."""
    raise Refused("copy_not_offered", name="")


async def no_pin(repository: str, file: str) -> Pin | None:
    """For a place that keeps none."""
    return None


async def keep_no_pin(pin: Pin) -> None:
    """For such a place."""


@dataclass(frozen=True, slots=True)
class Around:
    """What downloads need of the node around them."""

    hub: Callable[[], Hub]  # may raise AppError
    catalogue: Callable[[], Catalogue]
    token: Callable[[], Awaitable[str | None]]
    changed: Callable[[], None]  # something a face shows is another now
    contacted: Callable[[], None] = lambda: None  # the hub is asked now
    member: Callable[[Record], Files] = no_members  # what a copy is read from
    is_near: Callable[[str], bool] = lambda _: False  # whether that machine is connected now
    pin: Callable[[str, str], Awaitable[Pin | None]] = no_pin  # of a file, from anywhere in the household
    keep_pin: Callable[[Pin], Awaitable[None]] = keep_no_pin


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """What a person asked for; the names are checked ones. revision None: the catalogue's, or the newest."""

    repository: str
    file: str
    revision: str | None
    name: str
    copy: Copy | None = None


def new_record(wish: DownloadRequest, around: Around, pin: Pin | None = None) -> Record:
    """The record of a download; what the catalogue promises of the file counts, or else the pin of the
    household. Raises AppError."""
    known = promised(around.catalogue(), wish.repository, wish.file, wish.revision)
    of_parts = known[1].parts if known else ()
    facts = tuple(PartFacts(one.size_bytes, one.sha256) for one in of_parts)
    parts = new_parts(wish.file, facts)
    sha256 = joint_hash(part.sha256 for part in parts)
    if known and not parts:
        sha256 = known[1].sha256
    hash_from: Literal["catalogue", "server"] | None = "catalogue" if sha256 else None
    copy = wish.copy
    if copy and not sha256 and copy.sha256 and not parts:
        sha256, hash_from = copy.sha256, "server"  # as the hub's list said
    if copy and (sha256 is None or copy.sha256 not in (None, sha256)):
        raise BadInput("copy_no_hash", file=wish.file, name=copy.name)
    if pin is not None and not sha256:
        return _pinned(wish, around, pin)
    return Record(
        id=id_of(wish.repository, wish.file),
        repository=wish.repository,
        file=wish.file,
        revision=known[0].revision if known else wish.revision or MAIN,
        name=wish.name,
        source=copy.name if copy else around.hub().host,
        started=time.time(),
        total_bytes=known[1].size_bytes if known and known[0].is_pinned else None,
        sha256=sha256,
        hash_from=hash_from,
        parts=parts,
        machine=copy.machine if copy else None,
    )


def _pinned(wish: DownloadRequest, around: Around, pin: Pin) -> Record:
    return Record(
        id=id_of(wish.repository, wish.file),
        repository=wish.repository,
        file=wish.file,
        revision=pin.revision,
        name=wish.name,
        source=around.hub().host,
        started=time.time(),
        total_bytes=pin.total_bytes,
        sha256=pin.sha256,
        hash_from="household",
        parts=pin.parts,
    )


def may_be_pinned(wish: DownloadRequest, around: Around) -> bool:
    """Whether a file is one of the catalogue's whose hash nobody could look up."""
    known = promised(around.catalogue(), wish.repository, wish.file, wish.revision)
    return known is not None and known[1].whole_hash is None


def promised(
    catalogue: Catalogue, repository: str, file: str, revision: str | None
) -> tuple[Offer, OfferedFile] | None:
    """What the catalogue says of a file; None where it does not, or somebody wants another revision."""
    known = catalogue.find(repository, file)
    if known and revision not in (None, MAIN, known[0].revision):
        return None
    return known


def files_of(record: Record, around: Around, session: ClientSession) -> Files:
    """What its bytes are read from. Raises AppError."""
    if record.machine is not None:
        return around.member(record)
    around.contacted()
    return HubFiles(around.hub(), session)


async def no_token() -> None:
    """Machines of the household are asked without one: the token is the hub's alone."""
