"""Another folder for models: chosen, moved to, unplugged, come back; nothing is lost on the way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from app.catalog.transfers.move_model import COMING, move_path
from app.core.errors import Busy, DoesNotFit, Refused, Unreachable
from app.machine import settings
from app.machine.models_folders import MARKER, NAME
from app.node.downloads.models_folder import ModelsFolder
from tests.catalog.hub_server import HubServer
from tests.node.folder_place import Computer, running

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.downloads.models_folder.LOOK_SECONDS", 0.02)
    monkeypatch.setattr("app.node.downloads.models_folder.IN_USE_LOOK_SECONDS", 0.02)


@pytest.fixture
async def computer(server: HubServer, tmp_path: Path) -> AsyncGenerator[Computer, None]:
    settings.save(tmp_path / "settings.json", settings.Settings("den"))
    (tmp_path / "disk").mkdir()
    async with running(Computer(server, tmp_path)) as up:
        yield up


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A second disk."""
    return tmp_path / "disk"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def put(old: Path, new: Path) -> None:
    """The disk is unplugged, or plugged in again."""
    old.rename(new)


def anew(*_: int) -> None:
    raise AssertionError("it was hashed once more")


async def downloaded(computer: Computer) -> Path:
    """A model that is whole, where it was put."""
    key = (await computer.place.start()).id
    assert (await computer.place.ended(key)).state == "done"
    return computer.entry_path


async def test_models_go_along_and_are_whole_there(computer: Computer, disk: Path) -> None:
    old = await downloaded(computer)
    data = old.read_bytes()
    seen = await computer.folder.preview(str(disk))
    assert (seen.folder, seen.models, seen.bytes) == (str(disk), 1, len(data))
    assert seen.fits
    assert not names(disk)  # a look makes nothing
    await computer.folder.choose(str(disk), move=True)
    result = await computer.rested()
    assert (result.folder, result.default, result.stopped) == (str(disk), False, None)
    assert computer.entry_path == disk / old.name
    assert computer.entry_path.read_bytes() == data
    assert not old.exists()
    computer.place.shelf.verify(computer.place.shelf.get("Tiny-Q4_K_M"), anew)
    assert computer.place.downloads.downloaded_hash(computer.entry_path) == computer.place.server.sha256


async def test_a_choice_waits_until_the_last_move_is_taken_up(
    server: HubServer, tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the move of the last start and the new one would move the same files at once."""
    settings.save(tmp_path / "settings.json", settings.Settings("den"))
    begins, mended = list[str](), threading.Event()
    begin = ModelsFolder._begin

    def count(folder: ModelsFolder, moving: str) -> None:
        begins.append(moving)
        begin(folder, moving)

    monkeypatch.setattr(ModelsFolder, "_begin", count)
    monkeypatch.setattr(ModelsFolder, "_repair_shelf", lambda _: mended.wait(20))
    await asyncio.to_thread(disk.mkdir)
    async with running(Computer(server, tmp_path)) as computer, asyncio.TaskGroup() as group:
        group.create_task(computer.folder.choose(str(disk), move=True))
        await asyncio.sleep(0.05)  # time enough to begin too early
        early = list(begins)
        mended.set()
    assert (early, begins) == ([], ["all"])


async def test_models_may_stay_and_are_used_where_they_are(computer: Computer, disk: Path) -> None:
    old = await downloaded(computer)
    await computer.folder.choose(str(disk), move=False)
    result = await computer.until(lambda now: bool(now.elsewhere) and not now.move)
    assert computer.entry_path == old
    assert result.elsewhere[0].models == 1
    assert computer.place.downloads.downloaded_hash(old)
    await computer.folder.move()
    await computer.rested()
    assert computer.entry_path == disk / old.name
    await computer.folder.choose("", move=True)
    result = await computer.rested()
    assert (result.default, computer.entry_path) == (True, old)
    assert names(disk) == []  # it is given up, and there as it was found
    assert computer.choices.now.models.former == ()


async def test_a_disk_that_fills_up_costs_nothing(computer: Computer, disk: Path) -> None:
    old = await downloaded(computer)
    data = old.read_bytes()
    computer.disk.full_after = 1
    await computer.folder.choose(str(disk), move=True)
    result = await computer.until(lambda now: bool(now.stopped))
    assert "full" in (result.stopped or "")
    assert (computer.entry_path, old.read_bytes()) == (old, data)
    computer.disk.full_after = None
    await computer.folder.move()
    result = await computer.rested()
    assert result.stopped is None
    assert computer.entry_path.read_bytes() == data
    assert names(disk) == sorted([MARKER, old.name])


async def test_too_little_room_is_said_before_anything_changes(
    computer: Computer, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await downloaded(computer)
    monkeypatch.setattr("app.node.downloads.models_folder.same_disk", lambda *_: False)
    computer.disk.free = 1000
    seen = await computer.folder.preview(str(disk))
    assert (seen.fits, seen.room_bytes) == (False, 0)
    assert (await computer.folder.state()).room_bytes == 0
    with pytest.raises(DoesNotFit) as caught:
        await computer.folder.choose(str(disk), move=True)
    assert caught.value.reason.code == "models_move_no_room"
    assert (computer.folder.snapshot().default, computer.entry_path) == (True, old)
    assert not names(disk)


async def test_stopped_it_leaves_the_model_where_it_was_and_no_half_copy(
    computer: Computer, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await downloaded(computer)
    entry = computer.place.shelf.get("Tiny-Q4_K_M")
    computer.in_use.append(entry.model.id)
    await computer.folder.choose(str(disk), move=True)
    result = await computer.until(lambda now: bool(now.move and now.move.waits))
    assert result.move is not None
    assert "Tiny-Q4_K_M is loaded" in (result.move.waits or "")
    with pytest.raises(Busy):
        await computer.folder.choose("", move=False)
    (disk / (old.name + COMING)).write_bytes(b"half")
    await computer.folder.stop()
    assert computer.folder.snapshot().move is None
    assert (computer.entry_path, old.exists()) == (old, True)
    assert names(disk) == [MARKER]
    await computer.folder.move()
    computer.in_use.clear()  # unloaded
    await computer.rested()
    assert computer.entry_path == disk / old.name


async def test_the_same_bytes_elsewhere_do_not_hide_that_a_file_is_in_use(
    computer: Computer, disk: Path, tmp_path: Path
) -> None:
    old = await downloaded(computer)
    (tmp_path / "copy.gguf").write_bytes(old.read_bytes())
    entry = computer.place.shelf.get("Tiny-Q4_K_M")
    computer.place.shelf.import_file(tmp_path / "copy.gguf", name="A-copy")  # the first by name
    computer.in_use.append(entry.model.id)
    await computer.folder.choose(str(disk), move=True)
    await computer.until(lambda now: bool(now.move and now.move.waits))
    assert old.name in names(old.parent)
    computer.in_use.clear()
    await computer.rested()
    assert old.name in names(disk)


async def test_a_model_that_is_deleted_on_its_way_leaves_no_copy(
    computer: Computer, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await downloaded(computer)

    def carry_and_delete(source: Path, folder: Path, *rest: Any) -> None:
        move_path(source, folder, *rest)
        computer.place.shelf.remove("Tiny-Q4_K_M")

    monkeypatch.setattr("app.node.downloads.models_folder.move_path", carry_and_delete)
    await computer.folder.choose(str(disk), move=True)
    result = await computer.rested()
    assert result.stopped is None
    assert names(disk) == [MARKER]
    assert old.name not in names(old.parent)


async def test_a_move_goes_on_after_a_restart(computer: Computer, disk: Path, tmp_path: Path) -> None:
    old = await downloaded(computer)
    entry = computer.place.shelf.get("Tiny-Q4_K_M")
    computer.in_use.append(entry.model.id)
    await computer.folder.choose(str(disk), move=True)
    await computer.until(lambda now: bool(now.move and now.move.waits))
    again = Computer(computer.place.server, tmp_path)
    assert again.choices.now.models.moving == "all"
    async with running(again):
        await again.until(lambda now: again.entry_path == disk / old.name and not now.move)
    assert settings.load(tmp_path / "settings.json").models.moving == ""


async def test_a_break_between_the_file_and_the_shelf_is_mended(computer: Computer, disk: Path, tmp_path: Path) -> None:
    old = await downloaded(computer)
    await computer.folder.choose(str(disk), move=False)
    await computer.rested()
    old.rename(disk / old.name)  # renamed, and then the power went
    async with running(Computer(computer.place.server, tmp_path)) as again:
        await again.until(lambda _: again.entry_path == disk / old.name)


async def test_a_disk_that_is_unplugged_takes_nothing_with_it(computer: Computer, disk: Path, tmp_path: Path) -> None:
    await computer.folder.choose(str(disk), move=False)
    await computer.rested()
    whole = await downloaded(computer)
    assert whole.parent == disk
    seen = computer.place.shelf.changes
    put(disk, tmp_path / "in the drawer")
    result = await computer.until(lambda now: bool(now.reason))
    assert "cannot be reached" in (result.reason or "")
    assert computer.place.shelf.changes > seen
    entry = computer.place.shelf.get("Tiny-Q4_K_M")
    with pytest.raises(Unreachable) as caught:
        computer.place.shelf.verify(entry)
    assert caught.value.reason.code == "model_away"
    with pytest.raises(Unreachable) as caught:
        computer.place.shelf.header(entry)  # for a measurement
    assert caught.value.reason.code == "model_away"
    key = (await computer.place.start(name="other", file="other.gguf")).id
    assert (await computer.place.ended(key)).code == "models_folder_away"
    assert disk.name not in names(tmp_path)
    put(tmp_path / "in the drawer", disk)
    await computer.until(lambda now: not now.reason)
    computer.place.shelf.verify(entry)
    tried = await computer.place.until(key, lambda item: item.code != "models_folder_away")
    assert tried.state != "paused"  # it went on by itself


async def test_a_download_whose_disk_is_away_waits_for_it_or_for_a_person(
    computer: Computer, disk: Path, tmp_path: Path
) -> None:
    """Another folder is no reason to begin it there: what came of it lies on the disk that is away."""
    other = tmp_path / "other disk"
    other.mkdir()
    await computer.folder.choose(str(disk), move=False)
    await computer.rested()
    put(disk, tmp_path / "in the drawer")
    await computer.until(lambda now: bool(now.reason))
    key = (await computer.place.start()).id
    assert (await computer.place.ended(key)).code == "models_folder_away"
    await computer.folder.choose(str(other), move=False)
    await computer.rested()
    count = len(computer.place.server.ranges)
    await asyncio.sleep(0.1)
    item = computer.place.downloads.described(key)
    assert (item.state, item.code) == ("failed", "models_folder_away")
    assert len(computer.place.server.ranges) == count
    put(tmp_path / "in the drawer", disk)
    assert (await computer.place.ended(key)).state == "failed"
    done = await computer.place.until(key, lambda item: item.state == "done")
    assert done.reason is None


async def test_an_unfinished_download_comes_along(computer: Computer, disk: Path) -> None:
    faults = computer.place.server.faults
    faults.hold, faults.bytes_at_once = asyncio.Event(), 1 << 20
    key = (await computer.place.start()).id
    await computer.place.until(key, lambda item: item.done_bytes >= 1 << 20)
    await computer.folder.choose(str(disk), move=False)
    faults.hold = None
    await computer.rested()
    done = await computer.place.ended(key)
    assert (done.state, computer.entry_path.parent) == ("done", disk)
    assert computer.place.server.ranges[-1] != "bytes=0-"  # it went on, and did not begin again
    assert not list(computer.place.files.glob("*.part"))


async def test_where_there_was_no_room_the_new_folder_helps(computer: Computer, disk: Path) -> None:
    computer.place.disk.free = 1000
    key = (await computer.place.start()).id
    failed = await computer.place.ended(key)
    assert (failed.state, failed.code) == ("failed", "download_no_room")
    computer.place.disk.free = 1 << 50
    await computer.folder.choose(str(disk), move=False)
    done = await computer.place.until(key, lambda item: item.state == "done")
    assert done.reason is None
    assert computer.entry_path.parent == disk


async def test_two_homes_on_one_disk_have_two_folders(
    computer: Computer, disk: Path, server: HubServer, tmp_path: Path
) -> None:
    (disk / "photo.jpg").write_bytes(b"x")
    await computer.folder.choose(str(disk), move=False)
    (tmp_path / "other").mkdir()
    settings.save(tmp_path / "other" / "settings.json", settings.Settings("attic"))
    async with running(Computer(server, tmp_path / "other")) as other:
        result = await other.folder.choose(str(disk), move=False)
        assert result.folder == str(disk / f"{NAME} 2")
        await other.rested()
        with pytest.raises(Refused):
            await other.folder.choose(str(disk / NAME), move=False)


async def test_a_disk_that_hangs_is_away_and_blocks_nobody(
    computer: Computer, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await computer.folder.choose(str(disk), move=False)
    await computer.rested()
    monkeypatch.setattr("app.node.downloads.models_folder.HANGS_SECONDS", 0.02)
    answer = asyncio.Event()
    loop = asyncio.get_running_loop()
    look = computer.folders.check_reachable

    def hangs(folder: Path) -> Any:
        if folder == disk:
            asyncio.run_coroutine_threadsafe(answer.wait(), loop).result()
        return look(folder)

    monkeypatch.setattr(computer.folders, "check_reachable", hangs)
    result = await computer.until(lambda now: bool(now.reason))
    assert "cannot be reached" in (result.reason or "")
    answer.set()
    await computer.until(lambda now: not now.reason)


async def test_a_look_that_came_back_is_over_although_its_thread_lives_on(
    computer: Computer, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens on a busy computer: a move would skip a folder that is thought to be away."""
    await computer.folder.choose(str(disk), move=False)
    await computer.rested()
    over = threading.Event()

    class Lingers(threading.Thread):
        def run(self) -> None:
            super().run()
            over.wait()

    monkeypatch.setattr("app.node.downloads.models_folder.threading.Thread", Lingers)
    try:
        for _ in range(2):
            await computer.folder._look()
            assert not computer.folders.unreachable
    finally:
        over.set()
