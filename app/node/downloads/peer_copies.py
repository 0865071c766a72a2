"""Whole models from other machines of the household, over the pinned links: who has one, and its bytes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import aiohttp
import msgspec
from msgspec import Meta

from app.catalog.gguf.gguf_names import part_names
from app.catalog.hub.hub_files import Body, FileFacts, FileRequest
from app.catalog.transfers.download_records import Record
from app.catalog.transfers.hash_pins import Pin
from app.core.errors import AppError, Refused, Unreachable
from app.core.household.membership import Member
from app.core.ids import machine_id
from app.decoding import decode
from app.network.network import Network
from app.network.peer.bounded_body import TooLong, TooSlow, whole_body
from app.network.peer.listener import MODELS_PATH
from app.network.peer.peer_client import GuestClient, problem
from app.network.peer.peer_link import PeerLink
from app.node.downloads.download_source import Copy

log = logging.getLogger(__name__)

HELD_SECONDS = 8.0  # a machine that does not say within so long has nothing to give
MOST_BYTES = 64 << 10  # of an answer that is no file
_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")

Size = Annotated[int, Meta(ge=1, le=1 << 44)]


class Held(msgspec.Struct, frozen=True):
    """The hashes a machine has, with the size of each file."""

    held: Annotated[dict[str, Annotated[list[Size], Meta(max_length=4096)]], Meta(max_length=256)]


class Pinned(msgspec.Struct, frozen=True):
    """The pin of a file's first download on some machine."""

    pin: Pin | None


class PeerCopies:
    """Asks the connected machines for copies and pins."""

    def __init__(self, network: Callable[[], Network]) -> None:
        self._network = network

    async def having(self, sha256: str) -> list[Copy]:
        """The machines that have this model and give it, by name. Raises nothing."""
        async with asyncio.TaskGroup() as group:
            queries = [
                (link, group.create_task(_has(machine, sha256), name="ask who has a model"))
                for link, machine in self._machines()
            ]
        return [Copy(str(link.peer), link.name) for link, query in queries if query.result()]

    async def pin(self, repository: str, file: str) -> Pin | None:
        """Return the household's pin of this file; None where no machine has one. Raises nothing."""
        async with asyncio.TaskGroup() as group:
            queries = [
                group.create_task(_pinned(machine, repository, file), name="ask for a pin")
                for _, machine in self._machines()
            ]
        pins = [pin for query in queries if (pin := query.result())]
        return min(pins, key=lambda pin: pin.taken, default=None)

    def _machines(self) -> list[tuple[PeerLink, GuestClient]]:
        network = self._network()
        links = sorted(network.links.values(), key=lambda link: (link.name, link.peer))
        there = [(network.members.get(link.peer), link) for link in links]
        return [(link, _client(member, link)) for member, link in there if member]

    def is_near(self, machine: str) -> bool:
        """Return whether there is a link to the machine."""
        return machine in self._network().links

    def files_of(self, record: Record) -> MemberFiles:
        """Return the files that a copy is read from."""
        return MemberFiles(self._network, record)


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """A machine, as sentences name it."""

    host: str

    @property
    def away_codes(self) -> tuple[str, str]:
        return "copy_held_up", "copy_unreached"


class MemberFiles:
    """The files of one model on another machine; the seam of app/catalog/transfers/file_transfer.py."""

    def __init__(self, network: Callable[[], Network], record: Record) -> None:
        self.place = MemberPlace(record.source)
        self._network, self._record = network, record

    @asynccontextmanager
    async def opened(self, file: FileRequest, start: int, token: str | None) -> AsyncGenerator[Body, None]:
        """No token goes there."""
        machine = self._machine()
        number = part_names(self._record.file).index(file.file)
        headers = {"Range": f"bytes={start}-"} if start else {}
        path = f"/{self._record.sha256}/{number}"
        async with machine.request("GET", path, headers=headers) as answer:
            if answer.status not in (200, 206):
                raise problem(await _short(answer), self._record.source)
            facts, begins = _stands(answer, start)
            async with aclosing(machine.chunks(answer)) as chunks:
                yield Body(facts, begins, _Content(chunks))

    async def facts_of(self, file: FileRequest, token: str | None) -> FileFacts:
        """A copy is begun only of files whose hashes and sizes are known."""
        return FileFacts()

    def _machine(self) -> GuestClient:
        """Raises Unreachable."""
        network, ident = self._network(), machine_id(self._record.machine or "")
        link, member = network.links.get(ident), network.members.get(ident)
        if link is None or member is None:
            raise Unreachable("copy_away", name=self._record.source)
        return _client(member, link)


class _Content:
    """The content of a file. A broken connection is asked again before it is reported."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    async def readany(self) -> bytes:
        try:
            return await anext(self._chunks, b"")
        except Unreachable as error:
            raise ConnectionResetError(str(error)) from error


def _client(member: Member, link: PeerLink) -> GuestClient:
    return GuestClient(member, link.address, link.guest_session, link.finished, MODELS_PATH)


def _stands(answer: aiohttp.ClientResponse, start: int) -> tuple[FileFacts, int]:
    """The size of the file, and where in it the answer begins. Raises Refused."""
    begins, total = 0, answer.content_length
    if answer.status == 206:
        match = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if not match or int(match[1]) != start:
            raise Refused("peer_refused")
        begins, total = start, int(match[3])
    if not total:
        raise Refused("peer_refused")
    return FileFacts(total_bytes=total), begins


async def _has(machine: GuestClient, sha256: str) -> bool:
    try:
        async with asyncio.timeout(HELD_SECONDS):
            question = msgspec.json.encode([sha256])
            async with machine.request("POST", "/held", question) as answer:
                if answer.status != 200:
                    return False  # an older version, or one that gives this machine nothing
                reply = decode(await _short(answer), Held)
                return sha256 in reply.held
    except (AppError, aiohttp.ClientError, OSError, ValueError) as error:
        log.info("%s does not say which models it has: %r", machine.host.name, error)
        return False


async def _pinned(machine: GuestClient, repository: str, file: str) -> Pin | None:
    try:
        async with asyncio.timeout(HELD_SECONDS):
            question = msgspec.json.encode([repository, file])
            async with machine.request("POST", "/pin", question) as answer:
                if answer.status != 200:
                    return None  # an older version
                pin = decode(await _short(answer), Pinned).pin
    except (AppError, aiohttp.ClientError, OSError, ValueError) as error:
        log.info("%s does not say what it took first: %r", machine.host.name, error)
        return None
    if pin is None or (pin.repository, pin.file) != (repository, file) or not pin.is_sound:
        return None
    return pin


async def _short(answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await whole_body(answer.content, answer.content_length, MOST_BYTES)
    except TooLong:
        raise Refused("peer_refused") from None
    except TooSlow as error:
        raise TimeoutError(str(error)) from None  # asked again, as a line that breaks
