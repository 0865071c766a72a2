"""One directory for each node, its owner's alone, and files replaced whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from app.machine.paths import Home, default_root, expand_user, write_atomically


def test_everything_lies_below_one_directory(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "a" / "node").create()
    for path in (home.identity, home.household, home.models, home.stages, home.logs):
        assert path.is_dir()
        assert path.is_relative_to(home.root)
    for file in (home.runtime_file, home.settings_file):
        assert file.parent == home.root
        assert not file.exists()
    home.create()  # again: no harm


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_it_is_its_owners_alone(tmp_path: Path) -> None:
    loose = tmp_path / "node"
    loose.mkdir(mode=0o755)
    home = Home.at(loose).create()
    for path in (home.root, home.identity, home.household):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_default_home_is_known_as_such(tmp_path: Path) -> None:
    assert Home.at().is_default
    assert Home.at(default_root()).is_default
    assert not Home.at(tmp_path).is_default
    assert Home.at("~/x").root == Path.home().resolve() / "x"


def test_a_name_behind_a_tilde_that_nobody_has_is_a_file_s() -> None:
    """A shell leaves it as it was typed, too."""
    assert expand_user("~/x") == Path.home() / "x"
    assert expand_user("~nobody-of-this-name/x") == Path("~nobody-of-this-name/x")
    assert Home.at("~nobody-of-this-name").root.name == "~nobody-of-this-name"


def test_a_file_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"three")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"two"
