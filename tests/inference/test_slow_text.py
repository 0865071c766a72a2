"""A text that takes too long to be parted into tokens is its own fault: it is told so, and the next one is read."""

from __future__ import annotations

import pytest

from app.core.errors import BadInput
from app.core.reasons import said
from app.inference.worker import tokenizer
from app.inference.worker.tokenizer import MAX_TEXT_CHARS, TextWorker
from app.machine.installation import guide_file

LONG = "\U0001f600" * MAX_TEXT_CHARS  # a token for each of its bytes, which takes seconds


@pytest.mark.parametrize("renders", [True, False])
async def test_a_text_that_takes_too_long_is_told_as_that(renders: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await TextWorker.open(str(guide_file())) as opened:
        monkeypatch.setattr(tokenizer, "TOKENIZE_S", 0.2)
        messages = [{"role": "user", "content": LONG[:-64]}]  # with what its template writes
        request = opened.prompt(messages) if renders else opened.tokenize(LONG)
        with pytest.raises(BadInput) as raised:
            await request
        assert raised.value.reason.code == "text_too_slow"
        assert "Send a shorter text" in said(raised.value)
        monkeypatch.undo()
        assert await opened.tokenize("A pool.")
