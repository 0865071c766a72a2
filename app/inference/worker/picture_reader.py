"""The decoding of pictures in confined processes. Each picture gets its own process, so that it cannot affect
others.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import cast

import backends
from app.core.errors import BadInput
from app.decoding import decode
from backends.readers.messages import (
    LENGTHS,
    MAX_DOCUMENT_BYTES,
    MAX_PICTURE_BYTES,
    DecodePicture,
    Picture,
    Refusal,
    Reply,
    ShrinkPicture,
    beginning,
)

# -P and the working directory keep code in the current folder out of the process, which is not confined at its start
OURS = str(Path(backends.__file__ or ".").resolve().parent.parent)
ARGUMENTS = ("-P", "-m", "backends.readers", "pictures")
READING_SECONDS = 30.0  # the process ends itself after 10 s of processor time
MAX_REPLY_BYTES = 16 << 20
MAX_SIDE, RGB_BYTES = 2_048, 3  # of what the process returns


async def decoded_picture(data: bytes) -> Picture:
    """Return the pixels of a picture, shrunk to a size that a model accepts. Raises BadInput."""
    return await _read(data, DecodePicture(), MAX_PICTURE_BYTES)


async def shrunk_picture(data: bytes) -> Picture:
    """Return a small copy of a picture as a new file, even if the picture itself is too large to be sent. Raises
    BadInput.
    """
    return await _read(data, ShrinkPicture(), MAX_DOCUMENT_BYTES)


async def _read(data: bytes, request: DecodePicture | ShrinkPicture, most_bytes: int) -> Picture:
    if len(data) > most_bytes:
        raise BadInput("picture_large", found_bytes=len(data), most_bytes=most_bytes)
    reply = await _reply(data, request)
    match reply:
        case Picture() if _is_sound(reply, request):
            return reply
        case Refusal(code=code, facts=facts) if code.startswith("picture_"):
            raise BadInput(code, **facts)
    raise BadInput("picture_heavy")


def _is_sound(picture: Picture, request: DecodePicture | ShrinkPicture) -> bool:
    """Return whether a picture matches the request. The process that decoded it has read an untrusted file, so its
    reply is not trusted.
    """
    if not (1 <= picture.width <= MAX_SIDE and 1 <= picture.height <= MAX_SIDE):
        return False
    if isinstance(request, DecodePicture):
        return picture.form == "rgb" and len(picture.data) == picture.width * picture.height * RGB_BYTES
    return picture.form != "rgb" and bool(picture.data)


async def _reply(data: bytes, request: DecodePicture | ShrinkPicture) -> Reply | None:
    """Return the reply of a new process, or None if the process exceeded a limit or its reply is invalid."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (OURS, os.environ.get("PYTHONPATH"))))}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *ARGUMENTS,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=OURS,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READING_SECONDS):
            with suppress(OSError):  # it has ended, which the missing reply shows
                process.stdin.write(beginning(request, len(data)) + data)
                await process.stdin.drain()
            json_bytes, payload_bytes = LENGTHS.unpack(await process.stdout.readexactly(LENGTHS.size))
            if json_bytes > MAX_REPLY_BYTES or payload_bytes:
                return None
            kind = cast("type[Reply]", Reply)  # a union
            return decode(await process.stdout.readexactly(json_bytes), kind)
    except (TimeoutError, asyncio.IncompleteReadError, ValueError):
        return None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
