"""An imported file is known by its hash, taken in the same reading as its tensors'; touched, it is not any more."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from app.catalog.gguf.gguf_file import read_header
from app.catalog.shelf import model_hashes, no_progress
from app.catalog.transfers.download_records import joint_hash
from testbed import tiny
from tests.catalog.conftest import Home, new_home
from tests.catalog.test_parts import in_parts


def of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_both_readings_find_the_same_tensors(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "tiny.gguf")
    header, values = read_header(path), list[int]()
    plain, nothing = model_hashes(header, [path], values.append, whole=False)
    assert nothing == ""
    n_bytes = sum(values)
    values.clear()
    assert model_hashes(header, [path], values.append, whole=True) == (plain, of(path))
    assert sum(values) == n_bytes


def test_what_lies_over_another_is_read_by_itself(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "tiny.gguf")
    header = read_header(path)
    first, second = list(header.tensors)[:2]
    header.tensors[second] = header.tensors[first]
    hashes, whole = model_hashes(header, [path], lambda _: None, whole=True)
    assert hashes[first] == hashes[second]
    assert whole == of(path)


def test_of_several_files_it_is_that_of_their_hashes(tmp_path: Path) -> None:
    paths = in_parts(tiny.llama(tmp_path / "tiny.gguf"), tmp_path)
    _, whole = model_hashes(read_header(paths[0]), paths, lambda _: None, whole=True)
    assert whole == joint_hash(map(of, paths))


def test_it_is_kept_with_the_model_until_somebody_touches_the_file(home: Home) -> None:
    path = tiny.llama(home.folder / "theirs.gguf")
    entry = home.shelf.import_file(path, whole=True)
    shelf = new_home(home.folder).shelf
    assert shelf.whole_hash(shelf.get("theirs")) == of(path)
    about = path.stat()
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1_000_000_000))
    assert shelf.whole_hash(entry) is None
    again = shelf.verify(entry, no_progress)
    assert shelf.whole_hash(again) == of(path)
    path.unlink()
    assert shelf.whole_hash(again) is None


def test_who_wants_no_hash_of_the_file_has_none(home: Home) -> None:
    entry = home.shelf.import_file(tiny.llama(home.folder / "mine.gguf"))
    assert entry.sha256 == ""
    assert home.shelf.whole_hash(entry) is None
