"""Hybrids: a slot goes on from a kept state as if nothing had come after it, and refuses to from elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.catalog.families.family_table import FAMILIES
from backends.contract import Segment
from tests.families import proof
from tests.families.fixtures import families
from tests.families.line import Line, Scores, StageRefused

HYBRIDS = [name for name, family in families().items() if FAMILIES[family.architecture].recurrent]
PROMPT, OTHER = 30, 5


def lines(name: str, folder: Path, *, apart: bool = False) -> Line:
    """The stages of its first legal cut."""
    home = proof.home(folder)
    entry = home.shelf.import_file(families()[name].path)
    runs = proof.runs(entry.model.n_layers, proof.twos(entry.model)[0])
    return Line([home.config(entry, *run, apart=apart) for run in runs])


def going_on(line: Line, ids: list[int], pos: int) -> list[Scores]:
    """A prompt's rest in one segment, and four tokens after it."""
    seen = [line.step([Segment(0, len(ids), pos)], ids)[0]]
    for at in range(pos + len(ids), pos + len(ids) + 4):
        seen.append(line.step([Segment(0, 1, at)], [int(seen[-1].argmax())])[0])
    return seen


@pytest.mark.parametrize("name", HYBRIDS)
def test_an_answer_taken_back_to_its_prompt_leaves_nothing(name: str, tmp_path: Path) -> None:
    prompt, other = list(range(5, 5 + PROMPT)), list(range(90, 90 + OTHER))
    with lines(name, tmp_path) as line:
        line.begin(0, 1)
        line.step([Segment(0, PROMPT, 0)], prompt)
        expected = going_on(line, other, PROMPT)  # nothing was ever taken back
        line.forget(0, 0)
        going_on(line, prompt, 0)
        line.forget(0, PROMPT)
        assert np.array_equal(going_on(line, other, PROMPT), expected)
        line.forget(0, PROMPT)
        assert np.array_equal(going_on(line, other, PROMPT), expected)


@pytest.mark.parametrize("name", HYBRIDS)
def test_what_was_not_kept_is_refused(name: str, tmp_path: Path) -> None:
    with lines(name, tmp_path, apart=True) as line:
        line.begin(0, 1)
        going_on(line, list(range(5, 5 + PROMPT)), 0)
        with pytest.raises(StageRefused, match="no state"):
            line.forget(0, PROMPT + 2)
