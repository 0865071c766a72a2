"""Tests of what a device must compute to pass, and of the check itself with the processor in its place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backends.hidden_state_codec import VALUE, Rows
from backends.known_answer import judge

SPREAD = np.linspace(-1, 1, 100, dtype=VALUE)  # the last score is the best one


def changed(*changes: tuple[int, float]) -> list[Rows]:
    row = SPREAD.copy()
    for index, value in changes:
        row[index] = value
    return [SPREAD, row]


@pytest.mark.parametrize(
    ("first", "again", "failure"),
    [
        (changed(), changed(), ""),
        (changed((98, 1.01)), changed((98, 1.01)), ""),  # a near tie
        (changed((0, np.nan)), changed((0, np.nan)), "not_finite"),
        (changed((0, np.inf)), changed((0, np.inf)), "not_finite"),
        ([SPREAD, SPREAD + np.float32(0.2)], [SPREAD, SPREAD + np.float32(0.2)], "apart"),
        (changed((70, 1.01)), changed((70, 1.01)), "apart"),
        (changed(), changed((0, -1.001)), "unsteady"),
    ],
)
def test_a_device_is_judged_by_its_scores(first: list[Rows], again: list[Rows], failure: str) -> None:
    answer = judge([SPREAD, SPREAD], first, again)
    assert answer.failure == failure
    json.dumps(answer.apart, allow_nan=False)


def test_another_best_token_fails_however_close_the_scores_are_on_average() -> None:
    wide = np.concatenate([np.linspace(-1, 1, 50_000, dtype=VALUE), [2.0]]).astype(VALUE)
    other = wide.copy()
    other[100] = 2.5
    answer = judge([wide], [other], [other])
    assert answer.failure == "tokens"


def test_the_processor_passes_in_the_place_of_a_device(project: Path) -> None:
    command = [sys.executable, "-m", "backends", "check", str(project / "resources" / "guide.gguf"), "", ""]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=project)
    assert json.loads(done.stdout) == {"failure": "", "apart": 0.0}


def test_a_device_that_does_not_exist_fails_the_check(project: Path) -> None:
    command = [sys.executable, "-m", "backends", "check", str(project / "resources" / "guide.gguf"), "Nothing0", ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project)
    assert done.returncode != 0
    assert "there is no device Nothing0" in done.stderr.splitlines()[-1]
