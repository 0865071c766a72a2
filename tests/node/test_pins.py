"""A file whose hash nobody could look up: the first download takes the hub's word, later ones take the same bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.catalog.hub.hub_address import MAIN
from app.catalog.model_catalog import Catalog
from app.catalog.transfers.download_records import PartFacts, joint_hash
from app.catalog.transfers.hash_pins import Pin, Pins
from app.core.errors import Damaged, DoesNotFit, Reason
from app.core.reasons import said
from app.network.peer.listener import MODELS_PATH
from app.network.traffic_limits import LinkPace
from app.node.downloads.model_peers import ModelServer, PeerCopies
from app.node.downloads.model_sources import HouseholdPins
from testbed import tiny
from tests.catalog.hub_server import COMMIT, FILE, REPOSITORY, HubServer, serving
from tests.network.nodes import opened
from tests.node.download_place import Place, catalog_of, running

PIN = Pin(repository=REPOSITORY, file=FILE, revision=COMMIT, sha256="a" * 64, total_bytes=5, taken=1.0)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[HubServer, None]:
    data = tiny.llama(tmp_path / "served.gguf", layers=2).read_bytes()
    async with serving(data) as up:
        yield up


def unknown(server: HubServer) -> Catalog:
    """Its one file, of which neither hash nor size nor commit could be looked up."""
    listed = catalog_of(server, None)
    (offer,) = listed.models
    return msgspec.structs.replace(listed, models=(msgspec.structs.replace(offer, revision=MAIN),))


async def test_the_first_download_takes_the_hubs_hash_and_keeps_it(server: HubServer, tmp_path: Path) -> None:
    place = Place(server, tmp_path / "first", unknown(server))
    async with running(place):
        begun = await place.start()
        assert begun.hash_from is None
        done = await place.ended(begun.id)
    assert (done.state, done.hash_from) == ("done", "server")
    pin = place.pins.of(REPOSITORY, FILE)
    assert pin is not None
    assert (pin.sha256, pin.revision, pin.total_bytes) == (
        server.sha256, COMMIT, len(server.data),
    )  # fmt: skip


async def test_the_next_one_asks_for_the_same_bytes_from_the_same_commit(server: HubServer, tmp_path: Path) -> None:
    place = Place(server, tmp_path / "next", unknown(server))
    pin = msgspec.structs.replace(PIN, sha256=server.sha256, total_bytes=len(server.data))
    place.pins.store(pin)
    async with running(place):
        begun = await place.start()
        assert (begun.sha256, begun.hash_from) == (server.sha256, "household")
        assert (await place.ended(begun.id)).state == "done"
    assert any(COMMIT in str(request.path) for request in server.requests)
    assert place.pins.of(REPOSITORY, FILE) == pin, "the first one stays"


async def test_other_bytes_than_the_first_are_refused_in_one_sentence(server: HubServer, tmp_path: Path) -> None:
    place = Place(server, tmp_path / "other", unknown(server))
    place.pins.store(msgspec.structs.replace(PIN, total_bytes=len(server.data)))
    async with running(place):
        failed = await place.ended((await place.start()).id)
    assert failed.code == "download_other_than_first"
    why = Reason("download_other_than_first", {"file": FILE, "source": server.hub.host})
    assert failed.reason == said(why)
    assert not list(place.files.glob("*.gguf")), "nothing of it is used"


async def test_a_file_that_the_catalog_vouches_for_is_not_pinned(server: HubServer, tmp_path: Path) -> None:
    place = Place(server, tmp_path / "vouched", catalog_of(server, server.sha256))
    place.pins.store(PIN)  # of another time: the catalog's own word counts
    async with running(place):
        done = await place.ended((await place.start()).id)
    assert (done.state, done.hash_from) == ("done", "catalog")


async def test_machines_of_a_household_tell_each_other_what_they_took_first(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins.json")
    pins.store(PIN)
    choices: Any = SimpleNamespace(now=SimpleNamespace(share_models=False, name="den"))
    giving = ModelServer(
        lambda hashes: {}, choices, LinkPace(), str, lambda: None, pins.of,
    )  # fmt: skip
    async with opened(tmp_path / "lan") as nodes:
        nodes.rooms = lambda: {MODELS_PATH: giving.application()}
        _, attic = await nodes.paired("den", "attic")
        copies = PeerCopies(attic.network)
        assert await copies.pin(REPOSITORY, FILE) == PIN, "also where no models are given"
        assert await copies.pin(REPOSITORY, "Other-Q4_K_M.gguf") is None


def test_a_pin_that_does_not_hold_together_counts_for_nothing(tmp_path: Path) -> None:
    several = "Big-Q4_K_M-00001-of-00002.gguf"
    parts = (PartFacts(1, "b" * 64), PartFacts(2, "c" * 64))
    joint = joint_hash(part.sha256 for part in parts)
    assert joint is not None
    good = msgspec.structs.replace(PIN, file=several, parts=parts, sha256=joint)
    assert good.is_sound
    for odd in (
        msgspec.structs.replace(good, sha256="d" * 64),
        msgspec.structs.replace(good, parts=()),
        msgspec.structs.replace(PIN, parts=parts),
        msgspec.structs.replace(PIN, repository="../x"),
    ):
        assert not odd.is_sound
        path = tmp_path / "pins.json"
        path.write_bytes(msgspec.json.encode([odd]))
        assert Pins(path).of(odd.repository, odd.file) is None


async def test_a_damaged_list_is_told_once_ends_nothing_and_stays(tmp_path: Path) -> None:
    """One sentence names the remedy. Others in the household hear that this machine knows nothing."""
    path, messages = tmp_path / "pins.json", list[str]()
    path.write_bytes(b"[{")

    async def another(repository: str, file: str) -> Pin | None:
        return PIN if file == FILE else None

    pins = HouseholdPins(Pins(path), another, lambda why: messages.append(said(why)))
    await pins.report_damage()
    (sentence,) = messages
    assert sentence.startswith(f"{path} is damaged. ")
    assert "Restore a backup of it, or delete it" in sentence
    assert pins.own_pin(REPOSITORY, FILE) is None
    assert await pins.of(REPOSITORY, FILE) == PIN
    with pytest.raises(Damaged, match="pins_damaged"):
        await pins.of(REPOSITORY, "another.gguf")
    await pins.keep(PIN)
    assert (len(messages), path.read_bytes()) == (1, b"[{")


async def test_a_pin_that_a_full_disk_does_not_take_ends_no_download(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise DoesNotFit("disk_full", folder=str(path.parent), needed_bytes=len(data), free_bytes=0)

    monkeypatch.setattr("app.catalog.transfers.hash_pins.write_whole", full)
    place = Place(server, tmp_path / "full", unknown(server))
    async with running(place):
        assert (await place.ended((await place.start()).id)).state == "done"


async def test_damaged_pins_are_told_and_neither_passed_over_nor_written_over(
    server: HubServer, tmp_path: Path
) -> None:
    place = Place(server, tmp_path / "first", unknown(server))
    async with running(place):
        pins = place.pins
        pins.store(PIN)
        pins._path.write_bytes(damaged := pins._path.read_bytes()[:-9])
        with pytest.raises(Damaged, match="pins_damaged"):
            pins.of(REPOSITORY, FILE)
        with pytest.raises(Damaged, match="pins_damaged"):
            pins.store(msgspec.structs.replace(PIN, file="another.gguf"))
        assert pins._path.read_bytes() == damaged
