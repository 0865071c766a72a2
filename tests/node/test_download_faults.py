"""Downloads where the disk, a hand or an old record fails: what is said stays what is true."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.catalog.shelf import Shelf
from app.catalog.transfers.download_records import DownloadRecords, Record
from app.core.errors import AppError, BadInput
from app.machine.models_folders import ModelsFolders
from app.node.downloads.download_ledger import DownloadLedger
from tests.node.download_place import Place, Roomy

RECORD = Record(
    id="0" * 16, repository="a/b", file="c.gguf", revision="main", name="c", source="hub",
    started=1.0,
)  # fmt: skip


def refuse(_book: DownloadRecords, _record: Record) -> None:
    raise BadInput("disk_failed", folder="x", why="y")


@pytest.mark.parametrize(("code", "facts"), [("of_another_app", {}), ("hub_slow", {}), ("disk_full", {"folder": 1})])
def test_an_error_without_a_sentence_is_forgotten(tmp_path: Path, code: str, facts: dict[str, Any]) -> None:
    book = DownloadRecords(ModelsFolders(tmp_path))
    failed = msgspec.structs.replace(RECORD, standing="failed", code=code, facts=facts)
    book.write(failed)
    assert list(book.all()) == [msgspec.structs.replace(failed, code=None, facts={})]
    sayable = msgspec.structs.replace(failed, code="hub_slow", facts={"source": "x"})
    book.write(sayable)
    assert list(book.all()) == [sayable]


def test_a_record_with_the_earlier_spelling_is_read(tmp_path: Path) -> None:
    book = DownloadRecords(ModelsFolders(tmp_path))
    record = msgspec.structs.replace(RECORD, hash_from="catalog")
    book.write(record)
    (path,) = tmp_path.rglob(f"{record.id}.json")
    path.write_bytes(path.read_bytes().replace(b'"catalog"', b'"catalogue"'))
    assert list(book.all()) == [record]


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadInput) as caught:
        DownloadRecords(ModelsFolders(tmp_path / "file" / "files")).write(RECORD)
    assert caught.value.reason.code == "disk_failed"


async def test_what_the_disk_did_not_take_is_not_on_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = DownloadLedger(ModelsFolders(tmp_path), Roomy())
    with monkeypatch.context() as patch:
        patch.setattr(DownloadRecords, "write", refuse)
        with pytest.raises(AppError):
            await ledger.add(RECORD)
    assert RECORD.id not in ledger
    await ledger.add(RECORD)
    with monkeypatch.context() as patch:
        patch.setattr(DownloadRecords, "write", refuse)
        with pytest.raises(AppError):
            await ledger.change(RECORD.id, standing="paused")
    assert ledger[RECORD.id] == RECORD


async def test_one_that_is_checked_needs_no_more_room(tmp_path: Path) -> None:
    disk = Roomy()
    ledger = DownloadLedger(ModelsFolders(tmp_path), disk)
    await ledger.add(msgspec.structs.replace(RECORD, total_bytes=1000))
    other = msgspec.structs.replace(RECORD, id="f" * 16)
    assert ledger.room_bytes(other) == disk.free - 1000
    ledger.live(RECORD.id).checking(1000)
    ledger.live(RECORD.id).checked(1, 1000)
    assert ledger.room_bytes(other) == disk.free


@pytest.mark.parametrize("error", [BadInput("disk_failed", folder="x", why="y"), OSError(5, "no")])
async def test_an_error_is_shown_though_the_disk_does_not_keep_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    write = DownloadRecords.write

    def failing(book: DownloadRecords, record: Record) -> None:
        if record.standing == "failed":
            raise error
        write(book, record)

    monkeypatch.setattr(DownloadRecords, "write", failing)
    place.server.faults.gated = True
    key = (await place.start()).id
    assert (await place.ended(key)).code == "hub_token_needed"
    place.server.faults.gated = False
    await place.downloads.resume(key)  # the node's downloads have not ended of it
    assert (await place.ended(key)).state == "done"


async def test_a_resume_that_is_not_kept_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.server.faults.hold = asyncio.Event()
    key = (await place.start()).id
    await place.until(key, lambda item: item.state == "running")
    await place.downloads.pause(key)
    with monkeypatch.context() as patch:
        patch.setattr(DownloadRecords, "write", refuse)
        with pytest.raises(BadInput):
            await place.downloads.resume(key)
    assert place.downloads.described(key).state == "paused"
    place.server.faults.hold = None
    await place.downloads.resume(key)
    assert (await place.ended(key)).state == "done"


def slow_check(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The last check goes on, and tells so, until it is stopped or what is returned is called."""
    end, check = threading.Event(), Shelf.import_file

    def slow(shelf: Shelf, path: Path, progress: Any, **more: Any) -> Any:
        while not end.is_set():
            progress(1, 2)
            time.sleep(0.01)
        return check(shelf, path, progress, **more)

    monkeypatch.setattr(Shelf, "import_file", slow)
    return end.set


async def test_a_pause_that_nobody_waits_for_leaves_it_paused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    end = slow_check(monkeypatch)
    key = (await place.start()).id
    await place.until(key, lambda item: item.state == "checking")
    async with asyncio.TaskGroup() as group:
        request = group.create_task(place.downloads.pause(key))
        for _ in range(3):  # until it waits for the check to end
            await asyncio.sleep(0)
        request.cancel()
    assert place.downloads.described(key).state == "paused"
    end()
    await place.downloads.resume(key)
    assert (await place.ended(key)).state == "done"


async def test_cancelling_the_last_check_deletes_the_whole_file(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_check(monkeypatch)
    key = (await place.start()).id
    await place.until(key, lambda item: item.state == "checking")
    assert (await place.downloads.remove(key)).freed_bytes == len(place.server.data)
    assert not list(place.files.iterdir())


async def test_a_whole_file_that_something_uses_is_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    end = slow_check(monkeypatch)
    end()
    await place.ended((await place.start()).id)
    place.server.file = "Tiny-Q8_0.gguf"  # another name for the same bytes
    key = (await place.start(file=place.server.file)).id
    await place.ended(key)
    slow_check(monkeypatch)
    for name in ("Other-Q4_K_M.gguf", "Other-Q8_0.gguf"):
        place.server.file = name
        last = (await place.start(file=name)).id
        await place.until(last, lambda item: item.state == "checking")
        assert (await place.downloads.remove(last)).freed_bytes == 0
        for text in list(place.downloads.snapshot()):
            await place.downloads.remove(text)  # then only the shelf uses it
    assert [path.name for path in place.files.iterdir()] == [f"{place.server.sha256}.gguf"]
