"""Why lending is paused, with the figures of this machine."""

from __future__ import annotations

import pytest

from app.core.errors import Reason
from app.core.lending.policy import Battery, Readings, with_figures
from app.core.reasons import said

NOW = Readings(0.0)


@pytest.mark.parametrize(
    ("code", "senses", "sentence"),
    [
        (
            "pause_battery", Readings(0.0, battery=Battery(47.6, False)),
            "Paused: on battery (48%). Resumes when it is plugged in.",
        ),
        (
            "pause_program", Readings(0.0, programs=frozenset(("game", "blender"))),
            "Paused: blender is running. Resumes when it closes.",
        ),
        (
            "pause_hot", Readings(0.0, hottest_c=96.6),
            "Paused: the processor is at 97 °C. Resumes when it has cooled down.",
        ),
        ("pause_battery", NOW, said(Reason("pause_battery"))),
        ("pause_program", NOW, said(Reason("pause_program"))),  # it closed a moment ago
        ("pause_hot", NOW, said(Reason("pause_hot"))),
        ("pause_hours", NOW, said(Reason("pause_hours"))),
    ],
)  # fmt: skip
def test_the_owner_is_told_what_it_is(code: str, senses: Readings, sentence: str) -> None:
    assert said(with_figures(Reason(code), senses)) == sentence
