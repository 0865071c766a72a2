"""The recipe of a draft model: its questions, and the file that it writes."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from backends.llamacpp.draft_model import DraftModel
from scripts.drafts.export import MATRICES, export
from scripts.drafts.prompts import KINDS, questions

GUIDE = Path(__file__).parents[2] / "resources" / "guide.gguf"
N_LAYERS, WIDTH, WIDE = 2, 256, 512
IDS = np.array([5, 7, 11, 300, 301, 2000], dtype=np.int32)


def test_questions_are_of_all_kinds_and_never_asked_twice() -> None:
    written = list(islice(questions(1), 600))
    assert len({question for _, question in written}) == 600
    assert Counter(kind for kind, _ in written) == dict.fromkeys(KINDS, 200)
    assert not any("{" in question or "}" in question for _, question in written)
    assert written == list(islice(questions(1), 600))
    assert written != list(islice(questions(2), 600))


def test_an_exported_draft_writes_tokens_of_the_large_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(20261201)
    shapes = {
        "attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH // 2, WIDTH), "attn_v": (WIDTH // 2, WIDTH),
        "attn_output": (WIDTH, WIDTH), "ffn_norm": (WIDTH,), "ffn_gate": (WIDE, WIDTH), "ffn_up": (WIDE, WIDTH),
        "ffn_down": (WIDTH, WIDE),
    }  # fmt: skip
    weights = {
        f"blk.{layer}.{name}.weight": rng.normal(0, 0.1, shape) for layer in range(N_LAYERS)
        for name, shape in shapes.items()
    }  # fmt: skip
    weights |= {
        "token_embd.weight": rng.normal(0, 0.1, (len(IDS), WIDTH)), "output_norm.weight": np.ones(WIDTH)
    }  # fmt: skip
    arrays: dict[str, Any] = {name: weight.astype(np.float32) for name, weight in weights.items()}
    np.savez(tmp_path / "weights.npz", ids=IDS, **arrays)
    out = tmp_path / "draft.gguf"
    export(GUIDE, tmp_path, out, MATRICES["q8_0"])
    assert gguf.GGUFReader(out).fields["llama.block_count"].contents() == N_LAYERS
    assert not out.with_suffix(".part").exists()
    draft = DraftModel(str(out), str(GUIDE), 256, 1, 1)
    try:
        written = draft.write(0, 0, [1, 2, 2047], 1)
    finally:
        draft.close()
    assert [token in IDS for token, _ in written] == [True]
