"""The measurement of a long chat, on a short one: the page shows what the stand-in streams."""

from __future__ import annotations

import pytest

from bench.parts.chat import TOKENS_PER_S, measured, tokens
from bench.parts.chat_window import OPENS, TICK_MS

N_TOKENS = 30


def test_an_answer_in_tokens() -> None:
    pieces = tokens(N_TOKENS)
    assert len(pieces) == N_TOKENS
    assert "".join(pieces).startswith("## Step 0")


@pytest.mark.long
def test_it_opens_and_streams() -> None:
    measurement = measured(6, N_TOKENS)
    assert len(measurement["open_s"]) == OPENS
    assert min(measurement["open_s"]) > 0
    looks = sum(measurement["busy_s"]) + len(measurement["busy_s"]) * TICK_MS / 1000
    assert looks > 0.9 * N_TOKENS / TOKENS_PER_S
