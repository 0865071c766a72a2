"""A node that systemd starts: what is written, what is read back, and what of others stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.errors import Refused
from app.machine import autostart
from app.machine.autostart import UNIT_FILE, UserUnit, unit_folder, unit_text
from app.machine.paths import Home

BY_HAND = "[Service]\nExecStart=/opt/poolhouse node --lend 4GiB\n"


def test_the_unit_goes_and_comes_and_leaves_nothing(tmp_path: Path) -> None:
    units, home = tmp_path / "systemd" / "user", Home.at(tmp_path / "home")
    entry = UserUnit(units)
    assert not autostart.state(entry).on
    assert autostart.set_enabled(True, home, entry, headless=True).on
    text = (units / UNIT_FILE).read_text()
    assert f'poolhouse" "node" "--home" "{home.root}"\n' in text
    assert (units / "default.target.wants" / UNIT_FILE).resolve() == units / UNIT_FILE
    assert autostart.set_enabled(True, home, entry, headless=True).on  # once more
    assert not autostart.set_enabled(False, home, entry).on
    assert not list(units.iterdir())
    assert not autostart.set_enabled(False, home, entry).on  # once more harms nothing


def test_a_unit_that_a_person_wrote_is_never_changed(tmp_path: Path) -> None:
    (tmp_path / UNIT_FILE).write_text(BY_HAND)
    entry, home = UserUnit(tmp_path), Home.at(tmp_path / "home")
    assert not entry.is_on()
    assert autostart.set_enabled(True, home, entry, headless=True).on
    assert not autostart.set_enabled(False, home, entry).on
    assert (tmp_path / UNIT_FILE).read_text() == BY_HAND


def test_what_others_start_stays_enabled(tmp_path: Path) -> None:
    other = tmp_path / "default.target.wants" / "backup.service"
    other.parent.mkdir()
    other.symlink_to("/etc/backup.service")
    entry = UserUnit(tmp_path)
    autostart.set_enabled(True, Home.at(tmp_path / "home"), entry, headless=True)
    autostart.set_enabled(False, Home.at(tmp_path / "home"), entry)
    assert other.is_symlink()


def test_arguments_are_taken_as_they_are() -> None:
    line = 'ExecStart="/opt/a b/50%%/poolhouse" "node" "--home" "/x/$$HOME/\\"q\\""\n'
    assert line in unit_text(["/opt/a b/50%/poolhouse", "node", "--home", '/x/$HOME/"q"'])


def test_where_units_lie() -> None:
    assert unit_folder({}, Path("/me")) == Path("/me/.config/systemd/user")
    assert unit_folder({"XDG_CONFIG_HOME": "/cfg"}, Path("/me")) == Path("/cfg/systemd/user")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_takes_it(tmp_path: Path) -> None:
    """Systemd silently ignores all units if there is no runtime folder."""
    unit, around = tmp_path / UNIT_FILE, os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    unit.write_text(unit_text([sys.executable, "node", "--home", str(tmp_path / "a b")]))
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(unit)], capture_output=True, text=True, check=False, env=around
    )
    assert (done.returncode, UNIT_FILE in done.stderr) == (0, False), done.stderr


def test_another_system_has_no_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Refused) as refused:
        autostart.user_unit()
    assert refused.value.reason.code == "autostart_no_unit"
