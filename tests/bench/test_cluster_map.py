"""The measurement of the map: it moves while an answer runs and is seen, and at no other time."""

from __future__ import annotations

import os

import pytest

from bench.parts.cluster_map import MOVES, measured


@pytest.mark.long
def test_it_moves_only_while_an_answer_is_seen_to_run() -> None:
    measurement = measured(3, 0.4, os.environ | {"QT_QPA_PLATFORM": "offscreen"})
    assert len(measurement) == 4
    frames = {name: pictures for name, (pictures, _) in measurement.items()}
    assert frames.pop(MOVES) > max(frames.values())
    assert all(core > 0 for _, core in measurement.values())
