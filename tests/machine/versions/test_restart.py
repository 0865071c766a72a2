"""The programs that start Poolhouse again, and the note that a node is about to return."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import launcher
from app.machine.versions import restart
from app.machine.versions.restart import commands
from app.node.updates.sources import FolderSource
from tests.node.updates.publisher import Copy, Publisher, write_files

RESTARTS = """
import sys
from app.machine.versions import restart
restart.restart_at_end()
restart.restart_if_wanted(["--hidden", "--home", "x"])
print("impossible")
"""


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    publisher, made = Publisher(tmp_path / "publisher"), Copy(tmp_path / "user")
    publisher.publish("2.0")
    made.update(publisher, FolderSource(publisher.place))
    return made


def said(copy: Copy, **variables: str) -> str:
    environment = {**os.environ, launcher.FOLDER: str(copy.store.folder), launcher.BASE: str(copy.base), **variables}
    done = subprocess.run([sys.executable, "-c", RESTARTS], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(os.name != "posix", reason="the programs here are shell scripts")
def test_a_restart_finds_a_way_without_the_installed_copy(copy: Copy, tmp_path: Path) -> None:
    echo = b'#!/bin/sh\necho "$(basename "$(dirname "$(dirname "$(dirname "$0")")")") $*"\n'
    write_files(copy.base, {"app/app/launcher.py": b"", "python/bin/python3.11": echo})
    write_files(copy.store.folder / "2.0", {"python/bin/python3.11": echo})
    start = copy.base / "app/app/launcher.py"
    assert said(copy) == f"installed -P {start} --home x"
    start.unlink()
    assert said(copy) == "2.0 -P -m app --home x"
    image = tmp_path / "Poolhouse.AppImage"
    image.write_text('#!/bin/sh\necho "image $*"\n')
    image.chmod(0o755)
    assert said(copy, APPIMAGE=str(image)) == "image --home x"
    image.unlink()
    assert said(copy, APPIMAGE=str(image)) == "2.0 -P -m app --home x"
    (copy.store.folder / launcher.CURRENT).unlink()
    assert commands(copy.store, {}) == []
    assert said(copy) == "impossible"


def test_a_restart_is_expected_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "_wanted", [])
    assert not restart.is_restarting(tmp_path)
    restart.restart_at_end(tmp_path)
    assert restart.is_restarting(tmp_path)
    old = (tmp_path / restart.RESTARTING).stat().st_mtime - restart.RESTART_SECONDS
    os.utime(tmp_path / restart.RESTARTING, (old, old))
    assert not restart.is_restarting(tmp_path)
    restart.restart_at_end(tmp_path)
    restart.note_restarted(tmp_path)
    assert not restart.is_restarting(tmp_path)
