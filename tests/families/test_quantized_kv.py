"""A context kept as q8_0: cut models say what the whole says, and both nearly what an exact context says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.catalog.shelf import Entry
from backends.contract import KvType, Segment
from tests.families import proof
from tests.families.changed import wide_heads
from tests.families.fixtures import families
from tests.families.home import Home
from tests.families.line import Line, Scores

# of each kind: scores capped, sinks in windows, positions in planes, recurrent beside attention and in it
KINDS = ("gemma2", "gpt-oss", "glm4-moe-mtp", "nemotron-h", "falcon-h1")
CHUNKS, N_DECODED = (24, 16), 8
FAR = 0.3  # of a score whose spread is about 1; 0.09 was seen


@pytest.mark.parametrize("name", KINDS)
def test_a_cut_model_says_what_the_whole_says(name: str, tmp_path: Path) -> None:
    home = proof.home(tmp_path)
    entry = home.shelf.import_file(wide_heads(families()[name].path, tmp_path / "wide.gguf"))
    assert entry.model.quantized_kv
    whole = said(home, entry, (), KvType.Q8_0)
    assert np.array_equal(said(home, entry, proof.twos(entry.model)[0], KvType.Q8_0), whole)
    exact = said(home, entry, (), KvType.F16)
    assert 0 < np.abs(whole[0] - exact[0]).max() < FAR


def test_heads_of_less_than_a_block_are_kept_exactly(tmp_path: Path) -> None:
    home = proof.home(tmp_path)
    assert not home.shelf.import_file(families()["gemma2"].path).model.quantized_kv


def said(home: Home, entry: Entry, cuts: proof.Cuts, kv: KvType) -> list[Scores]:
    """The scores after a prompt in two chunks, and after each of some greedy tokens."""
    prompt, _ = proof.prompts(entry.model.n_vocab)
    configs = [home.config(entry, *run, apart=False) for run in proof.runs(entry.model.n_layers, cuts)]
    with Line([replace(config, kv=kv) for config in configs]) as line:
        line.begin(0, len(prompt))
        first, second = CHUNKS
        assert first + second == len(prompt)
        line.step([Segment(0, first, 0)], prompt[:first])
        rows = [line.step([Segment(0, second, first)], prompt[first:])[0]]
        for at in range(len(prompt), len(prompt) + N_DECODED):
            rows.append(line.step([Segment(0, 1, at)], [int(rows[-1].argmax())])[0])
    return rows
