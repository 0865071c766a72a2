"""Copies of whole models between machines of a household, if the owner allows them.

A model is requested by the SHA-256 of its file, so that no machine can list the models of another. A file is sent
only if this machine verified or computed its hash during a download, copy or import. The receiver verifies the hash
again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import msgspec
from aiohttp import web
from msgspec import Meta

from app.api.downloads import OutgoingCopy
from app.catalog.gguf.gguf_file import part_names
from app.catalog.hub.hub_files import Body, FileFacts, FileRequest
from app.catalog.transfers.download_records import Record
from app.catalog.transfers.file_transfer import MY_TURN
from app.catalog.transfers.hash_pins import Pin
from app.core.errors import AppError, BadInput, Busy, Refused, Unreachable
from app.core.household.membership import Member
from app.core.ids import machine_id
from app.decoding import decode
from app.machine.settings import SettingsStore
from app.network.network import Network
from app.network.peer.listener import MEMBER, MODELS_PATH
from app.network.peer.peer_client import HostClient
from app.network.peer.peer_link import PeerLink
from app.network.traffic_limits import LinkPace, whole_body
from app.node.downloads.download_source import PeerCopy
from app.node.downloads.file_streams import MOST_BYTES, received_file, send_file, short_body

log = logging.getLogger(__name__)

Json = dict[str, Any]
MOST_ASKED = 256
HELD_SECONDS = 8.0  # time limit for a reply; a machine that takes longer counts as having nothing
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,3}")

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
RequestedHashes = Annotated[list[Hash], Meta(max_length=MOST_ASKED)]
Size = Annotated[int, Meta(ge=1, le=1 << 44)]
FilesByHash = Callable[[Sequence[str]], dict[str, tuple[Path, ...]]]
"""The files of the models with these hashes that are whole here. Reads the disk."""


@dataclass(slots=True)
class OutgoingModel:
    """A model that is being sent, and the progress over all of its files."""

    machine: str  # name of the receiving machine
    model: str
    done_bytes: int
    total_bytes: int


class ModelServer:
    """The routes that send models. The listener has already checked that the requester is a member and a host.

    name_of: returns the name of the model whose first file has this path.
    changed: called when the progress changes.
    """

    def __init__(
        self,
        has: FilesByHash,
        choices: SettingsStore,
        pace: LinkPace,
        name_of: Callable[[Path], str],
        changed: Callable[[], None],
        pin: Callable[[str, str], Pin | None] = lambda repository, file: None,
    ) -> None:
        self._has, self._choices, self._pace = has, choices, pace
        self._name_of, self._changed, self._pin = name_of, changed, pin
        self._turn = asyncio.Lock()
        self._now: OutgoingModel | None = None

    def snapshot(self) -> OutgoingCopy | None:
        """Return the copy that is being sent."""
        return OutgoingCopy(**asdict(self._now)) if self._now else None

    @property
    def is_busy(self) -> bool:
        """Return whether a model is being sent."""
        return self._turn.locked()

    def application(self) -> web.Application:
        made = web.Application()
        made.add_routes(
            [web.post("/held", self._held), web.post("/pin", self._pinned), web.get("/{sha256}/{number}", self._give)]
        )
        return made

    async def _held(self, request: web.Request) -> web.Response:
        """Respond with the file sizes of each requested model that this machine has."""
        raw = await whole_body(request.content, request.content_length, MOST_BYTES)
        hashes = decode(raw, RequestedHashes)
        sizes = await asyncio.to_thread(self._sizes, hashes) if self._choices.now.share_models else {}
        return web.json_response({"held": sizes})

    async def _pinned(self, request: web.Request) -> web.Response:
        """Respond with the pin that this machine saved when it first downloaded a file, or `null`. Works even if
        models are not shared."""
        raw = await whole_body(request.content, request.content_length, MOST_BYTES)
        repository, file = decode(raw, tuple[str, str])
        pin = await asyncio.to_thread(self._pin, repository, file)
        return web.json_response({"pin": msgspec.to_builtins(pin)})

    def _sizes(self, hashes: Sequence[str]) -> dict[str, list[int]]:
        sizes: dict[str, list[int]] = {}
        for key, paths in self._has(hashes).items():
            with suppress(OSError):  # the file has just disappeared
                sizes[key] = [path.stat().st_size for path in paths]
        return sizes

    async def _give(self, request: web.Request) -> web.StreamResponse:
        """Send one file from the requested position. Only one file is sent at a time."""
        sha256, number = request.match_info["sha256"], request.match_info["number"]
        if not self._choices.now.share_models:
            raise Refused("copy_not_offered", name=self._choices.now.name)
        good = _SHA256.fullmatch(sha256) and _NUMBER.fullmatch(number)
        files = await asyncio.to_thread(self._has, [sha256]) if good else {}
        paths = files.get(sha256, ())
        if not good or int(number) >= len(paths):
            raise BadInput("copy_gone", name=self._choices.now.name)
        if self._turn.locked():
            raise Busy(MY_TURN, name=self._choices.now.name)
        async with self._turn:
            try:
                self._now = await asyncio.to_thread(self._progress_at, request[MEMBER], paths, number)
                return await self._send(request, paths[int(number)], self._now)
            finally:
                self._now = None
                self._changed()

    def _progress_at(self, member: Member, paths: Sequence[Path], number: str) -> OutgoingModel:
        """Return the progress at the start of this file, counting the preceding files as sent."""
        sizes = [_size(path) for path in paths]
        before = sum(sizes[: int(number)])
        return OutgoingModel(member.name, self._name_of(paths[0]), before, sum(sizes))

    async def _send(self, request: web.Request, path: Path, now: OutgoingModel) -> web.StreamResponse:
        def sent(n_bytes: int) -> None:
            now.done_bytes += n_bytes
            self._changed()

        try:
            return await send_file(request, path, self._pace, lambda: self._choices.now.share_models, sent)
        except (FileNotFoundError, PermissionError):
            raise BadInput("copy_gone", name=self._choices.now.name) from None


def _size(path: Path) -> int:
    """Return the size of a file, or 0 if it has just disappeared. Opening it then reports the error."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


class HeldFiles(msgspec.Struct, frozen=True):
    """The requested models that a machine has: maps each SHA-256 to file sizes."""

    held: Annotated[dict[str, Annotated[list[Size], Meta(max_length=4096)]], Meta(max_length=256)]


class PinReply(msgspec.Struct, frozen=True):
    """The pin that another machine saved when it first downloaded a file."""

    pin: Pin | None


class PeerCopies:
    """Asks the connected machines for copies of models and for pins."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def holders_of(self, sha256: str) -> list[PeerCopy]:
        """Return the machines that have this model and share it, sorted by name. Never raises."""
        async with asyncio.TaskGroup() as group:
            queries = [
                (link, group.create_task(_has(machine, sha256), name="ask who has a model"))
                for link, machine in self._machines()
            ]
        return [PeerCopy(str(link.peer), link.name) for link, query in queries if query.result()]

    async def pin(self, repository: str, file: str) -> Pin | None:
        """Return the household's oldest pin of this file, or None if no machine has one. Never raises."""
        async with asyncio.TaskGroup() as group:
            queries = [
                group.create_task(_pinned(machine, repository, file), name="ask for a pin")
                for _, machine in self._machines()
            ]
        pins = [pin for query in queries if (pin := query.result())]
        return min(pins, key=lambda pin: pin.taken, default=None)

    def _machines(self) -> list[tuple[PeerLink, HostClient]]:
        network = self._network
        links = sorted(network.links.values(), key=lambda link: (link.name, link.peer))
        there = [(network.members.get(link.peer), link) for link in links]
        return [(link, _client(member, link)) for member, link in there if member]

    def is_near(self, machine: str) -> bool:
        """Return whether this machine has a link to `machine`."""
        return machine in self._network.links

    def files_of(self, record: Record) -> MemberFiles:
        """Return the files of the machine that the download copies from."""
        return MemberFiles(self._network, record)


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """The machine that a copy comes from, and the reason codes to report while it is unreachable."""

    host: str

    @property
    def outage_codes(self) -> tuple[str, str]:
        return "copy_held_up", "copy_unreached"


class MemberFiles:
    """The files of one model on another machine, read by app/catalog/transfers/file_transfer.py."""

    def __init__(self, network: Network, record: Record) -> None:
        self.place = MemberPlace(record.source)
        self._network, self._record = network, record

    @asynccontextmanager
    async def opened(self, file: FileRequest, start: int, token: str | None) -> AsyncGenerator[Body, None]:
        """Open a file at position `start`. The token is ignored, because it is never sent to members."""
        machine = self._machine()
        number = part_names(self._record.file).index(file.file)
        async with received_file(machine, f"/{self._record.sha256}/{number}", start) as body:
            yield body

    async def facts_of(self, file: FileRequest, token: str | None) -> FileFacts:
        """Return empty facts, because only files of known hash and size are copied."""
        return FileFacts()

    def _machine(self) -> HostClient:
        """Return a client for the machine. Raises Unreachable."""
        network, ident = self._network, machine_id(self._record.machine or "")
        link, member = network.links.get(ident), network.members.get(ident)
        if link is None or member is None:
            raise Unreachable("copy_away", name=self._record.source)
        return _client(member, link)


def _client(member: Member, link: PeerLink) -> HostClient:
    return HostClient(member, link.address, link.host_session, link.finished, MODELS_PATH)


async def _has(machine: HostClient, sha256: str) -> bool:
    try:
        async with asyncio.timeout(HELD_SECONDS):
            question = msgspec.json.encode([sha256])
            async with machine.request("POST", "/held", question) as answer:
                if answer.status != 200:
                    return False  # an older version, or a machine that shares nothing with this one
                reply = decode(await short_body(answer), HeldFiles)
                return sha256 in reply.held
    except (AppError, aiohttp.ClientError, OSError, ValueError) as error:
        log.info("%s did not report which models it has: %r", machine.host.name, error)
        return False


async def _pinned(machine: HostClient, repository: str, file: str) -> Pin | None:
    try:
        async with asyncio.timeout(HELD_SECONDS):
            question = msgspec.json.encode([repository, file])
            async with machine.request("POST", "/pin", question) as answer:
                if answer.status != 200:
                    return None  # an older version
                pin = decode(await short_body(answer), PinReply).pin
    except (AppError, aiohttp.ClientError, OSError, ValueError) as error:
        log.info("%s did not report its pin: %r", machine.host.name, error)
        return None
    if pin is None or (pin.repository, pin.file) != (repository, file) or not pin.is_sound:
        return None
    return pin
