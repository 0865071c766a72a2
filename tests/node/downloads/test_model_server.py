"""Tests of the model server against a hostile peer on a real pinned link: it serves only the files that it offers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from app.api.downloads import OutgoingCopy
from app.core.errors import Unreachable
from app.network.peer.listener import MODELS_PATH
from app.network.peer.peer_client import HostClient, reported_error
from app.network.traffic_limits import LinkPace
from app.node.downloads.model_peers import MOST_ASKED, ModelServer
from tests.network.nodes import opened

Json = dict[str, Any]
SHA256 = "a" * 64
DATA = bytes(range(256)) * 8


class Asking:
    """attic, which asks den: status, headers and body of each answer."""

    def __init__(self, client: HostClient, requests: list[str], queue: asyncio.Queue[OutgoingCopy | None]) -> None:
        self._client, self.asked, self.told = client, requests, queue

    async def get(self, path: str, ranges: str = "") -> tuple[int, dict[str, str], bytes]:
        headers = {"Range": ranges} if ranges else {}
        async with self._client.request("GET", path, headers=headers) as answer:
            return answer.status, dict(answer.headers), await answer.read()

    async def held(self, body: bytes) -> tuple[int, bytes]:
        async with self._client.request("POST", "/held", body) as answer:
            return answer.status, await answer.read()


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncGenerator[Asking, None]:
    file, secret = tmp_path / "model.gguf", tmp_path / "secret.txt"
    file.write_bytes(DATA)
    secret.write_text("what nobody gets")
    request: list[str] = []

    def has(hashes: Sequence[str]) -> dict[str, tuple[Path, ...]]:
        request.extend(hashes)
        return {SHA256: (file,)} if SHA256 in hashes else {}

    choices: Any = SimpleNamespace(now=SimpleNamespace(share_models=True, name="den"))
    queue: asyncio.Queue[OutgoingCopy | None] = asyncio.Queue()
    giving = ModelServer(
        has, choices, LinkPace(), lambda path: path.stem,
        lambda: queue.put_nowait(giving.snapshot()),
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(opened(tmp_path / "lan"))
        nodes.rooms = lambda: {MODELS_PATH: giving.application()}
        den, attic = await nodes.paired("den", "attic")
        link, member = attic.network.link(den.network.id), attic.network.members[den.network.id]
        yield Asking(HostClient(member, link.address, link.host_session, link.finished, MODELS_PATH), request, queue)


@pytest.mark.parametrize(
    ("ranges", "status", "start"),
    [("", 200, 0), ("bytes=7-", 206, 7), ("bytes=2047-", 206, 2047), ("bytes=2048-", 200, 0),
     ("bytes=-5", 200, 0), ("bytes=1-2", 200, 0), ("lines=3-", 200, 0), ("bytes=99999999999999999-", 200, 0)],
)  # fmt: skip
async def test_a_file_from_any_place_on(asking: Asking, ranges: str, status: int, start: int) -> None:
    result, headers, body = await asking.get(f"/{SHA256}/0", ranges)
    assert (result, body) == (status, DATA[start:])
    whole = f"bytes {start}-{len(DATA) - 1}/{len(DATA)}" if status == 206 else None
    assert headers.get("Content-Range") == whole


@pytest.mark.parametrize(("ranges", "start"), [("", 0), ("bytes=7-", 7)])
async def test_what_is_on_its_way_is_told_until_it_is_there(asking: Asking, ranges: str, start: int) -> None:
    assert (await asking.get(f"/{SHA256}/0", ranges))[2] == DATA[start:]
    expected = [OutgoingCopy("attic", "model", done, len(DATA)) for done in (start, len(DATA))]
    async with asyncio.timeout(10):
        assert [await asking.told.get() for _ in range(3)] == [*expected, None]


@pytest.mark.parametrize(
    "path",
    [f"/{'b' * 64}/0", f"/{SHA256}/1", f"/{SHA256}/-1", f"/{SHA256}/99999999999999999999", f"/{SHA256}/x",
     f"/{SHA256.upper()}/0", "/secret.txt/0", "/..%2Fsecret.txt/0", f"/{SHA256}/%2E%2E", f"/{SHA256}%00/0"],
)  # fmt: skip
async def test_nothing_else_is_given(asking: Asking, path: str) -> None:
    status, _, body = await asking.get(path)
    assert status in (400, 404, 409)
    assert b"nobody gets" not in body
    if status == 409:
        assert reported_error(body, "den").reason.code == "copy_gone"
    assert all(name in ("a" * 64, "b" * 64) for name in asking.asked)  # no other name came so far


async def test_only_what_is_asked_for_by_its_hash_is_told(asking: Asking) -> None:
    status, body = await asking.held(json.dumps([SHA256, "b" * 64]).encode())
    assert (status, json.loads(body)) == (200, {"held": {SHA256: [len(DATA)]}})
    assert json.loads((await asking.held(b"[]"))[1]) == {"held": {}}


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b'["x"]', b"[null]", b"[" * 10_000, json.dumps(["a" * 64] * (MOST_ASKED + 1)).encode(),
     b" " * (80 << 10) + b"[]"],
)  # fmt: skip
async def test_odd_questions_end_their_connection_and_the_next_one_is_answered(asking: Asking, body: bytes) -> None:
    with suppress(Unreachable, aiohttp.ClientError, OSError):  # the line may be cut before its answer
        status, _ = await asking.held(body)
        assert status == 400
    assert asking.asked == []
    async with asyncio.timeout(10):
        assert (await asking.get(f"/{SHA256}/0"))[2] == DATA
