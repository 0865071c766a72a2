"""Nothing of Poolhouse stays, and nothing of anybody else goes. UX.md P6."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import Refused
from app.machine import paths, settings, uninstall
from app.machine.installation import MANIFEST
from app.machine.keyring_store import KeyringStore
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.running_node import HomeLock
from app.machine.settings import ModelsChoice
from app.machine.uninstall import SECRETS, erase
from app.machine.versions.version_lock import hold
from app.node import start


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home with the files of a node and a window, and its keys in files."""
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    made = Home.at(tmp_path / "den").create()
    for name in (
        "identity/identity.pem", "identity/passphrase", "identity.old-1a2b/identity.pem",
        "household/log", "models/one.gguf", "stages/two.gguf", "window/history.sqlite3",
        "logs/node.log", "measuring/x", "settings.json", "data_format.json", "settings.jsonabc.part", "chat-key",
        "speeds.json", "speeds.jsonabc.part", "updates.json", "tools.json", "window.lock",
    ):  # fmt: skip
        path = made.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"12345")
    return made


class Entry:
    """Starts at sign-in, until it is removed."""

    where = "somewhere"

    def __init__(self) -> None:
        self.on = True

    def is_on(self) -> bool:
        return self.on

    def write(self, command: Sequence[str]) -> None:
        self.on = True

    def remove(self) -> None:
        self.on = False


async def test_all_of_it_goes(home: Home) -> None:
    done = await erase(home)
    assert not home.root.exists()
    assert (done.n_bytes, done.left) == (17 * 5, [])  # a window's lock is not counted


async def test_what_others_put_there_stays(home: Home, tmp_path: Path) -> None:
    (home.root / "notes.txt").write_text("mine")
    elsewhere = tmp_path / "large disk"
    elsewhere.mkdir()
    (elsewhere / "model.gguf").write_text("on another disk")
    (home.models / "one.gguf").unlink()
    home.models.rmdir()
    home.models.symlink_to(elsewhere)
    await erase(home)
    assert [path.name for path in home.root.iterdir()] == ["notes.txt"]
    assert (elsewhere / "model.gguf").exists()


async def test_a_version_that_runs_stays(home: Home) -> None:
    """A node of another home may run from it."""
    place = home.root / "versions" / "2.0"
    place.mkdir(parents=True)
    (place / MANIFEST).write_text("{}")
    held = hold(str(home.root / "versions"), "2.0")
    assert held is not None
    erased = await erase(home)
    assert [reason.code for reason in erased.left] == ["erase_left"]
    assert (place / MANIFEST).is_file()
    os.close(held)
    (home.create().identity / "identity.pem").write_bytes(b"12345")
    assert not (await erase(home)).left
    assert not place.exists()


async def test_after_a_reset_all_of_it_goes_too(home: Home) -> None:
    home.identity.rename(home.root / "identity.old-1a2b3c4d")
    await erase(home)
    assert not home.root.exists()


async def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").write_text("mine")
    with pytest.raises(Refused) as caught:
        await erase(Home.at(tmp_path))
    assert caught.value.reason.code == "erase_no_home"
    assert (tmp_path / "models" / "mine.gguf").exists()


async def test_beside_a_node_that_starts_nothing_goes(home: Home) -> None:
    """The node holds the lock, and has not reported yet that it is running."""
    lock = HomeLock(home.lock_file)
    assert lock.acquire()
    with pytest.raises(Refused, match="erase_while_running"):
        await erase(home)
    assert (home.models / "one.gguf").exists()
    lock.release()
    await erase(home)
    assert not home.root.exists()


async def test_a_node_that_starts_while_all_goes_waits_and_begins_anew(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node finds the lock taken. Once it has it, nothing that it creates is deleted."""
    own = HomeLock(home.lock_file)
    takes: list[bool] = []
    delete = uninstall._delete

    def meanwhile(*arguments: Any) -> None:
        takes.append(own.acquire())
        delete(*arguments)

    monkeypatch.setattr(uninstall, "_delete", meanwhile)
    await erase(home)
    assert takes == [False]
    monkeypatch.setattr(start, "LOOK_SECONDS", 0.01)
    assert not home.root.exists()
    await start._acquire_home(home, own)
    assert home.models.is_dir()
    own.release()


async def test_keys_in_the_keyring_and_the_start_at_sign_in_go_too(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[str] = []

    async def remove(store: KeyringStore) -> None:
        gone.append(store.entry)

    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "keyring")
    monkeypatch.setattr(KeyringStore, "remove", remove)
    monkeypatch.setattr(paths, "default_root", lambda: home.root)
    entry = Entry()
    await erase(home, entry)
    assert gone == ["identity", *(f"identity {label}" for label in SECRETS)]
    assert not entry.on
    assert not home.root.exists()


async def test_another_home_s_start_at_sign_in_stays(home: Home) -> None:
    entry = Entry()
    await erase(home, entry)
    assert entry.on


async def test_a_locked_keyring_is_told_and_the_files_go(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async def locked(_: KeyringStore) -> None:
        raise Refused("identity_locked")

    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "keyring")
    monkeypatch.setattr(KeyringStore, "remove", locked)
    done = await erase(home)
    assert [reason.code for reason in done.left] == ["erase_keyring"]
    assert not home.root.exists()


async def test_what_cannot_be_deleted_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("app.machine.uninstall.shutil.rmtree", refused)
    done = await asyncio.wait_for(erase(home), 10)
    assert {reason.code for reason in done.left} == {"erase_left"}
    assert str(home.models) in {reason.facts["path"] for reason in done.left}
    assert not home.settings_file.exists()


async def test_models_in_a_chosen_folder_go_and_a_stranger_s_files_stay(home: Home, tmp_path: Path) -> None:
    disk, away, taken = tmp_path / "disk", tmp_path / "away", tmp_path / "taken"
    folders = ModelsFolders(home.downloaded)
    folders.claim(disk, "a" * 32)
    folders.claim(taken, "b" * 32)
    ours = (f"{'ab' * 32}.gguf", f"{'0' * 16}.part", f"{'cd' * 32}.gguf.moving")
    for name in (*ours, "holiday.mp4", "model.gguf"):
        (disk / name).write_bytes(b"12345")
        (taken / name).write_bytes(b"12345")
    choice = ModelsChoice(str(disk), (str(away), str(taken)), "a" * 32)
    settings.save(home.settings_file, settings.Settings("den", models=choice))
    done = await erase(home)
    assert {path.name for path in disk.iterdir()} == {"holiday.mp4", "model.gguf"}
    assert len(list(taken.iterdir())) == 6  # another Poolhouse's
    assert {reason.code for reason in done.left} == {"erase_away"}
    assert {reason.facts["folder"] for reason in done.left} == {str(away), str(taken)}
    assert not home.root.exists()


async def test_a_chosen_folder_that_holds_only_models_goes_whole(home: Home, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    ModelsFolders(home.downloaded).claim(disk, "a" * 32)
    (disk / ("ab" * 32)).mkdir()
    (disk / ("ab" * 32) / "model-00001-of-00002.gguf").write_bytes(b"12345")
    choice = ModelsChoice(str(disk), (), "a" * 32)
    settings.save(home.settings_file, settings.Settings("den", models=choice))
    done = await erase(home)
    assert done.left == []
    assert not disk.exists()


async def test_models_in_a_chosen_folder_stay_if_that_is_asked_for(home: Home, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    ModelsFolders(home.downloaded).claim(disk, "a" * 32)
    settings.save(home.settings_file, settings.Settings("den", models=ModelsChoice(str(disk), (), "a" * 32)))
    model = disk / f"{'a' * 64}.gguf"
    model.write_bytes(b"12345")
    before = sorted(disk.iterdir())
    erased = await erase(home, keep_other_folders=True)
    assert erased.left == []
    assert sorted(disk.iterdir()) == before
    assert not home.root.exists()


PLACED = re.compile(r"\b(?:home|home\.root|self\.root|self\._home\.root|launcher\.home) / (?:\"([^\"]+)\"|(FILE)\b)")
CONSTANT = re.compile(r"^FILE = \"([^\"]+)\"", re.MULTILINE)
USERS_HOME = ("autostart.py", "launcher.py", "other_apps.py", "owner_programs.py")  # `home` is not a home of ours there


def test_everything_that_is_put_into_a_home_is_deleted() -> None:
    app = Path(uninstall.__file__).parents[1]
    placed = set[str]()
    for file in app.rglob("*.py"):
        if file.name not in USERS_HOME:
            source = file.read_text("utf-8")
            constant = CONSTANT.search(source)
            names = {name or (constant[1] if constant else "") for name, _ in PLACED.findall(source)}
            placed |= names - {""}  # a constant that is a path begins with the name of a folder listed elsewhere
    assert {"engines", "tools.json", "cards.json"} <= placed  # the pattern still finds them
    assert placed - {*uninstall.NAMES, "node.lock", uninstall.WINDOW_LOCK} == set()


def test_files_that_could_not_be_read_are_deleted_too(home: Home) -> None:
    (home.root / "cards.damaged").write_text("{")
    (home.root / "holiday.damaged").write_text("not ours")
    asyncio.run(erase(home))
    assert [path.name for path in home.root.iterdir()] == ["holiday.damaged"]
