"""Downloads from the first byte to the shelf: pauses, restarts, errors, the disk, the catalog's word."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES
from app.core.errors import BadInput, DoesNotFit, Reason
from tests.catalog.hub_server import COMMIT, FILE, REPOSITORY, TOKEN, HubServer, closed_hub
from tests.node.download_place import Place, catalog_of, running
from tests.vision.tiny_models import projector, text_model

OTHER_COMMIT = "f" * 40


async def test_a_download_ends_on_the_shelf(place: Place) -> None:
    begun = await place.start()
    assert begun.state in ("waiting", "starting")
    done = await place.ended(begun.id)
    assert (done.state, done.model, done.reason) == ("done", "Tiny-Q4_K_M", None)
    assert done.done_bytes == done.total_bytes == len(place.server.data)
    assert (done.sha256, done.hash_from) == (place.server.sha256, "server")
    assert done.revision == COMMIT
    entry = place.shelf.get("Tiny-Q4_K_M")
    assert Path(entry.path) == place.files / f"{place.server.sha256}.gguf"
    assert not list(place.files.glob("*.part"))
    assert place.shelf.changes == 1


async def test_a_download_keeps_to_the_limit_of_the_network(place: Place, server: HubServer) -> None:
    """All of it is counted, and nothing more is read until that may be."""
    came, may_go_on = list[int](), asyncio.Event()

    async def arrived(n_bytes: int) -> None:
        came.append(n_bytes)
        await may_go_on.wait()

    place.downloads.arrived = arrived
    server.faults.bytes_at_once = 1 << 20
    key = (await place.start()).id
    held = await place.until(key, lambda item: item.done_bytes > 0)
    await asyncio.sleep(0.1)
    assert place.downloads.described(key).done_bytes == sum(came) == held.done_bytes
    assert held.done_bytes < (held.total_bytes or 0)
    may_go_on.set()
    assert (await place.ended(key)).state == "done"
    assert sum(came) == held.total_bytes


async def test_nothing_is_on_the_shelf_before_it_is_whole(place: Place) -> None:
    place.server.faults.hold = asyncio.Event()
    key = (await place.start()).id
    now = await place.until(key, lambda item: item.state == "running")
    assert now.done_bytes < (now.total_bytes or 0)
    assert not place.shelf.entries()
    place.server.faults.hold.set()
    assert (await place.ended(key)).state == "done"


async def test_paused_and_resumed_at_the_true_value(place: Place) -> None:
    place.server.faults.hold = asyncio.Event()
    place.server.faults.bytes_at_once = 1 << 20
    key = (await place.start()).id
    await place.until(key, lambda item: item.done_bytes >= 1 << 20)
    paused = await place.downloads.pause(key)
    part = place.files / f"{key}.part"
    assert (paused.state, paused.bytes_per_s) == ("paused", None)
    assert paused.done_bytes == part.stat().st_size
    assert (await place.downloads.pause(key)).state == "paused"
    place.server.faults.hold = None
    await place.downloads.resume(key)
    assert (await place.ended(key)).state == "done"
    assert place.server.ranges[-1] == f"bytes={paused.done_bytes}-"


async def test_a_hub_that_is_away_is_told_until_it_is_there(
    place: Place, server: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, closed = server.hub, closed_hub()
    monkeypatch.setattr(HubServer, "hub", closed)
    key = (await place.start()).id
    failed = await place.ended(key)
    assert (failed.code, failed.held_up) == ("hub_mirror_unreached", None)
    assert failed.reason == (
        f"{closed.host}, the address in HF_ENDPOINT, could not be reached after 3 tries: the connection was refused. "
        f"Check that address and the connection, then resume the download."
    )
    place.downloads._waits = (60.0,)
    await place.downloads.resume(key)
    going = await place.until(key, lambda item: item.held_up is not None)
    assert going.state == "starting"
    assert going.held_up == (
        f"{closed.host}, the address in HF_ENDPOINT, cannot be reached: the connection was refused. Check "
        "that address and the connection."
    )
    assert (await place.downloads.pause(key)).held_up is None
    monkeypatch.setattr(HubServer, "hub", there)
    await place.downloads.resume(key)
    assert (await place.ended(key)).state == "done"


async def test_of_several_files_too_it_is_told_that_the_hub_is_away(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HubServer, "hub", closed_hub())
    place.downloads._waits = (60.0,)
    key = (await place.start(file="Tiny-F16-00001-of-00002.gguf")).id
    going = await place.until(key, lambda item: item.held_up is not None)
    assert "cannot be reached: the connection was refused. Check" in (going.held_up or "")
    place.downloads._waits = ()
    await place.downloads.pause(key)
    await place.downloads.resume(key)
    assert (await place.ended(key)).code == "hub_mirror_unreached"


async def test_a_restarted_node_goes_on_by_itself(server: HubServer, tmp_path: Path) -> None:
    server.faults.hold = asyncio.Event()
    server.faults.bytes_at_once = 1 << 20
    async with running(Place(server, tmp_path)) as before:
        key = (await before.start(name="mine")).id
        await before.until(key, lambda item: item.done_bytes >= 1 << 20)
    server.faults.hold = None
    kept = (tmp_path / "models" / "files" / f"{key}.part").stat().st_size
    async with running(Place(server, tmp_path)) as after:
        await after.news.wait()
        assert (await after.ended(key)).model == "mine"
    assert server.ranges[-1] == f"bytes={kept}-"


async def test_a_paused_one_stays_paused_over_a_restart(server: HubServer, tmp_path: Path) -> None:
    server.faults.hold = asyncio.Event()
    async with running(Place(server, tmp_path)) as before:
        key = (await before.start()).id
        await before.until(key, lambda item: item.state == "running")
        kept = (await before.downloads.pause(key)).done_bytes
    async with running(Place(server, tmp_path)) as after:
        await after.news.wait()
        now = after.downloads.described(key)
        assert (now.state, now.done_bytes) == ("paused", kept)


async def test_an_old_error_goes_when_it_is_resumed(place: Place) -> None:
    place.server.faults.gated = True
    key = (await place.start()).id
    failed = await place.ended(key)
    assert failed.code == "hub_token_needed"
    assert "terms" in (failed.reason or "")
    place.token = TOKEN
    resumed = await place.downloads.resume(key)
    assert (resumed.reason, resumed.code) == (None, None)
    assert (await place.ended(key)).state == "done"


async def test_what_is_no_model_is_said_and_not_kept(place: Place) -> None:
    place.server.data = b"<html>" * 1000
    failed = await place.ended((await place.start()).id)
    assert failed.code == "gguf_not"
    assert not list(place.files.glob("*.gguf"))
    assert not place.shelf.entries()


async def test_a_wrong_hash_is_never_shelved(place: Place) -> None:
    place.server.faults.sha256 = "ab" * 32
    failed = await place.ended((await place.start()).id)
    assert failed.code == "download_damaged"
    assert "must be downloaded again from the start" in (failed.reason or "")
    assert failed.done_bytes == 0
    assert not place.shelf.entries()


async def test_cancelling_deletes_the_part(place: Place) -> None:
    place.server.faults.hold = asyncio.Event()
    place.server.faults.bytes_at_once = 1 << 20
    key = (await place.start()).id
    await place.until(key, lambda item: item.done_bytes >= 1 << 20)
    removed = await place.downloads.remove(key)
    assert removed.freed_bytes >= 1 << 20
    assert not list(place.files.iterdir())
    with pytest.raises(BadInput):
        await place.downloads.pause(key)


async def test_two_at_once_and_the_third_waits(place: Place) -> None:
    place.server.faults.hold = asyncio.Event()
    keys = []
    for number in range(3):
        place.server.file = f"Tiny-{number}-Q8_0.gguf"
        keys.append((await place.start(file=place.server.file)).id)
        if number < 2:
            await place.until(keys[-1], lambda item: item.state == "running")
    assert place.downloads.described(keys[2]).state == "waiting"
    await place.downloads.remove(keys[0])
    await place.until(keys[2], lambda item: item.state == "running")
    place.server.faults.hold.set()
    assert [(await place.ended(key)).state for key in keys[1:]] == ["done", "done"]


async def test_the_same_file_again_is_the_same_download(place: Place) -> None:
    key = (await place.start()).id
    await place.ended(key)
    again = await place.start()
    assert (again.id, again.state) == (key, "done")
    assert len(place.server.ranges) == 1


async def test_a_file_that_left_the_shelf_is_deleted_and_can_be_had_again(place: Place) -> None:
    key = (await place.start()).id
    await place.ended(key)
    path = Path(place.shelf.get("Tiny").path)
    place.shelf.remove("Tiny-Q4_K_M")
    assert await place.downloads.forget(path) == len(place.server.data)
    assert not list(place.files.glob("*.gguf"))
    assert not place.downloads.snapshot()
    assert (await place.ended((await place.start()).id)).state == "done"


def read_only(monkeypatch: pytest.MonkeyPatch, *endings: str) -> None:
    """The disk of files with these endings takes no change, whether they are there or not."""
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path.suffix in endings:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)


async def test_a_file_that_cannot_be_deleted_is_told_with_the_cause(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (await place.start()).id
    await place.ended(key)
    path = Path(place.shelf.get("Tiny-Q4_K_M").path)
    read_only(monkeypatch, ".gguf", ".part")
    with pytest.raises(BadInput) as caught:
        await place.downloads.forget(path)
    assert caught.value.reason.code == "model_file_stays"
    assert caught.value.reason.facts == {"path": str(path), "why": Reason("os_erofs")}
    assert place.downloads.described(key).state == "done"
    assert (await place.downloads.remove(key)).freed_bytes == 0  # only the line: it has no part


async def test_a_part_that_cannot_be_deleted_stays_on_the_list(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.server.faults.hold = asyncio.Event()
    place.server.faults.bytes_at_once = 1 << 20
    key = (await place.start()).id
    await place.until(key, lambda now: now.done_bytes > 0)
    with monkeypatch.context() as patch:
        read_only(patch, ".part")
        with pytest.raises(BadInput) as caught:
            await place.downloads.remove(key)
        assert caught.value.reason.code == "disk_failed"
        assert place.downloads.described(key).state == "paused"
    assert (await place.downloads.remove(key)).freed_bytes > 0


async def test_a_model_that_is_here_by_another_name_is_told_by_that_one(place: Place) -> None:
    key = (await place.start()).id
    await place.ended(key)
    path = Path(place.shelf.get("Tiny-Q4_K_M").path)
    place.shelf.remove("Tiny-Q4_K_M")
    place.shelf.import_file(path, name="another")
    assert (await place.start()).model == "another"


async def test_files_of_others_are_never_deleted(place: Place, tmp_path: Path) -> None:
    for path in (tmp_path / "x.gguf", place.files / "x.gguf", tmp_path / f"{'a' * 64}.gguf"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        assert place.downloads.downloaded_hash(path) is None
        assert await place.downloads.forget(path) == 0
        assert path.exists()


async def test_the_catalogs_word_counts(server: HubServer, tmp_path: Path) -> None:
    known = catalog_of(server, server.sha256)
    async with running(Place(server, tmp_path, known)) as place:
        done = await place.ended((await place.start()).id)
        assert (done.state, done.hash_from) == ("done", "catalog")


async def test_another_file_than_the_catalogs_can_still_be_had_by_searching(server: HubServer, tmp_path: Path) -> None:
    known = catalog_of(server, "0" * 64)
    async with running(Place(server, tmp_path, known)) as place:
        failed = await place.ended((await place.start()).id)
        assert failed.code == "download_other_file"
        again = await place.start(revision=OTHER_COMMIT)
        done = await place.ended(again.id)
        assert (done.state, done.hash_from) == ("done", "server")


async def test_what_does_not_fit_is_refused_before_it_begins(server: HubServer, tmp_path: Path) -> None:
    known = catalog_of(server, None, len(server.data))
    async with running(Place(server, tmp_path, known)) as place:
        place.disk.free = LEFT_FREE_BYTES + len(server.data) - 1
        with pytest.raises(DoesNotFit) as caught:
            await place.start()
        assert caught.value.reason.code == "download_no_room"
        assert not place.downloads.snapshot()
        place.disk.free += 1
        assert (await place.ended((await place.start()).id)).state == "done"


@pytest.mark.parametrize(
    ("repository", "file", "code"),
    [
        ("../..", FILE, "hub_name_odd"),
        (REPOSITORY, "../../../etc/passwd", "hub_name_odd"),
        (REPOSITORY, "a/../b.gguf", "hub_name_odd"),
        (REPOSITORY, "x.exe", "hub_name_odd"),
        ("a/b?c", FILE, "hub_name_odd"),
    ],
)
async def test_names_from_outside_never_become_paths(place: Place, repository: str, file: str, code: str) -> None:
    with pytest.raises(BadInput) as caught:
        await place.start(repository=repository, file=file)
    assert caught.value.reason.code == code


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"id": "zz"}', b'{"id": "\xff"}'])
async def test_a_broken_record_hides_no_other(server: HubServer, tmp_path: Path, content: bytes) -> None:
    async with running(Place(server, tmp_path)) as before:
        key = (await before.start()).id
        await before.ended(key)
    (before.files / f"{'0' * 16}.json").write_bytes(content)
    async with running(Place(server, tmp_path)) as after:
        await after.news.wait()
        assert list(after.downloads.snapshot()) == [key]


async def test_hasty_hands_leave_one_true_record(place: Place) -> None:
    """Start, pause, resume and cancel all at once: no error, and what is on the disk is what is said."""
    place.server.faults.pause_s = 0.01
    key = (await place.start()).id
    for _ in range(5):
        async with asyncio.TaskGroup() as group:
            for work in (place.downloads.pause, place.downloads.resume, place.downloads.pause):
                group.create_task(work(key))
            group.create_task(place.start())
    await place.downloads.pause(key)
    paused = await place.downloads.resume(key)
    assert paused.state in ("waiting", "starting", "running")
    assert (await place.ended(key)).state == "done"
    assert [path.name for path in place.files.glob("*.json")] == [f"{key}.json"]
    await place.downloads.remove(key)
    assert not list(place.files.glob("*.json*"))


async def test_a_projector_makes_the_model_of_its_repository_see_and_goes_with_it(
    place: Place, server: HubServer, tmp_path: Path
) -> None:
    server.data = text_model("idefics3", "llama", tmp_path / "tiny.gguf").read_bytes()
    model = (await place.ended((await place.start()).id)).model or ""
    other = place.shelf.import_file(text_model("idefics3", "llama", tmp_path / "m.gguf"), name="other")  # fits, too
    assert other.name == "other"
    server.data, server.file = projector("idefics3", 32, tmp_path / "eyes.gguf").read_bytes(), "mmproj-F16.gguf"
    done = await place.ended((await place.start(file="mmproj-F16.gguf")).id)
    assert (done.state, done.model) == ("done", model)
    assert done.done_bytes == len(server.data) != place.shelf.get(model).model.file_bytes
    entry = place.shelf.get(model)
    assert entry.model.sees
    assert not place.shelf.get("other").model.sees
    assert entry.model.projector is not None
    assert Path(entry.model.projector.path) == place.files / f"{done.sha256}.gguf"
