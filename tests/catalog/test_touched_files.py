"""Model files whose time changed: hashed again once for each change, with its progress, and never for nothing."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.catalog.files import OnBytes
from app.catalog.gguf.gguf_file import Header
from app.catalog.shelf import Entry, Shelf, model_hashes
from app.core.errors import Damaged, DoesNotFit
from tests.catalog.conftest import Home


def counted(home: Home, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are hashed from now on."""
    hashed: list[str] = []

    def hashes(header: Header, paths: Sequence[Path], tell: OnBytes, *, whole: bool) -> Any:
        hashed.append(paths[0].stem)
        return model_hashes(header, paths, tell, whole=whole)

    monkeypatch.setattr("app.catalog.shelf.model_hashes", hashes)
    return hashed


def touched(entry: Entry) -> None:
    """Its bytes, its size and its time stay; only that something changed is seen. Not on Windows."""
    before = os.stat(entry.path)
    while os.stat(entry.path).st_ctime_ns == before.st_ctime_ns:
        os.utime(entry.path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.skipif(os.name == "nt", reason="Windows tells of no change that sets the time back")
def test_a_file_whose_rights_changed_is_hashed_once_for_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = home.add("m", layers=2)
    home.shelf.save_known_answer(entry, (((1, 0.5),),))
    hashed = counted(home, monkeypatch)
    for times in (1, 2):
        touched(entry)
        reports: list[tuple[int, int]] = []
        again = home.shelf.verify(entry, lambda done, total: reports.append((done, total)))  # noqa: B023
        assert reports[-1][0] == reports[-1][1] > 0, "its progress was shown"
        assert home.shelf.verify(entry) == again, "by who still has what was known before, too"
        assert Shelf(home.folder / "models", home.folder / "guide.gguf", home.stages).verify(entry) == again
        assert len(hashed) == times
        assert again.proof == (((1, 0.5),),), "it is the same model, and says the same"


@pytest.mark.skipif(os.name == "nt", reason="Windows tells of no change that sets the time back")
def test_an_entry_of_an_older_app_learns_when_its_file_changed_last(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = home.add("m", layers=2)
    old = dataclasses.replace(entry, ctime_ns=0)
    home.shelf._write(old)
    hashed = counted(home, monkeypatch)
    assert home.shelf.verify(old) == entry == home.shelf.get("m")
    assert not hashed
    before = os.stat(entry.path)
    data = bytearray(Path(entry.path).read_bytes())
    data[-1] ^= 1
    Path(entry.path).write_bytes(data)
    os.utime(entry.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    for known in (old, entry):
        with pytest.raises(Damaged):
            home.shelf.verify(known)
    assert len(hashed) == 1, "it is not read again to say the same"


def test_two_that_ask_at_once_hash_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = home.add("m", layers=2)
    os.utime(entry.path, ns=(5, 5))
    hashed = counted(home, monkeypatch)
    begun, go_on = threading.Event(), threading.Event()

    def first(_done: int, _total: int) -> None:
        begun.set()
        assert go_on.wait(10)

    def second(done: int, _total: int) -> None:
        assert not done
        go_on.set()

    with ThreadPoolExecutor(2) as pool:
        future = pool.submit(home.shelf.verify, entry, first)
        assert begun.wait(10)
        other = pool.submit(home.shelf.verify, entry, second)
        assert future.result(10) == other.result(10)
    assert len(hashed) == 1


def test_what_a_full_disk_does_not_keep_is_hashed_once_and_no_reason_to_refuse(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = home.add("m", layers=2)

    def full(path: Path, data: bytes) -> None:
        raise DoesNotFit("disk_full", folder=str(path.parent), needed_bytes=len(data), free_bytes=0)

    hashed = counted(home, monkeypatch)
    monkeypatch.setattr("app.catalog.shelf.write_whole", full)
    os.utime(entry.path, ns=(5, 5))
    assert home.shelf.verify(entry).mtime_ns == 5
    assert home.shelf.verify(entry).mtime_ns == 5
    assert len(hashed) == 1


def test_a_model_that_is_removed_while_it_is_hashed_stays_away(home: Home) -> None:
    entry = home.add("m", layers=2)
    os.utime(entry.path, ns=(5, 5))

    def away(_done: int, _total: int) -> None:
        if home.shelf.entries():
            home.shelf.remove("m")

    home.shelf.verify(entry, away)
    assert not home.shelf.entries()
