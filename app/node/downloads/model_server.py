"""Whole models that this machine gives to hosts of its household, where its owner allows that.

Asked for by the SHA-256 of a file: nobody can list what is here. Only files whose hash was checked or taken when
they came, by a download, a copy or an import, are given; the other side checks it again.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
from aiohttp import web
from msgspec import Meta

from app.catalog.files import CHUNK_BYTES
from app.catalog.transfers.file_transfer import MY_TURN, to_its_end
from app.catalog.transfers.hash_pins import Pin
from app.core.errors import BadInput, Busy, Refused
from app.core.household.membership import Member
from app.decoding import decode
from app.network.peer.bounded_body import TooSlow, whole_body
from app.network.peer.listener import MEMBER
from app.network.rate_limits import LinkPace

Json = dict[str, Any]
MOST_ASKED = 256
MOST_BYTES = 64 << 10  # of a question
TAKEN_SECONDS = 60.0  # a machine that takes no megabyte for so long gives its turn up
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,3}")
_RANGE = re.compile(r"bytes=(\d{1,15})-")

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Asked = Annotated[list[Hash], Meta(max_length=MOST_ASKED)]
Has = Callable[[Sequence[str]], dict[str, tuple[Path, ...]]]
"""The files of the models with these hashes that are whole here. Reads the disk."""


@dataclass(slots=True)
class Given:
    """The model that is on its way: how much of all of its files the other side has."""

    machine: str  # its name
    model: str
    done_bytes: int
    total_bytes: int


class ModelServer:
    """The routes of it; the listener has checked that a member asks, and that it is a host.

    called: the name of the model whose first file this is; changed: another part of one is on its way.
    """

    def __init__(
        self,
        has: Has,
        shares: Callable[[], bool],
        name: Callable[[], str],
        pace: Callable[[], LinkPace],
        called: Callable[[Path], str],
        changed: Callable[[], None],
        pin: Callable[[str, str], Pin | None] = lambda repository, file: None,
    ) -> None:
        self._has, self._shares, self._name, self._pace = has, shares, name, pace
        self._called, self._changed, self._pin = called, changed, pin
        self._turn = asyncio.Lock()
        self._now: Given | None = None

    def json(self) -> Json:
        """Its part of the snapshot."""
        return {"giving": asdict(self._now) if self._now else None}

    @property
    def is_busy(self) -> bool:
        """Return whether a model is being sent now."""
        return self._turn.locked()

    def application(self) -> web.Application:
        made = web.Application()
        made.add_routes(
            [web.post("/held", self._held), web.post("/pin", self._pinned), web.get("/{sha256}/{number}", self._give)]
        )
        return made

    async def _held(self, request: web.Request) -> web.Response:
        """Answer with the sizes of the files for the hashes that are here."""
        raw = await whole_body(request.content, request.content_length, MOST_BYTES)
        hashes = decode(raw, Asked)
        sizes = await asyncio.to_thread(self._sizes, hashes) if self._shares() else {}
        return web.json_response({"held": sizes})

    async def _pinned(self, request: web.Request) -> web.Response:
        """Answer with the pin of a file's first download, whether or not models are shared; `null` for none."""
        raw = await whole_body(request.content, request.content_length, MOST_BYTES)
        repository, file = decode(raw, tuple[str, str])
        pin = await asyncio.to_thread(self._pin, repository, file)
        return web.json_response({"pin": msgspec.to_builtins(pin)})

    def _sizes(self, hashes: Sequence[str]) -> dict[str, list[int]]:
        sizes: dict[str, list[int]] = {}
        for key, paths in self._has(hashes).items():
            with suppress(OSError):  # it went away just now
                sizes[key] = [path.stat().st_size for path in paths]
        return sizes

    async def _give(self, request: web.Request) -> web.StreamResponse:
        """The bytes of one file, from where the other side wants them; one file at a time."""
        sha256, number = request.match_info["sha256"], request.match_info["number"]
        if not self._shares():
            raise Refused("copy_not_offered", name=self._name())
        good = _SHA256.fullmatch(sha256) and _NUMBER.fullmatch(number)
        files = await asyncio.to_thread(self._has, [sha256]) if good else {}
        paths = files.get(sha256, ())
        if not good or int(number) >= len(paths):
            raise BadInput("copy_gone", name=self._name())
        if self._turn.locked():
            raise Busy(MY_TURN, name=self._name())
        async with self._turn:
            try:
                self._now = await asyncio.to_thread(self._progress_at, request[MEMBER], paths, number)
                return await self._send(request, paths[int(number)], self._now)
            finally:
                self._now = None
                self._changed()

    def _progress_at(self, member: Member, paths: Sequence[Path], number: str) -> Given:
        """Return the progress at the beginning: the files before this one are there already."""
        sizes = [_size(path) for path in paths]
        before = sum(sizes[: int(number)])
        return Given(member.name, self._called(paths[0]), before, sum(sizes))

    async def _send(self, request: web.Request, path: Path, now: Given) -> web.StreamResponse:
        try:
            file = await asyncio.to_thread(path.open, "rb", 0)
        except OSError:
            raise BadInput("copy_gone", name=self._name()) from None
        try:
            total = os.fstat(file.fileno()).st_size
            match = _RANGE.fullmatch(request.headers.get("Range", ""))
            start = int(match[1]) if match and int(match[1]) < total else 0
            answer = web.StreamResponse(status=206 if start else 200)
            answer.content_length = total - start
            if start:
                answer.headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
            now.done_bytes += start
            self._changed()
            await answer.prepare(request)
            async with (
                aclosing(self._chunks(file, start, total)) as chunks,
                aclosing(self._pace().leaving(chunks)) as paced,
            ):
                async for chunk in paced:
                    await _taken(answer, chunk)
                    now.done_bytes += len(chunk)
                    self._changed()
            return answer
        finally:
            file.close()

    async def _chunks(self, file: BinaryIO, start: int, total: int) -> AsyncGenerator[bytes, None]:
        """Raises ConnectionError, which ends the line, where the owner gives it no more or the file is cut short."""
        file.seek(start)
        while start < total:
            chunk = await to_its_end(lambda: file.read(CHUNK_BYTES))
            if not chunk or not self._shares():
                raise ConnectionAbortedError("it is not given any more")
            start += len(chunk)
            yield chunk[: len(chunk) - max(0, start - total)]


def _size(path: Path) -> int:
    """Return the size of a file; 0 where it has just gone, which opening it reports."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


async def _taken(answer: web.StreamResponse, chunk: bytes) -> None:
    try:
        async with asyncio.timeout(TAKEN_SECONDS):
            await answer.write(chunk)
    except TimeoutError:
        raise TooSlow(f"took nothing in {TAKEN_SECONDS:.0f} s") from None
