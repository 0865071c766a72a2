"""A real model's document on disk: after a restart of all nodes, the same question gets the same answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from scripts.real_models import SMOLLM2
from tests.node.test_kept_prompts import ask, files, free_ports, household, until_kept
from tests.real.asking import begun
from tests.real.words import PASSAGE, STORY

TIMES = 8  # 8 times the two texts have about 1,700 tokens


def test_an_answer_after_a_restart_is_that_of_a_computed_prompt(kept: Path, tmp_path: Path) -> None:
    file = kept / SMOLLM2.file
    texts = (PASSAGE + STORY) * TIMES, " What does it say?", " Who lived there?"
    (document, question, next_question) = asyncio.run(begun(file, *texts))
    order = {"path": str(file), "split": [10, 15, 5], "context": 2048, "users": 1, "measure": False}
    ports = free_ports()
    with household(tmp_path, ports, is_new=True, order=order) as (host, _):
        first = ask(host, document + question, "first")
        assert first["reused_tokens"] == 0
        asyncio.run(until_kept(tmp_path, 4))
    with household(tmp_path, ports, order=order) as (host, _):
        again, other = ask(host, document + question, "second"), ask(host, document + next_question, "third")
        assert min(again["reused_tokens"], other["reused_tokens"]) >= len(document) - 64
        assert again["token_ids"] == first["token_ids"]
        assert other["token_ids"] == ask(host, document + next_question, None)["token_ids"]
        assert again["ttft_s"] < first["ttft_s"] / 4
    assert len(files(tmp_path)) == 4
