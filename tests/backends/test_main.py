"""Tests that a worker's output reaches its node in one piece."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from backends.__main__ import write
from backends.frames import Frame, FrameDecoder, FrameKind

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="one buffer a write there")


def test_all_answers_to_a_frame_leave_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its node, on the same core, wakes up for the first and delays the second."""
    writes, writev = list[int](), os.writev

    def counted(fd: int, parts: Sequence[bytes]) -> int:
        writes.append(len(parts))
        return writev(fd, parts)

    monkeypatch.setattr(os, "writev", counted)
    answers = [Frame(FrameKind.SAMPLED, seq=1, payload=b"abcd"), Frame(FrameKind.OUTPUT, seq=2, payload=b"")]
    there, here = os.pipe()
    write(here, *answers)
    os.close(here)
    with os.fdopen(there, "rb") as pipe:
        came = list(FrameDecoder().feed(pipe.read()))
    assert [(frame.kind, frame.seq, bytes(frame.payload)) for frame in came] == [
        (answer.kind, answer.seq, bytes(answer.payload)) for answer in answers
    ]
    assert len(writes) == 1
