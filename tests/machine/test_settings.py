"""Tests of the owner's settings: saved completely, refused if impossible, changed for now and for later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from app.core.errors import Damaged, DoesNotFit
from app.core.lending.hours import parse_hours
from app.core.lending.policy import Rules
from app.machine.settings import Pause, Settings, SettingsStore, load, save

RULES = Rules(memory_bytes=5, idle_s=60.0, hours=parse_hours("sat 9:00-17:00"), programs=("game",))


def test_settings_survive_being_saved(tmp_path: Path) -> None:
    settings = Settings("den", RULES, Pause(12.5, stopped=True), renamed="ab", port=7)
    save(tmp_path / "settings.json", settings)
    assert load(tmp_path / "settings.json") == settings


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b'{"name": 1}', b'{"name": "x", "lending": {"battery_percent": 700}}',
        b'{"name": "x", "lending": {"hours": [{"days": [9]}]}}', b'{"name": "\xff"}',
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    with pytest.raises(Damaged) as raised:
        load(path)
    assert raised.value.reason.code == "settings_damaged"


async def test_a_change_leaves_what_only_this_start_was_told(tmp_path: Path) -> None:
    """`node --lend 2GiB` holds for this run; `lend --idle 1m` is kept, and does not keep the 2 GiB."""
    path = tmp_path / "settings.json"
    save(path, Settings("den"))
    choices = SettingsStore(path, Settings("den", Rules(memory_bytes=2)))
    await choices.change(lambda now: msgspec.structs.replace(now, lending=replace(now.lending, idle_s=60.0)))
    assert choices.now.lending == Rules(memory_bytes=2, idle_s=60.0)
    assert load(path).lending == Rules(idle_s=60.0)


async def test_a_disk_that_takes_nothing_changes_nothing(tmp_path: Path) -> None:
    choices = SettingsStore(tmp_path / "missing" / "settings.json", Settings("den"))
    with pytest.raises(DoesNotFit):
        await choices.change(lambda now: msgspec.structs.replace(now, name="attic"))
    assert choices.now.name == "den"
