"""The measurement of a long chat, on a short one: the page shows what the stand-in streams."""

from __future__ import annotations

import pytest

from app.gui.chat.message.markdown import segments
from bench.parts.chat import FORMULAS, PIECE, TOKENS_PER_S, measured, tokens
from bench.parts.chat_window import OPENS, TICK_MS

N_TOKENS = 30


def test_an_answer_in_tokens() -> None:
    pieces = tokens(N_TOKENS)
    assert len(pieces) == N_TOKENS
    assert "".join(pieces).startswith("## Step 0")


def test_an_answer_with_formulas_is_whole_markdown() -> None:
    text = "".join(tokens(1_000, PIECE + FORMULAS))
    assert "{n}" not in text
    assert [formula.source for segment in segments(text) for formula in segment.formulas][:2] == [
        "$a_{0} > 0$", r"\(b \in \mathbb{R}\)",
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("formulas", [False, True])
def test_it_opens_and_streams(formulas: bool) -> None:
    measurement = measured(6, N_TOKENS, formulas=formulas)
    assert len(measurement["open_s"]) == OPENS
    assert min(measurement["open_s"]) > 0
    looks = sum(measurement["busy_s"]) + len(measurement["busy_s"]) * TICK_MS / 1000
    assert looks > 0.9 * N_TOKENS / TOKENS_PER_S
