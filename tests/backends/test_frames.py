"""The codec: what is written is read again, and nothing else is."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.contract import MAX_BATCH_TOKENS, NumberFormat, Segment
from backends.frames import (
    HEADER,
    MAX_PAYLOAD,
    MAX_SEGMENTS,
    BadFrame,
    Frame,
    FrameDecoder,
    FrameKind,
    PipelineParameters,
    check_step,
    decode_frame,
    decode_header,
    encode_frame,
)

segments = st.builds(Segment, st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF))
frames = st.builds(
    Frame,
    st.sampled_from(FrameKind),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from(NumberFormat),
    st.lists(segments, max_size=5).map(tuple),
    st.binary(max_size=100),
)


@given(frames)
def test_a_frame_comes_back(frame: Frame) -> None:
    assert decode_frame(encode_frame(frame)) == frame


@given(st.lists(frames, max_size=5), st.integers(1, 60))
def test_a_stream_cut_anywhere_comes_back(sent: list[Frame], n_bytes: int) -> None:
    stream = b"".join(encode_frame(frame) for frame in sent)
    decoder = FrameDecoder()
    got: list[Frame] = []
    for start in range(0, len(stream), n_bytes):
        got += decoder.feed(stream[start : start + n_bytes])
    assert got == sent


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_a_bad_frame(data: bytes) -> None:
    with suppress(BadFrame):
        assert encode_frame(decode_frame(data)) == data


ROW = NumberFormat.F16.row_bytes(4)
FRAME = Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16, (Segment(0, 1, 0),), bytes(ROW))


@pytest.mark.parametrize(
    ("offset", "data"),
    [
        (0, b"X"), (1, b"X"),  # magic
        (2, b"\x02"),  # version
        (3, b"\x00"), (3, b"\x63"),  # kind
        (32, b"\xff\xff"),  # segments
        (34, b"\x09"),  # number
        (35, b"\x08"),  # flags
        (36, b"\x00\x00\x00\x09"), (36, b"\x00\x00\x00\x00"), (36, b"\xff\xff\xff\xff"),  # length
    ],
)  # fmt: skip
def test_one_wrong_field_is_a_bad_frame(offset: int, data: bytes) -> None:
    wrong = bytearray(encode_frame(FRAME))
    wrong[offset : offset + len(data)] = data
    with pytest.raises(BadFrame):
        decode_frame(wrong)


@pytest.mark.parametrize("n_payload", [MAX_PAYLOAD + 1, (1 << 32) - 1])
def test_a_giant_length_allocates_nothing(n_payload: int) -> None:
    start = HEADER.pack(b"PH", 1, FrameKind.STEP, bytes(16), 1, 1, 1, NumberFormat.F32, 0, n_payload)
    tracemalloc.start()
    with pytest.raises(BadFrame):
        list(FrameDecoder().feed(start))
    with pytest.raises(BadFrame):
        decode_header(start)
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "frame",
    [
        Frame(FrameKind.STEP, seq=-1),
        Frame(FrameKind.STEP, epoch=1 << 32),
        Frame(FrameKind.STEP, segments=(Segment(1 << 16, 1, 0),)),
        Frame(FrameKind.STEP, segments=(Segment(0, 1, 0),) * (MAX_SEGMENTS + 1)),
        Frame(FrameKind.STEP, payload=bytes(MAX_PAYLOAD + 1)),
    ],
)
def test_a_frame_out_of_range_cannot_be_written(frame: Frame) -> None:
    with pytest.raises(BadFrame):
        encode_frame(frame)


AGREED = PipelineParameters(bytes(16), 4, NumberFormat.F16, slots=2, context=600)


@pytest.mark.parametrize(
    "wrong",
    [
        Frame(FrameKind.STEP, b"x" * 16, 1, 2, NumberFormat.F16, (Segment(0, 1, 0),), bytes(ROW)),
        Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F32, (Segment(0, 1, 0),), bytes(16)),
        Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16, (), b""),
        Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16, (Segment(0, 1, 0),) * 2, bytes(2 * ROW)),
        Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16, (Segment(2, 1, 0),), bytes(ROW)),
        Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16, (Segment(0, 0, 0),), b""),
        Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16, (Segment(0, 1, 600),), bytes(ROW)),
        Frame(FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16, (Segment(0, 1, 0),), bytes(ROW - 1)),
        Frame(
            FrameKind.STEP, bytes(16), 1, 2, NumberFormat.F16,
            (Segment(0, MAX_BATCH_TOKENS, 0), Segment(1, 1, 0)), bytes(ROW * MAX_BATCH_TOKENS + ROW),
        ),
    ],
)  # fmt: skip
def test_a_step_that_was_not_agreed_is_refused(wrong: Frame) -> None:
    check_step(FRAME, AGREED)
    with pytest.raises(BadFrame):
        check_step(wrong, AGREED)
