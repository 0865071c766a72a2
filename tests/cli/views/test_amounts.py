"""Memory as a bar: nothing used is nought, not a number of bytes."""

from __future__ import annotations

import pytest

from app.cli.terminal_text import memory_bar


@pytest.mark.parametrize(
    ("used", "words"),
    [
        (0, "░░░░░░░░░░ 0 of 8.0 GiB"),
        (1 << 30, "█░░░░░░░░░ 1.0 of 8.0 GiB"),
        (5 << 20, "█░░░░░░░░░ 5.0 MiB of 8.0 GiB"),
    ],
)
def test_what_is_used_of_it(used: int, words: str) -> None:
    assert memory_bar(used, 8 << 30).plain == words
