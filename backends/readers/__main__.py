"""The entry point of a reader, which reads requests from standard input and writes replies to standard output.

A reader has no access to the network, to files of the user or to other programs, where the system can deny it
(backends/worker/confine.py). A request that takes too long or too much memory ends the process, which the caller
notices.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from backends.readers.messages import (
    LENGTHS,
    MAX_DOCUMENT_BYTES,
    MAX_JSON_BYTES,
    DecodePicture,
    DrawFormula,
    ReadDocument,
    Refusal,
    Refused,
    Reply,
    Request,
    ShrinkPicture,
    beginning,
    decode_request,
)
from backends.worker import confine, process_resources

USAGE = "usage: python -m backends.readers formulas|documents|pictures"
FORMULA_SECONDS, FORMULA_BYTES = 2.0, 128 << 20  # processor time and additional memory for one request
DOCUMENT_SECONDS, DOCUMENT_BYTES = 30.0, 1 << 30
PICTURE_SECONDS, PICTURE_BYTES = 10.0, 1 << 30


def main(arguments: list[str]) -> int:
    """Answer requests of one kind until standard input ends."""
    if arguments == ["formulas"]:
        reader, seconds, growth = _formulas(), FORMULA_SECONDS, FORMULA_BYTES
    elif arguments == ["documents"]:
        reader, seconds, growth = _documents(), DOCUMENT_SECONDS, DOCUMENT_BYTES
    elif arguments == ["pictures"]:
        reader, seconds, growth = _pictures(), PICTURE_SECONDS, PICTURE_BYTES
    else:
        sys.stderr.write(f"{USAGE}\n")
        return 2
    requests, replies = process_resources.take_pipes()
    process_resources.end_with_parent()
    confine.confine([])
    confine.start_nothing()
    process_resources.address_at_most(process_resources.address_bytes() + growth)
    while head := _read(requests, LENGTHS.size):
        json_bytes, payload_bytes = LENGTHS.unpack(head)
        if json_bytes > MAX_JSON_BYTES or payload_bytes > MAX_DOCUMENT_BYTES:
            return 3
        request = decode_request(_read(requests, json_bytes))
        payload = _read(requests, payload_bytes)
        with _Clock(seconds):
            reply = beginning(_answer(reader, request, payload))
        _write(replies, reply)
    return 0


Reader = Callable[[Request, bytes], Reply]


def _formulas() -> Reader:
    from backends.readers.formulas import draw

    def answer(request: Request, _: bytes) -> Reply:
        if not isinstance(request, DrawFormula):
            raise Refused("reader_other")
        return draw(request.tex, is_display=request.is_display)

    return answer


def _documents() -> Reader:
    from backends.readers.documents import read

    def answer(request: Request, payload: bytes) -> Reply:
        if not isinstance(request, ReadDocument):
            raise Refused("reader_other")
        return read(payload, request.suffix)

    return answer


def _pictures() -> Reader:
    from backends.readers.pictures import decode, shrink

    def answer(request: Request, payload: bytes) -> Reply:
        match request:
            case ShrinkPicture():
                return shrink(payload)
            case DecodePicture(side=side):
                return decode(payload, side)
        raise Refused("reader_other")

    return answer


def _answer(reader: Reader, request: Request, payload: bytes) -> Reply:
    try:
        return reader(request, payload)
    except Refused as refused:
        return Refusal(refused.code, refused.facts)
    except (MemoryError, RecursionError):
        return Refusal("reader_heavy")
    except Exception:  # noqa: BLE001  a parser stumbles over hostile content in ways that nobody has listed
        return Refusal("reader_failed")


class _Clock:
    """A limit on processor time, after which the system ends this process. On Windows, the window ends it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def __exit__(self, *_: object) -> None:
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_PROF, 0)


def _read(pipe: int, size: int) -> bytes:
    """Return exactly this many bytes, or nothing if the input has ended."""
    received = bytearray()
    while len(received) < size:
        part = os.read(pipe, min(size - len(received), 1 << 20))
        if not part:
            return b""
        received += part
    return bytes(received)


def _write(pipe: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(pipe, left) :]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
