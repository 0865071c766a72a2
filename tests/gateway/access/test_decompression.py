"""Compressed bodies: gzip and zstd are read, and what would unpack to more than the bound costs no memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from typing import cast

import aiohttp
import pytest
from aiohttp import web
from backports import zstd
from multidict import CIMultiDict

from app.gateway.access import decompression
from app.gateway.access.decompression import BadEncoding, read_body
from app.network.traffic_limits import TooLong
from app.node.control.guard import MAX_BODY_BYTES
from tests.gateway.conftest import Open
from tests.gateway.gate_calls import ASK, CHAT

PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}
Packer = Callable[[bytes], bytes]


async def unpacked(sent: Sent, limit: int) -> bytes:
    return await read_body(cast("web.Request", sent), limit)


class Sent:
    """A request as unpacking reads it, in pieces of a size."""

    def __init__(self, body: bytes, encoding: str, piece: int = 1 << 16) -> None:
        self.content, self.content_length = self, None
        self.headers = CIMultiDict({"Content-Encoding": encoding})
        self._rest, self._piece = body, piece
        self.n_read = 0

    async def readany(self) -> bytes:
        rest, self._rest = self._rest[: self._piece], self._rest[self._piece :]
        self.n_read += len(rest)
        return rest


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP", "zstd"])
@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/messages", "/api/chat", "/v1/messages/count_tokens"])
async def test_a_packed_body_is_read_as_the_plain_one(
    api: Open, http: aiohttp.ClientSession, encoding: str, path: str
) -> None:
    plain = json.dumps(ASK | {"model": "guide", "input": "Hello", "stream": False}).encode()
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    packed = PACKERS[encoding.lower().removeprefix("x-")](plain)
    async with http.post(path, data=packed, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
@pytest.mark.parametrize("size", [0, 1, decompression.PIECE_BYTES, decompression.PIECE_BYTES * 3, 300_001])
async def test_any_cut_gives_the_same_bytes(encoding: str, piece: int, size: int) -> None:
    plain = bytes(index * 31 % 251 for index in range(size))
    sent = Sent(PACKERS[encoding](plain), encoding, piece)
    assert await unpacked(sent, MAX_BODY_BYTES) == plain


@pytest.mark.parametrize("encoding", PACKERS)
async def test_the_bound_is_that_of_the_unpacked_body(encoding: str) -> None:
    most = bytes(MAX_BODY_BYTES)
    assert len(await unpacked(Sent(PACKERS[encoding](most), encoding), MAX_BODY_BYTES)) == len(most)
    with pytest.raises(TooLong):
        await unpacked(Sent(PACKERS[encoding](most + b"1"), encoding), MAX_BODY_BYTES)


def zstd_bomb() -> bytes:
    """Half a gigabyte of zeros: about 50 KB."""
    packer = zstd.ZstdCompressor(level=19)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(512)) + packer.flush()


def gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(512)) + packer.flush()


@pytest.mark.long
@pytest.mark.parametrize(("encoding", "bomb"), [("gzip", gzip_bomb), ("zstd", zstd_bomb)])
async def test_a_bomb_is_refused_in_constant_memory(encoding: str, bomb: Callable[[], bytes]) -> None:
    body = bomb()
    assert len(body) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(TooLong):
            await unpacked(Sent(body, encoding, len(body)), MAX_BODY_BYTES)
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_BODY_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.parametrize(("encoding", "bomb"), [("gzip", gzip_bomb), ("zstd", zstd_bomb)])
async def test_a_node_answers_a_bomb_by_413_and_goes_on(
    api: Open, http: aiohttp.ClientSession, encoding: str, bomb: Callable[[], bytes]
) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    async with http.post(CHAT, data=bomb(), headers=headers) as answer:
        assert answer.status == 413
    async with http.post(CHAT, json=ASK) as answer:
        assert answer.status == 200


async def test_a_frame_that_wants_a_huge_window_is_refused() -> None:
    options: dict[int, int] = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
    }
    packer = zstd.ZstdCompressor(options=options)
    body = packer.compress(bytes(1 << 20)) + packer.flush()
    with pytest.raises(BadEncoding):
        await unpacked(Sent(body, "zstd"), MAX_BODY_BYTES)


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize(
    "spoil",
    [lambda packed: packed[:-1], lambda packed: packed[: len(packed) // 2], lambda packed: packed + b"x",
     lambda packed: packed + packed, lambda _: b"{}", lambda packed: packed[:12] + b"\xff\xff" + packed[14:]],
)  # fmt: skip
async def test_what_is_not_whole_is_said_to_be_garbled(
    api: Open, http: aiohttp.ClientSession, encoding: str, spoil: Packer
) -> None:
    body = spoil(PACKERS[encoding](json.dumps(ASK).encode()))
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    async with http.post(CHAT, data=body, headers=headers) as answer:
        assert answer.status == 400
        assert "as its headers say" in await answer.text()


@pytest.mark.parametrize("encoding", ["deflate", "br", "gzip, zstd", "gzip, gzip", "compress", "x"])
async def test_other_and_chained_encodings_are_refused_and_it_says_which_are_read(
    api: Open, http: aiohttp.ClientSession, encoding: str
) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    async with http.post(CHAT, data=b"{}", headers=headers) as answer:
        assert (answer.status, answer.headers["Accept-Encoding"]) == (415, "gzip, zstd")


async def test_identity_is_no_encoding(api: Open, http: aiohttp.ClientSession) -> None:
    headers = {"Content-Encoding": "identity"}
    async with http.post(CHAT, json=ASK, headers=headers) as answer:
        assert answer.status == 200
