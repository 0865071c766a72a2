"""The frames that carry all messages between nodes and workers, and their encoding.

A frame consists of a 40-byte big-endian header, 8 bytes for each segment, and a payload (SAFETY.md 5). Sizes are
checked before memory is allocated. This module does no I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from backends.contract import MAX_BATCH_TOKENS, MOST_GUESSES, NumberFormat, Segment

MAGIC, VERSION = b"PH", 1
HEADER = struct.Struct(">2sBB16sIQHBBI")
SEGMENT = struct.Struct(">HHI")
MAX_PAYLOAD = 16 << 20
MAX_SEGMENTS = 512
MAX_FRAME = MAX_PAYLOAD + HEADER.size + SEGMENT.size * MAX_SEGMENTS
NO_PIPELINE = bytes(16)
# The flags of a STEP
SEES_ALL = 1
CUTS = 2
CHECKS = 4


class FrameKind(IntEnum):
    """The kind of a frame.

    STEP, FORGET and BEGIN frames and their answers cross the network. TEXT and FOLLOW frames stay on the local pipe.
    """

    STEP = 1  # input rows: token ids or hidden states
    OUTPUT = 2  # hidden states of the STEP with the same seq
    SAMPLED = 3  # one token id for each due segment
    LOGITS = 4  # float32 scores of each due segment; only on the pipe, requested by tests
    FORGET = 5  # drop all but the first `pos` positions of the slot
    DONE = 6  # a FORGET or BEGIN has been carried out
    STALE = 7  # the frame belonged to an older epoch and changed nothing
    NEED_FROM = 8  # the step left a gap; the `pos` of each segment is the expected position
    LOST = 9  # the stage failed; the payload is JSON with code and facts
    TEXT = 10  # an order or its answer as JSON; only on the pipe (backends/worker_orders.py)
    FOLLOW = 11  # a STEP whose rows are the tokens sampled by the STEP in its payload; only on the pipe
    # sent before SAMPLED, if requested: the log probabilities of one slot's token and of the likeliest ones
    LIKELY = 12
    # Starts a sequence; the payload is a worker_orders.BeginSequence. Sent to a whole model on another computer and, if
    # the sequence has pictures with positions in two dimensions, to every stage.
    BEGIN = 13


class BadFrame(Exception):
    """Bytes that are not a valid frame. The connection that they came from must be closed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message. `pipeline` is the id of the pipeline to which the sending or receiving stage belongs."""

    kind: FrameKind
    pipeline: bytes = NO_PIPELINE
    epoch: int = 0
    seq: int = 0
    number: NumberFormat = NumberFormat.F32
    segments: tuple[Segment, ...] = ()
    payload: bytes | bytearray | memoryview = b""
    sees_all: bool = False  # of a STEP: every row attends to all rows of the step (contract.Tokens)
    # of a STEP: a segment may begin before the end of its slot, whose positions from there on are forgotten first,
    # because they were computed from wrong guesses
    cuts: bool = False
    checks: bool = False  # of a STEP to a stage that samples: its rows are followed by guessed tokens (Guessed)

    @property
    def flags(self) -> int:
        return SEES_ALL * self.sees_all | CUTS * self.cuts | CHECKS * self.checks


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame. Raises BadFrame if a field is out of range."""
    return b"".join((encode_header(frame), frame.payload))


def encode_header(frame: Frame) -> bytes:
    """Return only the header and segments of a frame. The caller sends the payload without copying it."""
    if len(frame.payload) > MAX_PAYLOAD or len(frame.segments) > MAX_SEGMENTS:
        raise BadFrame(f"a frame of {len(frame.payload)} bytes is too large")
    try:
        start = HEADER.pack(
            MAGIC, VERSION, frame.kind, frame.pipeline, frame.epoch, frame.seq,
            len(frame.segments), frame.number, frame.flags, len(frame.payload),
        )  # fmt: skip
        return start + b"".join(SEGMENT.pack(s.slot, s.n_tokens, s.pos) for s in frame.segments)
    except struct.error as error:
        raise BadFrame(str(error)) from None


@dataclass(frozen=True, slots=True)
class Header:
    """A validated frame header."""

    kind: FrameKind
    pipeline: bytes
    epoch: int
    seq: int
    number: NumberFormat
    n_segments: int
    n_payload: int
    flags: int = 0

    @property
    def n_rest(self) -> int:
        return SEGMENT.size * self.n_segments + self.n_payload


def decode_header(data: bytes | bytearray | memoryview) -> Header:
    """Parse and validate the 40-byte header before memory for the rest of the frame is allocated. Raises BadFrame."""
    if len(data) < HEADER.size:
        raise BadFrame("a frame shorter than its header")
    magic, version, kind, pipeline, epoch, seq, n_segments, number, flags, n_payload = HEADER.unpack_from(data)
    if (
        magic != MAGIC
        or version != VERSION
        or flags & ~(SEES_ALL | CUTS | CHECKS)
        or (flags and kind != FrameKind.STEP)
    ):
        raise BadFrame("not a frame of this version")
    if n_payload > MAX_PAYLOAD or n_segments > MAX_SEGMENTS:
        raise BadFrame(f"a frame of {n_payload} bytes and {n_segments} segments is too large")
    try:
        form = NumberFormat(number)
        return Header(FrameKind(kind), pipeline, epoch, seq, form, n_segments, n_payload, flags)
    except ValueError as error:
        raise BadFrame(str(error)) from None


def decode_frame(data: bytes | bytearray | memoryview) -> Frame:
    """Decode `data`, which must contain exactly one frame. Raises BadFrame."""
    top = decode_header(data)
    if len(data) != HEADER.size + top.n_rest:
        raise BadFrame(f"{len(data)} bytes for a frame of {HEADER.size + top.n_rest}")
    start = HEADER.size + SEGMENT.size * top.n_segments
    segments = tuple(
        Segment(slot, n_tokens, pos)
        for slot, n_tokens, pos in SEGMENT.iter_unpack(memoryview(data)[HEADER.size : start])
    )
    payload = memoryview(data)[start:]
    sees_all, cuts, checks = (bool(top.flags & flag) for flag in (SEES_ALL, CUTS, CHECKS))
    return Frame(top.kind, top.pipeline, top.epoch, top.seq, top.number, segments, payload, sees_all, cuts, checks)


class FrameDecoder:
    """An incremental decoder that extracts frames from a byte stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Append `data` and yield each completed frame. Raises BadFrame at the first invalid header."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            end = HEADER.size + decode_header(self._buffer).n_rest
            if len(self._buffer) < end:
                return
            whole = bytes(memoryview(self._buffer)[:end])
            del self._buffer[:end]
            yield decode_frame(whole)


@dataclass(frozen=True, slots=True)
class PipelineParameters:
    """The parameters that both ends agreed on when they opened the pipeline. Each STEP is checked against them."""

    pipeline: bytes
    width: int
    number: NumberFormat
    slots: int
    context: int  # positions of one slot
    samples: bool = False  # whether the stage samples tokens, so that its steps may contain guesses


COUNT = struct.Struct("<H")
ID = struct.Struct("<i")


def guesses_to_wire(guesses: Sequence[Sequence[int]]) -> bytes:
    """Encode guessed tokens. A STEP that checks guesses contains them after its rows.

    guesses: for each segment, the guessed tokens at its end, or an empty sequence. Its other tokens are not guesses.
    """
    counts = b"".join(COUNT.pack(len(some)) for some in guesses)
    return counts + b"".join(ID.pack(token) for some in guesses for token in some)


def row_bytes(frame: Frame, agreed: PipelineParameters) -> int:
    """Return the size of the rows of a STEP, without the guessed tokens that may follow them."""
    return sum(segment.n_tokens for segment in frame.segments) * agreed.number.row_bytes(agreed.width)


def guesses_of(frame: Frame, agreed: PipelineParameters) -> tuple[tuple[int, ...], ...]:
    """Return the guessed tokens at the end of each segment of a STEP. Raises BadFrame."""
    if not frame.checks:
        return ((),) * len(frame.segments)
    tail, n_segments = memoryview(frame.payload)[row_bytes(frame, agreed) :], len(frame.segments)
    if not agreed.samples or len(tail) < COUNT.size * n_segments:
        raise BadFrame("guesses for a stage that does not sample, or fewer than segments")
    counts = [count for (count,) in COUNT.iter_unpack(tail[: COUNT.size * n_segments])]
    ids = tail[COUNT.size * n_segments :]
    if not 1 <= sum(counts) <= MOST_GUESSES or len(ids) != ID.size * sum(counts):
        raise BadFrame(f"{sum(counts)} guesses, {MOST_GUESSES} are allowed, in {len(ids)} bytes")
    if any(count >= segment.n_tokens for count, segment in zip(counts, frame.segments, strict=True)):
        raise BadFrame("a segment of guesses only")
    tokens = iter([token for (token,) in ID.iter_unpack(ids)])
    guesses = tuple(tuple(next(tokens) for _ in range(count)) for count in counts)
    if any(token < 0 for some in guesses for token in some):
        raise BadFrame("a guess that is no token")
    return guesses


def check_step(frame: Frame, agreed: PipelineParameters) -> None:
    """Raise BadFrame unless a STEP or OUTPUT frame conforms to the agreed parameters."""
    if frame.pipeline != agreed.pipeline or frame.number != agreed.number:
        raise BadFrame("a step for another pipeline or of another number type")
    slots = [segment.slot for segment in frame.segments]
    if not 1 <= len(slots) <= agreed.slots or len(set(slots)) != len(slots):
        raise BadFrame("a step without slots, with too many, or with one twice")
    if frame.sees_all and len(slots) != 1:
        raise BadFrame("a picture that is not alone in its step")
    for segment in frame.segments:
        if segment.slot >= agreed.slots or segment.n_tokens < 1 or segment.end > agreed.context:
            raise BadFrame(f"{segment} is outside of {agreed.slots} slots of {agreed.context}")
    n_rows = sum(segment.n_tokens for segment in frame.segments)
    if n_rows > MAX_BATCH_TOKENS:
        raise BadFrame(f"a step of {n_rows} rows, {MAX_BATCH_TOKENS} are allowed")
    if frame.checks:
        guesses_of(frame, agreed)  # raises BadFrame unless exactly they follow the rows
    elif len(frame.payload) != row_bytes(frame, agreed):
        raise BadFrame(f"{len(frame.payload)} bytes for {n_rows} rows of {agreed.width} values")
