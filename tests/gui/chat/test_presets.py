"""Presets of system messages and sampling: the app's own, and a person's."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.gui.chat.presets import SAMPLING, SYSTEM, Presets, valid_sampling
from tests.gui.desk import Desk


@pytest.fixture
def presets(qtbot: QtBot, away: Desk) -> Presets:
    return Presets(away.services.preferences)


def test_own_presets_are_kept(away: Desk, presets: Presets) -> None:
    seen: list[bool] = []
    presets.changed.connect(lambda: seen.append(True))
    presets.save_system("  Pirate \n", 'Say "arr", twice;\nalways.')
    presets.save_sampling("Wild", {"temperature": 1.5, "top_k": 40, "bad": 1})
    again = Presets(away.services.preferences)
    assert again.own_systems() == {"Pirate": 'Say "arr", twice;\nalways.'}
    assert again.own_samplings() == {"Wild": {"temperature": 1.5}}
    assert "Pirate" in again.systems()
    assert again.samplings()["Precise"]["temperature"] == 0.2
    again.remove_system("Pirate")
    again.remove_sampling("Wild")
    assert not again.own_systems()
    assert not again.own_samplings()
    assert len(seen) == 2


@pytest.mark.parametrize("kept", ["{", "[]", '"x"', '{"a": 7}', "[" * 100_000])
def test_a_damaged_entry_is_no_preset(away: Desk, presets: Presets, kept: str) -> None:
    away.services.preferences.keep(SYSTEM, kept)
    away.services.preferences.keep(SAMPLING, kept)
    assert presets.own_systems() == {}
    assert all(values == {} for values in presets.own_samplings().values())


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({"temperature": 0.8}, {}),  # the default
        ({"temperature": 11}, {}),
        ({"temperature": float("nan")}, {}),
        ({"top_k": 3.5}, {}),
        ({"top_k": 3.0}, {"top_k": 3}),
        ({"top_k": True}, {}),
        ({"seed": 0}, {"seed": 0}),
        ({"seed": None}, {}),
        (None, {}),
        ("x", {}),
    ],
)
def test_only_what_the_node_takes(values: object, kept: object) -> None:
    assert valid_sampling(values) == kept
