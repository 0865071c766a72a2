"""A model that goes to another disk: whole there, or untouched here."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from app.catalog.files import CHUNK_BYTES, Disk
from app.catalog.transfers.move_model import COMING, move_path, sweep_unfinished
from app.core.errors import AppError, BadInput, Damaged, DoesNotFit

DATA = bytes(range(256)) * 4096 * 3  # three chunks
NAME = "ab" * 32 + ".gguf"


class OtherDisk(Disk):
    """No rename reaches it; it may break after so many writes, or write something else."""

    def __init__(self, breaks_after: int | None = None, damages: bool = False) -> None:
        self.breaks_after, self.damages, self.written = breaks_after, damages, 0
        self.code = errno.ENOSPC

    def rename(self, source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "another disk")

    def write(self, file: BinaryIO, data: memoryview) -> None:
        if self.breaks_after == 0:
            raise OSError(self.code, os.strerror(self.code))
        if self.breaks_after is not None:
            self.breaks_after -= 1
        self.written += len(data)
        super().write(file, memoryview(bytes(len(data))) if self.damages else data)


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """The file, and the folder that it goes to."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    file = tmp_path / "old" / NAME
    file.write_bytes(DATA)
    return file, tmp_path / "new"


def nothing(_: int) -> None:
    """Nobody looks at the progress."""


def test_on_the_same_disk_it_is_renamed(both: tuple[Path, Path]) -> None:
    file, folder = both
    inode = file.stat().st_ino
    move_path(file, folder, Disk(), nothing)
    assert (folder / NAME).stat().st_ino == inode
    assert not file.exists()


def test_between_disks_every_byte_is_read_back(both: tuple[Path, Path]) -> None:
    file, folder = both
    values = list[int]()
    move_path(file, folder, OtherDisk(), values.append)
    assert (folder / NAME).read_bytes() == file.read_bytes() == DATA
    assert (folder / NAME).stat().st_mtime_ns == file.stat().st_mtime_ns
    assert sum(values) == 2 * len(DATA)
    assert [path.name for path in folder.iterdir()] == [NAME]


def test_a_folder_of_files_goes_whole(tmp_path: Path) -> None:
    old, new = tmp_path / ("cd" * 32), tmp_path / "new"
    old.mkdir()
    new.mkdir()
    for number in (1, 2):
        (old / f"model-0000{number}-of-00002.gguf").write_bytes(DATA[: number * 1000])
    move_path(old, new, OtherDisk(), nothing)
    there = sorted((new / old.name).iterdir())
    assert [path.read_bytes() for path in there] == [DATA[:1000], DATA[:2000]]
    assert [path.name for path in new.iterdir()] == [old.name]


@pytest.mark.parametrize(
    ("code", "kind", "reason"), [(errno.ENOSPC, DoesNotFit, "disk_full"), (errno.EIO, BadInput, "models_move_failed")]
)
def test_it_goes_on_where_it_broke(both: tuple[Path, Path], code: int, kind: type[AppError], reason: str) -> None:
    file, folder = both
    disk = OtherDisk(breaks_after=2)
    disk.code = code
    with pytest.raises(kind) as caught:
        move_path(file, folder, disk, nothing)
    assert caught.value.reason.code == reason
    assert file.read_bytes() == DATA
    assert not (folder / NAME).exists()
    again = OtherDisk()
    move_path(file, folder, again, nothing)
    assert again.written == len(DATA) - 2 * CHUNK_BYTES
    assert (folder / NAME).read_bytes() == DATA


def test_what_an_earlier_try_left_is_not_believed(both: tuple[Path, Path]) -> None:
    file, folder = both
    (folder / (NAME + COMING)).write_bytes(b"x" * 1000)
    disk = OtherDisk()
    move_path(file, folder, disk, nothing)
    assert (folder / NAME).read_bytes() == DATA
    (folder / NAME).write_bytes(b"y" * len(DATA))  # damaged since, and nothing was deleted here
    move_path(file, folder, disk, nothing)
    assert (folder / NAME).read_bytes() == DATA
    before = disk.written
    move_path(file, folder, disk, nothing)  # whole on both sides: it broke off just before the end
    assert disk.written == before


def test_a_disk_that_keeps_something_else_is_told(both: tuple[Path, Path]) -> None:
    file, folder = both
    with pytest.raises(Damaged) as caught:
        move_path(file, folder, OtherDisk(damages=True), nothing)
    assert caught.value.reason.code == "models_move_damaged"
    assert file.read_bytes() == DATA
    assert not list(folder.iterdir())


def test_only_our_half_copies_are_swept(tmp_path: Path) -> None:
    for name in (NAME + COMING, f"holidays{COMING}", NAME):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / ("cd" * 32 + COMING)).mkdir()
    sweep_unfinished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"holidays{COMING}", NAME}
