"""A version whose files a running process needs stays, whoever installs what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import launcher
from app.machine.versions.version_lock import hold, is_held
from app.node.updates.sources import FolderSource
from tests.node.updates.publisher import Copy, Publisher

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a file lock")


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path / "publisher")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "user")


def update(publisher: Publisher, copy: Copy, version: str) -> None:
    publisher.publish(version)
    copy.update(publisher, FolderSource(publisher.place))


def test_a_version_stays_for_as_long_as_it_runs(publisher: Publisher, copy: Copy) -> None:
    update(publisher, copy, "2.0")
    held = hold(str(copy.store.folder), "2.0")
    assert held is not None
    update(publisher, copy, "3.0")
    update(publisher, copy, "4.0")
    assert copy.store.versions() == ["2.0", "3.0", "4.0"]
    os.close(held)
    update(publisher, copy, "5.0")
    assert copy.store.versions() == ["4.0", "5.0"]


def test_a_running_version_is_not_replaced_by_itself(publisher: Publisher, copy: Copy) -> None:
    update(publisher, copy, "2.0")
    file = copy.store.folder / "2.0/app/data.bin"
    before = file.stat().st_ino
    held = hold(str(copy.store.folder), "2.0")
    assert held is not None
    with copy.store.locked():
        assert copy.store.roll_back() == "1.0"
    copy.update(publisher, FolderSource(publisher.place))
    os.close(held)
    assert copy.chosen == "2.0"
    assert file.stat().st_ino == before


def test_the_program_holds_its_version(copy: Copy) -> None:
    from app import __version__

    place = copy.store.folder / __version__
    place.mkdir(parents=True)
    (place / launcher.MANIFEST).write_text("{}")
    assert not is_held(place)
    program = """
import runpy, sys
import app.cli
app.cli.main = lambda: print("runs", flush=True) or len(sys.stdin.read())
runpy.run_module("app", run_name="__main__")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, launcher.FOLDER: str(copy.store.folder)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    assert is_held(place)
    process.communicate(timeout=30)
    assert not is_held(place)


def test_the_version_before_is_one_that_has_started(publisher: Publisher, copy: Copy) -> None:
    update(publisher, copy, "2.0")
    update(publisher, copy, "3.0")
    publisher.publish("4.0")  # 3.0 never started, and its successor is installed at once
    updater = copy.updater(publisher, "2.0")
    offer = updater.find(FolderSource(publisher.place))
    assert offer is not None
    updater.install(offer)
    assert copy.store.current().previous == "2.0"


def test_after_a_failed_start_going_back_means_one_further(publisher: Publisher, copy: Copy) -> None:
    update(publisher, copy, "2.0")
    update(publisher, copy, "3.0")
    launcher.give_up(copy.store.folder / launcher.MARKS, "3.0", "ended", 1)
    assert copy.store.next_version() == "2.0"
    assert copy.store.previous_version() == "1.0"
    with copy.store.locked():
        assert copy.store.roll_back() == "1.0"


def test_failed_versions_are_sorted_by_number(copy: Copy) -> None:
    marks = copy.store.folder / launcher.MARKS
    marks.mkdir(parents=True)
    for version in ("0.1.10", "0.1.9"):
        launcher.give_up(marks, version, "ended", 1)
    assert list(copy.store.failures()) == ["0.1.9", "0.1.10"]
