"""Tests of which folder a person means, whose it is, and whether it exists."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import BadInput, DoesNotFit, Refused, Unreachable
from app.core.reasons import said
from app.machine.models_folders import MARKER, NAME, ModelsFolders
from app.machine.settings import ModelsChoice

MINE, OTHERS = "a" * 32, "b" * 32


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    (made / "models" / "files").mkdir(parents=True)
    return made


@pytest.fixture
def folders(root: Path) -> ModelsFolders:
    return ModelsFolders(root / "models" / "files", ModelsChoice(owner=MINE))


def test_an_empty_folder_is_taken_itself_and_any_other_gets_one_of_ours(
    folders: ModelsFolders, root: Path, tmp_path: Path
) -> None:
    empty, disk = tmp_path / "empty", tmp_path / "disk"
    empty.mkdir()
    disk.mkdir()
    (disk / "holidays.jpg").write_bytes(b"x")
    assert folders.resolve_choice(str(empty), root) == empty
    assert folders.resolve_choice(str(tmp_path / "new"), root, new=True) == tmp_path / "new"
    assert folders.resolve_choice(str(disk), root) == disk / NAME
    folders.claim(disk / NAME, MINE)
    assert folders.resolve_choice(str(disk), root) == folders.resolve_choice(str(disk / NAME), root) == disk / NAME
    assert folders.resolve_choice("", root) == folders.resolve_choice(str(folders.own), root) == folders.own


def test_two_homes_never_share_a_folder(folders: ModelsFolders, root: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / NAME).mkdir(parents=True)
    folders.claim(disk / NAME, OTHERS)
    assert folders.resolve_choice(str(disk), root) == disk / f"{NAME} 2"
    with pytest.raises(Refused) as caught:
        folders.resolve_choice(str(disk / NAME), root)
    assert caught.value.reason.code == "models_folder_taken"
    with pytest.raises(Refused):
        folders.claim(disk / NAME, MINE)  # both asked at once
    (disk / NAME / MARKER).write_bytes(b"\0 damaged")
    with pytest.raises(Refused):
        ModelsFolders(folders.own).resolve_choice(str(disk / NAME), root)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("models here", "models_folder_odd"),
        ("~nobody-of-this-name/models", "models_folder_odd"),
        ("{root}", "models_folder_inside"),
        ("{root}/stages", "models_folder_inside"),
        ("{root}/../nothing/there", "models_folder_none"),
        ("{root}/../mistyped", "models_folder_none"),
        ("{root}/../file", "models_folder_file"),
        ("/tmp/a\0b", "models_folder_unusable"),
    ],
)
def test_what_cannot_be_chosen_is_a_sentence(folders: ModelsFolders, root: Path, path: str, code: str) -> None:
    (root.parent / "file").write_bytes(b"x")
    with pytest.raises((BadInput, Refused)) as caught:
        folders.resolve_choice(path.format(root=root), root)
    assert caught.value.reason.code == code


def test_of_a_folder_that_cannot_be_made_the_missing_one_is_named(
    folders: ModelsFolders, root: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as caught:
        folders.resolve_choice(str(tmp_path / "disk" / "large" / "models"), root, new=True)
    assert caught.value.reason.facts == {"folder": str(tmp_path / "disk")}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who may write everywhere")
def test_a_folder_without_the_right_to_write(folders: ModelsFolders, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(BadInput) as caught:
        folders.claim(closed, MINE)
    assert caught.value.reason.code == "models_folder_unusable"


def test_a_folder_that_cannot_be_made_or_written(folders: ModelsFolders, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(BadInput) as caught:
        folders.claim(tmp_path / "file" / "inside", MINE)
    assert caught.value.reason.code == "models_folder_unusable"
    folders.claim(tmp_path / "mine", MINE)
    (tmp_path / "mine" / f"{MARKER}.part").mkdir()  # in the way of the trial
    with pytest.raises(BadInput):
        folders.claim(tmp_path / "mine", MINE)


def test_a_disk_that_is_away_gets_no_folder_in_its_place(root: Path, tmp_path: Path) -> None:
    disk = tmp_path / "mnt" / "models"
    disk.mkdir(parents=True)
    folders = ModelsFolders(root / "models" / "files", ModelsChoice(str(disk), (), MINE))
    folders.claim(disk, MINE)
    assert folders.check_reachable(disk) is None
    folders.ensure(disk)
    (disk / MARKER).rename(tmp_path / "aside")  # only the empty place is left
    for _ in range(2):
        why = folders.check_reachable(disk)
        assert why is not None
        assert why.code == "models_folder_away"
        with pytest.raises(Unreachable):
            folders.ensure(disk)
        if disk.exists():
            disk.rmdir()
    assert not disk.exists()
    disk.mkdir()
    ModelsFolders(root, ModelsChoice(owner=OTHERS)).claim(disk, OTHERS)
    why = folders.check_reachable(disk)
    assert why is not None
    assert why.code == "models_folder_other"


def test_a_former_folder_is_given_up_once_it_is_empty(folders: ModelsFolders, tmp_path: Path) -> None:
    old = tmp_path / "old"
    folders.claim(old, MINE)
    (old / "notes.txt").write_text("mine")
    assert not folders.release(old)
    (old / "notes.txt").unlink()
    assert folders.release(old)
    assert not old.exists()
    old.mkdir()  # by a person: it was there before
    folders.claim(old, MINE)
    assert folders.release(old)
    assert list(old.iterdir()) == []
    assert not folders.release(folders.own)
    assert folders.own.is_dir()


def test_a_full_disk_is_said_and_takes_no_half_a_marker(
    folders: ModelsFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a marker would be that of another Poolhouse, once there is room again."""
    folders.claim(mine := tmp_path / "mine", MINE)

    opened = Path.open

    def full(path: Path, mode: str = "r", *more: Any, **value: Any) -> Any:
        file = opened(path, mode, *more, **value)
        if mode[0] in "wx":  # it is made, and takes nothing
            file.close()
            raise OSError(errno.ENOSPC, "No space left on device")
        return file

    disk = tmp_path / "disk"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        for folder in (disk, mine):
            with pytest.raises(DoesNotFit, match="disk_full") as caught:
                folders.claim(folder, MINE)
            assert said(caught.value).endswith("Free some space and try again.")
    assert [path.name for path in mine.iterdir()] == [MARKER]
    folders.claim(disk, MINE)
    assert [path.name for path in disk.iterdir()] == [MARKER]
