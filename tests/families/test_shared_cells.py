"""A slot that is emptied beside another's answer: what the cut model says then, and when nothing changes at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from backends.contract import Layers, Role, Segment
from tests.families import proof
from tests.families.fixtures import families
from tests.families.line import Line, Scores

KINDS = ("llama", "gemma3", "olmo2", "qwen3-5")
N_STEPS, EMPTIED_AT = 8, 3
OTHER, OWN = range(90, 90 + proof.FIRST), range(30, 30 + proof.SECOND)


def said(name: str, folder: Path, cut: Sequence[int], *, apart: bool, emptied: bool = True) -> list[Scores]:
    """Return the tokens of slot 1 while slot 0, which came first, is emptied between two of them."""
    home = proof.home(folder)
    entry = home.shelf.import_file(families()[name].path)
    runs: list[tuple[Layers, Role]] = proof.runs(entry.model.n_layers, tuple(cut))
    chance = Random(entry.model.n_vocab)
    with Line([home.config(entry, *run, apart=apart) for run in runs]) as line:
        line.begin(0, len(OTHER))
        line.begin(1, len(OWN))
        line.step([Segment(0, len(OTHER), 0)], OTHER)
        rows = [line.step([Segment(1, len(OWN), 0)], OWN)[1]]
        for n in range(N_STEPS):
            if emptied and n == EMPTIED_AT:
                line.forget(0, 0)
            at = Segment(1, 1, len(OWN) + n)
            rows.append(line.step([at], [chance.randrange(entry.model.n_vocab)])[1])
    return rows


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_the_cut_model_says_what_the_whole_says_when_a_slot_was_emptied(name: str, apart: bool, tmp_path: Path) -> None:
    model = proof.home(tmp_path).shelf.import_file(families()[name].path).model
    whole = said(name, tmp_path, (), apart=apart)
    assert np.array_equal(said(name, tmp_path, proof.twos(model)[0], apart=apart), whole)


@pytest.mark.parametrize("name", KINDS)
def test_slots_with_cells_of_their_own_hear_nothing_of_it(name: str, tmp_path: Path) -> None:
    kept = said(name, tmp_path, (), apart=True, emptied=False)
    assert np.array_equal(said(name, tmp_path, (), apart=True), kept)


def test_where_they_share_the_engine_itself_adds_up_in_another_order(tmp_path: Path) -> None:
    """The whole model behaves the same. If an engine no longer does, docs/families.md must change."""
    kept = said("olmo2", tmp_path, (), apart=False, emptied=False)
    moved = said("olmo2", tmp_path, (), apart=False)
    assert np.array_equal(moved[: EMPTIED_AT + 1], kept[: EMPTIED_AT + 1])
    assert not np.array_equal(moved, kept)
    assert [row.argmax() for row in moved] == [row.argmax() for row in kept]
