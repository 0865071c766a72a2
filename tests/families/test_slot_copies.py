"""A slot whose state went to a file and back: every family goes on from it bit for bit as if it had never left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.catalog.families.family_table import FAMILIES
from backends.contract import Segment
from tests.families import proof
from tests.families.fixtures import families
from tests.families.line import Line, Scores, StageRefused

PROMPT, OTHER = 40, 5


def lines(name: str, folder: Path, *, apart: bool = False) -> Line:
    """The stages of its first legal cut."""
    home = proof.home(folder)
    entry = home.shelf.import_file(families()[name].path)
    runs = proof.runs(entry.model.n_layers, proof.twos(entry.model)[0])
    return Line([home.config(entry, *run, apart=apart) for run in runs])


def going_on(line: Line, slot: int, ids: list[int], pos: int) -> list[Scores]:
    """A prompt's rest in one segment, and four tokens after it."""
    seen = [line.step([Segment(slot, len(ids), pos)], ids)[slot]]
    for at in range(pos + len(ids), pos + len(ids) + 4):
        seen.append(line.step([Segment(slot, 1, at)], [int(seen[-1].argmax())])[slot])
    return seen


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", sorted(families()))
def test_every_family_goes_on_from_a_copy(name: str, apart: bool, tmp_path: Path) -> None:
    prompt, other = list(range(5, 5 + PROMPT)), list(range(90, 90 + OTHER))
    with lines(name, tmp_path, apart=apart) as line:
        line.begin(0, 1)
        line.step([Segment(0, PROMPT, 0)], prompt)
        states = line.read_slot(0)
        expected = going_on(line, 0, other, PROMPT)
    assert all(positions == PROMPT for positions, _ in states)
    with lines(name, tmp_path, apart=apart) as line:
        line.begin(0, 1)
        assert line.write_slot(0, states) == [PROMPT] * len(states)
        assert np.array_equal(going_on(line, 0, other, PROMPT), expected)
        if not FAMILIES[families()[name].architecture].recurrent:
            line.forget(0, PROMPT - 8)
            line.step([Segment(0, 8, PROMPT - 8)], prompt[-8:])


def test_a_state_of_other_layers_is_refused_and_leaves_an_empty_slot(tmp_path: Path) -> None:
    prompt = list(range(5, 5 + PROMPT))
    with lines("llama", tmp_path / "a") as line:
        line.begin(0, 1)
        line.step([Segment(0, PROMPT, 0)], prompt)
        states = line.read_slot(0)
        expected = going_on(line, 0, [7, 8], PROMPT)
        positions, state = states[0]
        line.forget(0, 0)
        for wrong in (state[:-4], state + bytes(4), bytes(len(state)), state[: len(state) // 2]):
            assert line.write_slot(0, [(positions, wrong), *states[1:]])[0] == 0
            line.forget(0, 0)
        line.step([Segment(0, PROMPT, 0)], prompt)
        assert np.array_equal(going_on(line, 0, [7, 8], PROMPT), expected)


def test_a_step_or_a_forget_cancels_a_state_that_is_arriving(tmp_path: Path) -> None:
    prompt = list(range(5, 5 + PROMPT))
    with lines("llama", tmp_path) as line:
        line.begin(0, 1)
        line.step([Segment(0, PROMPT, 0)], prompt)
        states = line.read_slot(0)
        with pytest.raises(StageRefused, match="no room"):  # the slot is in use
            line.write_slot(0, states)
        line.forget(0, 0)
        positions, state = states[0]
        first = line._pipelines[0].hex()
        assert line._write(first, 0, positions, state[:1000], 1000, len(state)) == 0  # the rest is still to come
        line.step([Segment(0, 4, 0)], prompt[:4])
        line.forget(0, 0)
        assert line._write(first, 0, positions, state[1000:], len(state), len(state), 1000) == 0
        assert line.write_slot(0, states) == [PROMPT] * len(states)
        assert line.read_slot(1) == [(0, b"")] * len(states)  # an empty slot has nothing to copy
