"""Decompression of request bodies (gzip and zstd), chunk by chunk and within a limit.

Deflate is rejected because programs disagree on whether it has zlib's header. Brotli is rejected because no client
of these APIs sends it, and it would need another native library that parses untrusted input.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from app.network.traffic_limits import TooLong, body_chunks, whole_body

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENCODINGS = ("gzip", "zstd")
PIECE_BYTES = 64 << 10  # decompressed at once
# 8 MiB: the window that zstd readers should support (RFC 8878), and the most memory that one frame may claim
WINDOW_LOG = 23
GZIP = 16 + zlib.MAX_WBITS  # with gzip's header and checksum, which are verified
UNKNOWN = "Bodies with the Content-Encoding {name} are not read. Send this one as gzip, as zstd, or uncompressed."
CHAINED = "This body has several encodings, and one is read. Send it as gzip, as zstd, or uncompressed."


class BadEncoding(ValueError):
    """A compressed body that is truncated, has trailing data, or is not compressed at all."""


class _Unpacker(Protocol):
    """An incremental decompressor."""

    def feed(self, data: bytes) -> bytes:
        """Decompress `data` and return at most PIECE_BYTES. Raises BadEncoding."""

    @property
    def has_more(self) -> bool:
        """Return whether `feed(b"")` would return more output."""

    def check_end(self) -> None:
        """Raise BadEncoding unless the compressed data is complete and nothing follows it."""


def encoding_error(encodings: Sequence[str]) -> str:
    """Return the reason for rejecting a body with these Content-Encoding headers, or "" to accept it."""
    named = _named(encodings)
    if len(named) > 1:
        return CHAINED
    if named and named[0] not in ENCODINGS:
        return UNKNOWN.format(name=named[0][:40])
    return ""


async def read_body(request: web.Request, limit: int) -> bytes:
    """Return the whole decompressed body. Raises TooLong, TooSlow, BadEncoding.

    Both the compressed and the decompressed size are limited to `limit`. Reading stops at the first chunk that
    exceeds it, so a few bytes that would expand to gigabytes are harmless.
    """
    named = _named(request.headers.getall("Content-Encoding", []))
    announced = request.content_length
    if not named or announced == 0:
        return await whole_body(request.content, announced, limit)
    if announced is not None and announced > limit:
        raise TooLong(f"{announced} bytes announced, {limit} allowed")
    unpacker: _Unpacker = _Gzip() if named[0] == "gzip" else _Zstd()
    body, received = bytearray(), 0
    async for chunk in body_chunks(request.content):
        received += len(chunk)
        if received > limit:
            raise TooLong(f"more than {limit} bytes")
        body += unpacker.feed(chunk)
        while len(body) <= limit and unpacker.has_more:
            body += unpacker.feed(b"")
        if len(body) > limit:
            raise TooLong(f"more than {limit} bytes unpacked")
    if received:
        unpacker.check_end()
    return bytes(body)


def _named(encodings: Sequence[str]) -> list[str]:
    """Return the names of the encodings in lower case, without `identity` and with x-gzip as gzip (RFC 9110)."""
    names = [name.strip().lower() for header in encodings for name in header.split(",")]
    return [name.removeprefix("x-") for name in names if name not in ("", "identity")]


class _Gzip:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(GZIP)
        self._was_full = False

    def feed(self, data: bytes) -> bytes:
        if data and self._stream.eof:
            raise BadEncoding("bytes after the end of gzip")
        try:
            unpacked = self._stream.decompress(self._stream.unconsumed_tail + data, PIECE_BYTES)
        except zlib.error as error:
            raise BadEncoding(str(error)) from None
        self._was_full = len(unpacked) == PIECE_BYTES
        return unpacked

    @property
    def has_more(self) -> bool:
        """Return whether zlib still buffers data because the last output reached its maximum size."""
        return not self._stream.eof and (self._was_full or bool(self._stream.unconsumed_tail))

    def check_end(self) -> None:
        if not self._stream.eof or self._stream.unused_data:
            raise BadEncoding("gzip without its end, or with something after it")


class _Zstd:
    def __init__(self) -> None:
        window: dict[int, int] = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
        self._stream = zstd.ZstdDecompressor(options=window)

    def feed(self, data: bytes) -> bytes:
        if data and self._stream.eof:
            raise BadEncoding("bytes after the end of zstd")
        try:
            unpacked: bytes = self._stream.decompress(data, max_length=PIECE_BYTES)
        except zstd.ZstdError as error:
            raise BadEncoding(str(error)) from None
        return unpacked

    @property
    def has_more(self) -> bool:
        return not (self._stream.eof or self._stream.needs_input)

    def check_end(self) -> None:
        if not self._stream.eof or self._stream.unused_data:
            raise BadEncoding("zstd without its end, or with something after it")
