"""Lines out of pieces of any size; the work grows with the bytes and not with the pieces."""

from __future__ import annotations

import random
import time

import pytest

from app.core.wire_json import LineSplitter, LineTooLong


def test_lines_are_the_same_however_they_come() -> None:
    chance = random.Random(32)
    for _ in range(200):
        said = bytes(chance.choice(b"ab\n") for _ in range(chance.randrange(200)))
        cutter, lines = LineSplitter(1000), list[bytes]()
        left = said
        while left:
            size = chance.randint(1, 9)
            lines += cutter.feed(left[:size])
            left = left[size:]
        assert lines == said.split(b"\n")[:-1]


def test_a_line_without_an_end_is_refused_and_so_is_one_that_comes_whole() -> None:
    cutter = LineSplitter(10)
    assert cutter.feed(b"0123456789") == []
    with pytest.raises(LineTooLong):
        cutter.feed(b"x")
    with pytest.raises(LineTooLong):
        LineSplitter(10).feed(b"0123456789x\n")


def test_a_long_line_in_tiny_pieces_costs_no_more_than_its_bytes() -> None:
    """4 MiB in pieces of 16 bytes: copying what is held for each takes minutes."""
    cutter, piece = LineSplitter(4 << 20), bytes(16)
    began = time.process_time()
    for _ in range((4 << 20) // len(piece)):
        assert cutter.feed(piece) == []
    assert len(cutter.feed(b"\n")[0]) == 4 << 20
    assert time.process_time() - began < 5
