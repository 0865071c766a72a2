"""A model in several files is one download: one progress, paused, resumed, verified and deleted together."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from app.catalog.model_catalog import Catalog, OfferedPart
from app.catalog.transfers.download_records import joint_hash
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES
from app.core.errors import DoesNotFit
from testbed import tiny
from tests.catalog.hub_server import HubServer
from tests.catalog.test_parts import in_parts
from tests.node.download_place import Place, catalog_of, running

NAMES = [f"sub/big-Q8_0-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
FIRST = 2 << 20  # bytes of each file that come before the store holds the rest back


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """One model in three files."""
    folder = tmp_path_factory.mktemp("parts")
    single = tiny.llama(folder / "one.gguf", layers=4, width=256, ffn=1024)
    return [part.read_bytes() for part in in_parts(single, folder)]


@pytest.fixture
def hub(server: HubServer, parts: list[bytes]) -> HubServer:
    server.others = dict(zip(NAMES, parts, strict=True))
    return server


def hold_back(hub: HubServer) -> None:
    """The store sends the small first file, and of each other one some of it."""
    hub.faults.hold, hub.faults.bytes_at_once = asyncio.Event(), FIRST


def let_go(hub: HubServer) -> None:
    assert hub.faults.hold is not None
    hub.faults.hold.set()


def joint(parts: list[bytes]) -> str | None:
    return joint_hash(hashlib.sha256(part).hexdigest() for part in parts)


async def test_it_is_one_download_and_one_model(hub: HubServer, place: Place, parts: list[bytes]) -> None:
    begun = await place.start(file=NAMES[1])  # any of them means all
    assert (begun.file, begun.parts, begun.name) == (NAMES[0], 3, "big-Q8_0")
    done = await place.ended(begun.id)
    assert (done.state, done.model, done.reason) == ("done", "big-Q8_0", None)
    assert done.done_bytes == done.total_bytes == sum(map(len, parts))
    assert (done.sha256, done.hash_from) == (joint(parts), "server")
    entry = place.shelf.get("big-Q8_0")
    assert Path(entry.path).parent == place.files / str(joint(parts))
    assert place.downloads.downloaded_hash(Path(entry.path)) == joint(parts)
    assert place.shelf.verify(entry) == entry
    assert not list(place.files.glob("*.parts"))
    assert (await place.start(file=NAMES[0])).state == "done"
    assert len(hub.ranges) == 3


async def test_the_size_of_all_is_known_before_the_first_byte(hub: HubServer, place: Place, parts: list[bytes]) -> None:
    hold_back(hub)
    key = (await place.start(file=NAMES[0])).id
    now = await place.until(key, lambda item: item.state == "running")
    assert now.total_bytes == sum(map(len, parts))
    assert now.done_bytes <= len(parts[0])
    let_go(hub)
    await place.ended(key)


async def test_paused_in_the_second_file_it_goes_on_there_after_a_restart(
    hub: HubServer, tmp_path: Path, parts: list[bytes]
) -> None:
    hold_back(hub)
    async with running(Place(hub, tmp_path)) as before:
        key = (await before.start(file=NAMES[0])).id
        await before.until(key, lambda item: item.done_bytes >= FIRST // 2)
        paused = await before.downloads.pause(key)
        there = before.files / f"{key}.parts"
        assert paused.state == "paused"
        assert paused.done_bytes == sum(path.stat().st_size for path in there.iterdir())
        count = len(hub.ranges)
    hub.faults.hold = None
    async with running(Place(hub, tmp_path)) as after:
        await after.news.wait()
        assert after.downloads.described(key).done_bytes == paused.done_bytes
        await after.downloads.resume(key)
        assert (await after.ended(key)).state == "done"
        assert len(hub.ranges) == count + 2  # the rest of the second, and the third
        assert hub.ranges[count] == f"bytes={paused.done_bytes - len(parts[0])}-"


async def test_one_wrong_file_keeps_the_model_off_the_shelf(hub: HubServer, place: Place, parts: list[bytes]) -> None:
    other = bytearray(parts[2])
    other[-1] ^= 1
    hold_back(hub)
    key = (await place.start(file=NAMES[0])).id
    await place.until(key, lambda item: item.done_bytes >= FIRST // 2)  # all was promised
    hub.others[NAMES[2]] = bytes(other)
    let_go(hub)
    failed = await place.ended(key)
    assert failed.code in ("download_damaged", "download_other_file")
    assert NAMES[2] in (failed.reason or "")
    assert not place.shelf.entries()
    hub.others[NAMES[2]] = parts[2]
    count = len(hub.ranges)
    await place.downloads.resume(key)
    assert (await place.ended(key)).state == "done"
    assert len(hub.ranges) == count + 1  # the others were whole, and stayed


async def test_cancelling_deletes_all_of_it(hub: HubServer, place: Place) -> None:
    hold_back(hub)
    key = (await place.start(file=NAMES[0])).id
    before = await place.until(key, lambda item: item.done_bytes >= FIRST // 2)
    removed = await place.downloads.remove(key)
    assert removed.freed_bytes >= before.done_bytes
    assert not list(place.files.iterdir())


async def test_leaving_the_shelf_deletes_every_file(hub: HubServer, place: Place, parts: list[bytes]) -> None:
    await place.ended((await place.start(file=NAMES[0])).id)
    path = Path(place.shelf.get("big").path)
    place.shelf.remove("big-Q8_0")
    assert await place.downloads.forget(path) == sum(map(len, parts))
    assert not list(place.files.iterdir())


async def test_a_file_that_is_missing_is_said(hub: HubServer, place: Place) -> None:
    del hub.others[NAMES[1]]
    failed = await place.ended((await place.start(file=NAMES[0])).id)
    assert failed.code == "hub_file_unknown"
    assert NAMES[1] in (failed.reason or "")


async def test_the_catalogs_word_counts_for_each_file(hub: HubServer, tmp_path: Path, parts: list[bytes]) -> None:
    known = catalog_of(hub, None)
    offer = known.models[0]
    promised = [OfferedPart(len(part), hashlib.sha256(part).hexdigest()) for part in parts]
    catalog = _with_parts(known, promised)
    assert catalog.has(str(joint(parts)))
    async with running(Place(hub, tmp_path / "a", catalog)) as place:
        place.disk.free = LEFT_FREE_BYTES + sum(map(len, parts)) - 1
        with pytest.raises(DoesNotFit):
            await place.start(file=NAMES[0])
        place.disk.free += 1
        done = await place.ended((await place.start(file=NAMES[0])).id)
        assert (done.state, done.hash_from) == ("done", "catalog")
    wrong = _with_parts(known, [*promised[:2], OfferedPart(len(parts[2]), "0" * 64)])
    async with running(Place(hub, tmp_path / "b", wrong)) as place:
        failed = await place.ended((await place.start(file=NAMES[0])).id)
        assert failed.code == "download_other_file"
    assert offer.files[0].parts == ()


def _with_parts(known: Catalog, promised: list[OfferedPart]) -> Catalog:
    from msgspec import structs

    offer = known.models[0]
    file = structs.replace(
        offer.files[0], file=NAMES[0], parts=tuple(promised), size_bytes=sum(p.size_bytes or 0 for p in promised),
    )  # fmt: skip
    return structs.replace(known, models=(structs.replace(offer, files=(file,)),))
