"""A stand-in for Hugging Face on loopback: listings, redirects to a store, ranges, and faults on demand."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from app.catalog.hub.hub_address import Hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY, FILE = "maker/Tiny-GGUF", "Tiny-Q4_K_M.gguf"
TOKEN = "hf_good0token"
Json = dict[str, Any]


@dataclass
class Faults:
    """The faults of the server, which a test sets and changes."""

    break_after: list[int] = field(default_factory=list)  # bytes of each answer before it is cut
    statuses: list[int] = field(default_factory=list)  # of the store's next answers
    ignore_ranges: bool = False
    total: int | None = None  # what the hub says of the size
    sha256: str | None = None  # what the hub says of the hash
    sends: bytes | None = None  # in place of the file
    gated: bool = False
    refused_token: bool = False
    redirect: str | None = None
    bytes_at_once: int = 1 << 16
    pause_s: float = 0.0  # between them
    hold: asyncio.Event | None = None  # the store waits for it
    silent: bool = False  # the listings never answer
    listing: Any = None  # the listings' answer
    listing_status: int = 200
    listing_redirect: str | None = None
    no_size: bool = False


@dataclass
class HubServer:
    """The hub and its store, each on a port of its own; every request is remembered."""

    data: bytes = b""
    file: str = FILE
    others: dict[str, bytes] = field(default_factory=dict)  # more files of the repository
    faults: Faults = field(default_factory=Faults)
    requests: list[web.BaseRequest] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)  # for a listing
    ranges: list[str] = field(default_factory=list)  # as the store was asked
    store_port: int = 0
    port: int = 0

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def hub(self) -> Hub:
        return Hub(f"http://127.0.0.1:{self.port}")

    async def resolve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        name = f"{request.match_info['owner']}/{request.match_info['name']}"
        if name != REPOSITORY:
            return web.Response(status=401, headers={"X-Error-Code": "RepoNotFound"})
        data = self._of(request.match_info["file"])
        if data is None:
            return web.Response(status=404, headers={"X-Error-Code": "EntryNotFound"})
        if refusal := self._gate(request):
            return refusal
        headers = {
            "X-Repo-Commit": COMMIT,
            "X-Linked-Etag": f'"{self.faults.sha256 or hashlib.sha256(data).hexdigest()}"',
            "X-Linked-Size": str(self.faults.total or len(data)),
            "Location": self.faults.redirect
            or f"http://localhost:{self.store_port}/blob?sig=%2Fa%3D&of={request.match_info['file']}",
        }
        if self.faults.no_size:
            del headers["X-Linked-Size"]
        return web.Response(status=302, headers=headers)

    def _of(self, file: str) -> bytes | None:
        return self.data if file == self.file else self.others.get(file)

    def _gate(self, request: web.Request) -> web.Response | None:
        value = request.headers.get("Authorization")
        if not self.faults.gated and not self.faults.refused_token:
            return None
        if value is None:
            return web.Response(status=401, headers={"X-Error-Code": "GatedRepo"})
        if value != f"Bearer {TOKEN}":
            return web.Response(status=401)
        if self.faults.refused_token:
            return web.Response(status=403, headers={"X-Error-Code": "GatedRepo"})
        return None

    async def blob(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        value = request.headers.get("Range", "")
        self.ranges.append(value)
        if self.faults.statuses:
            return web.Response(status=self.faults.statuses.pop(0))
        named = self._of(request.query.get("of", self.file)) or self.data
        data = named if self.faults.sends is None else self.faults.sends
        start = int(value.removeprefix("bytes=").rstrip("-")) if value else 0
        if self.faults.ignore_ranges or not value:
            start, answer = 0, web.StreamResponse()
        else:
            answer = web.StreamResponse(status=206)
            answer.headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        if self.faults.no_size:
            answer.enable_chunked_encoding()
        else:
            answer.content_length = len(data) - start
        await answer.prepare(request)
        await self._pour(request, answer, data[start:])
        return answer

    async def _pour(self, request: web.Request, answer: web.StreamResponse, data: bytes) -> None:
        faults = self.faults
        limit = faults.break_after.pop(0) if faults.break_after else len(data)
        if faults.hold is not None and len(data) > faults.bytes_at_once:
            await answer.write(data[: faults.bytes_at_once])
            await faults.hold.wait()
            data, limit = data[faults.bytes_at_once :], limit - faults.bytes_at_once
        for at in range(0, min(limit, len(data)), faults.bytes_at_once):
            await answer.write(data[at : min(at + faults.bytes_at_once, limit)])
            await asyncio.sleep(faults.pause_s)
        if limit < len(data) and request.transport:
            request.transport.abort()

    async def models(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        return await self._listed([self.about(), {"id": "odd name/../x"}, {"id": "b/c"}])

    async def model(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        name = f"{request.match_info['owner']}/{request.match_info['name']}"
        if name != REPOSITORY:
            return web.json_response({"error": "Repository not found"}, status=401)
        files = [self._sibling(self.file), self._sibling("Tiny-Q8_0.gguf", 3 << 30)]
        parts = [self._sibling(f"Tiny-F16-0000{n}-of-00002.gguf", 4 << 30) for n in (1, 2)]
        rest = [{"rfilename": "README.md"}, self._sibling("mmproj-F16.gguf")]
        return await self._listed({**self.about(), "siblings": files + parts + rest})

    def about(self) -> Json:
        return {
            "id": REPOSITORY, "sha": COMMIT, "downloads": 7, "likes": 3, "gated": "manual",
            "lastModified": "2026-10-02T03:04:05.000Z", "tags": ["gguf", "license:apache-2.0"],
            "gguf": {"total": 1234, "architecture": "llama", "context_length": 64},
        }  # fmt: skip

    def _sibling(self, name: str, size: int | None = None) -> Json:
        data = self.others.get(name, self.data)
        n_bytes = len(data) if size is None else size
        sha256 = hashlib.sha256(data).hexdigest() if size is None else "ab" * 32
        lfs = {"size": n_bytes, "sha256": sha256, "pointerSize": 134}
        return {"rfilename": name, "size": n_bytes, "blobId": "1", "lfs": lfs}

    async def _listed(self, answer: Any) -> web.StreamResponse:
        self.asked.set()
        if self.faults.listing_redirect:
            raise web.HTTPFound(self.faults.listing_redirect)
        if self.faults.silent:
            await asyncio.sleep(60)
        if self.faults.listing is not None:
            return web.Response(body=self.faults.listing, content_type="application/json")
        return web.json_response(answer, status=self.faults.listing_status)


def closed_hub() -> Hub:
    """One at a port of this computer where nobody listens."""
    return Hub("http://127.0.0.1:1")  # a free one might be another test's a moment later


@asynccontextmanager
async def serving(data: bytes, file: str = FILE) -> AsyncGenerator[HubServer, None]:
    """Both servers until the end of the block."""
    server = HubServer(data, file)
    hub, store = web.Application(), web.Application()
    hub.router.add_get("/api/models", server.models)
    hub.router.add_get("/api/models/{owner}/{name}", server.model)
    hub.router.add_get("/{owner}/{name}/resolve/{revision}/{file:.+}", server.resolve)
    store.router.add_get("/blob", server.blob)
    runners = [web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1) for app in (hub, store)]
    try:
        for runner in runners:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.port, server.store_port = (runner.addresses[0][1] for runner in runners)
        yield server
    finally:
        for runner in runners:
            await runner.cleanup()
