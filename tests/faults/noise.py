"""Hostile input: invalid connections, and frames and messages that violate the protocol. No I/O."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Sequence

from backends.contract import NumberFormat, Segment
from backends.frames import HEADER, MAX_PAYLOAD, Frame, FrameKind, PipelineParameters, encode_frame

NOT_A_HOSTS: tuple[FrameKind, ...] = (
    FrameKind.OUTPUT,
    FrameKind.SAMPLED,
    FrameKind.LOGITS,
    FrameKind.DONE,
    FrameKind.STALE,
    FrameKind.NEED_FROM,
    FrameKind.LOST,
    FrameKind.TEXT,
    FrameKind.FOLLOW,
    FrameKind.LIKELY,
)
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
REQUESTS = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10737418240\r\n\r\n{",
    b"POST /shutdown HTTP/1.1\r\nHost: evil\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /events HTTP/1.1\r\nOrigin: null\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET " + b"/a" * 9000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nffffffff\r\n",
)


def connection(chance: random.Random) -> bytes:
    """All that one stranger says."""
    match chance.randrange(6):
        case 0:
            return chance.randbytes(chance.randrange(1, 600))
        case 1:
            return HELLO + chance.randbytes(chance.randrange(600))
        case 2:
            return b"\x16\x03\x01" + chance.randbytes(2)
        case 3:
            return b""
        case 4:
            whole = chance.choice(REQUESTS)
            return whole[: chance.randrange(1, len(whole))]
        case _:
            return chance.choice(REQUESTS)


def message(chance: random.Random) -> str:
    """A first word on a control link that is no HELLO of ours."""
    deep = "[" * chance.randrange(9, 30_000)
    return chance.choice(
        (
            "", "{", "null", '{"type":"hello"}', '{"type":"hello","protocol":"x"}', deep,
            '{"type":"ping","n":-1}', '{"type":"open_stage"}', '{"type":"' + "x" * 70_000 + '"}',
            json.dumps({"type": "leaving", "reason": "\u202e" * 100}),
            chance.randbytes(200).decode("latin-1"),
        )
    )  # fmt: skip


def frame(chance: random.Random, agreed: PipelineParameters) -> bytes:
    """Bytes that the end which agreed on `agreed` must refuse, and drop the connection."""
    made = chance.choice(KINDS)(chance, agreed)
    assert isinstance(made, bytes)
    return made


Maker = Callable[[random.Random, PipelineParameters], bytes]


def _step(
    agreed: PipelineParameters,
    segments: Sequence[Segment] = (Segment(0, 1, 0),),
    payload: bytes | None = None,
    pipeline: bytes | None = None,
    number: NumberFormat | None = None,
) -> bytes:
    rows = sum(segment.n_tokens for segment in segments)
    right = bytes(min(rows * agreed.number.row_bytes(agreed.width), MAX_PAYLOAD))
    whole = Frame(
        FrameKind.STEP, pipeline or agreed.pipeline, 1, 1, number or agreed.number, tuple(segments),
        right if payload is None else payload,
    )  # fmt: skip
    return encode_frame(whole)


def _header(agreed: PipelineParameters, **changes: int | bytes) -> bytes:
    fields: dict[str, int | bytes] = {
        "magic": b"PH", "version": 1, "kind": 1, "pipeline": agreed.pipeline, "epoch": 1, "seq": 1,
        "segments": 1, "number": int(agreed.number), "flags": 0, "length": 0,
    }  # fmt: skip
    return HEADER.pack(*(fields | changes).values()) + struct.pack(">HHI", 0, 1, 0)


KINDS: tuple[Maker, ...] = (
    lambda chance, _: chance.randbytes(chance.randrange(1, 400)),
    lambda _, agreed: b"",
    lambda chance, agreed: _step(agreed)[: chance.randrange(1, 40)],
    lambda _, agreed: _step(agreed)[:-1],
    lambda _, agreed: _step(agreed) + b"x",
    lambda chance, agreed: _header(agreed, magic=chance.randbytes(2)),
    lambda chance, agreed: _header(agreed, version=chance.choice((0, 2, 255))),
    lambda chance, agreed: _header(agreed, kind=chance.randrange(13, 256)),
    lambda chance, agreed: _header(agreed, number=chance.randrange(100, 256)),
    lambda chance, agreed: _header(agreed, flags=chance.randrange(1, 256)),
    lambda chance, agreed: _header(
        agreed, length=chance.choice((1, 4095, MAX_PAYLOAD, MAX_PAYLOAD + 1, (1 << 32) - 1))
    ),
    lambda chance, agreed: _header(agreed, segments=chance.choice((0, 2, 512, 513, 65535))),
    lambda chance, agreed: _step(agreed, (Segment(agreed.slots + chance.randrange(9), 1, 0),)),
    lambda _, agreed: _step(agreed, (Segment(0, 0, 0),)),
    lambda _, agreed: _step(agreed, ()),
    lambda _, agreed: _step(agreed, (Segment(0, 1, 0), Segment(0, 1, 1))),
    lambda _, agreed: _step(agreed, (Segment(0, 1, agreed.context),)),
    lambda _, agreed: _step(agreed, (Segment(0, 1, (1 << 32) - 1),)),
    lambda _, agreed: _step(agreed, (Segment(0, 513, 0),)),
    lambda chance, agreed: _step(agreed, payload=bytes(chance.randrange(100_000) * 4 + 3)),
    lambda chance, agreed: _step(agreed, pipeline=chance.randbytes(16)),
    lambda _, agreed: _step(
        agreed, number=NumberFormat.F32 if agreed.number is not NumberFormat.F32 else NumberFormat.F16
    ),
    lambda chance, agreed: encode_frame(
        Frame(chance.choice(NOT_A_HOSTS), agreed.pipeline, 1, 1, payload=b"{}")
    ),
    lambda chance, _: encode_frame(Frame(FrameKind.FORGET, chance.randbytes(16), segments=(Segment(0, 0, 0),))),
)  # fmt: skip
