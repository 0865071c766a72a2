"""A whole update with real keys: from a server and from a stick, broken, forged, withheld, mixed, and too large."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tuf.api.exceptions import DownloadError

from app import launcher
from app.core.errors import AppError, BadInput, DoesNotFit, Refused, Unreachable
from app.machine.running_node import HomeLock
from app.machine.versions.layer_archive import Canceled
from app.machine.versions.tree_hash import tree_bytes
from app.machine.versions.version_store import DOWNLOADS, VersionStore
from app.node.updates import trust
from app.node.updates.sources import FolderSource, WebSource
from app.node.updates.updater import Build, Updater
from installers.release.__main__ import check_updates
from installers.release.keys import new_keys, new_root, today
from installers.release.repository import Repository
from scripts.setup_errors import Trouble
from tests.node.updates.files_server import FilesServer, serving
from tests.node.updates.publisher import LIBRARIES, SYSTEM, Copy, Publisher, copied, layers_of


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path / "publisher")


@pytest.fixture
def server(publisher: Publisher) -> Iterator[FilesServer]:
    with serving(publisher.place) as state:
        yield state


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "user")


@pytest.fixture
def stick(publisher: Publisher) -> FolderSource:
    publisher.publish("2.0")
    return FolderSource(publisher.place)


def refused(copy: Copy, publisher: Publisher, source: FolderSource | WebSource) -> AppError:
    """Return the error of an update, after which everything is as before."""
    before = copy.store.next_version()
    with pytest.raises(AppError) as error:
        copy.update(publisher, source)
    assert copy.store.next_version() == before
    assert not list(copy.store.folder.glob(".new-*")) if copy.store.folder.exists() else True
    return error.value


def test_an_update_brings_only_the_layers_that_changed(publisher: Publisher, server: FilesServer, copy: Copy) -> None:
    publisher.publish("2.0")
    source = WebSource(server.address)
    offer = copy.updater(publisher).find(source)
    assert offer is not None
    assert (offer.release.version, offer.is_staged) == ("2.0", False)
    assert offer.download_bytes == publisher.archive_of("app").stat().st_size
    assert copy.update(publisher, source) == "2.0"
    assert {path for path, _ in server.requests if "layers/" in path} == {
        f"targets/layers/{publisher.archive_of('app').name}"
    }
    new = copy.store.folder / "2.0"
    assert (new / "app/data.bin").read_bytes() == b"2.0" * 40_000
    assert (new / "libraries/library.py").samefile(copy.base / "libraries/library.py")
    assert os.access(new / "python/bin/python3.11", os.X_OK)
    assert not (copy.store.folder / DOWNLOADS).exists()


def test_what_is_asked_tells_nothing_of_who_asks(publisher: Publisher, server: FilesServer, copy: Copy) -> None:
    publisher.publish("2.0")
    copy.update(publisher, WebSource(server.address))
    assert {headers["User-Agent"] for headers in server.headers} == {"poolhouse"}
    assert not {"Cookie", "Authorization", "Referer"} & {name for headers in server.headers for name in headers}


def test_a_broken_download_resumes_where_it_broke(publisher: Publisher, server: FilesServer, copy: Copy) -> None:
    publisher.publish("2.0", layers=layers_of("2.0") | {"app": {"data.bin": os.urandom(300_000)}})
    whole, server.break_after = publisher.archive_of("app").stat().st_size, 100_000
    assert copy.update(publisher, WebSource(server.address)) == "2.0"
    assert [part for path, part in server.requests if "layers/" in path] == ["", "bytes=100000-"]
    assert server.sent_bytes == whole


def test_a_download_resumes_after_a_cancel_and_a_server_without_ranges_starts_anew(
    publisher: Publisher, server: FilesServer, copy: Copy
) -> None:
    publisher.publish("2.0", layers=layers_of("2.0") | {"app": {"data.bin": os.urandom(2_000_000)}})
    updater, stop = copy.updater(publisher), threading.Event()
    offer = updater.find(WebSource(server.address))
    assert offer is not None
    with pytest.raises(Canceled):
        updater.install(offer, lambda done, of: stop.set() if done else None, stop)
    (part,) = (copy.store.folder / DOWNLOADS).glob("*.part")
    assert 0 < part.stat().st_size < offer.download_bytes
    assert copy.chosen == ""
    server.without_ranges = True
    assert copy.update(publisher, WebSource(server.address)) == "2.0"


def test_a_server_that_is_gone_is_told(publisher: Publisher, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher.publish("2.0")
    with serving(publisher.place) as server:
        source = WebSource(server.address)
    assert refused(copy, publisher, source).reason.code == "updates_unreached"


def test_an_answer_that_is_an_error_is_told(publisher: Publisher, server: FilesServer, copy: Copy) -> None:
    server.status = 503
    assert refused(copy, publisher, WebSource(server.address)).reason.code == "hub_fault"


def test_only_https_is_taken(publisher: Publisher) -> None:
    with pytest.raises(BadInput) as error:
        WebSource("http://updates.example.org/poolhouse")
    assert error.value.reason.code == "update_address"


def test_a_stick_works_without_a_network(publisher: Publisher, copy: Copy, tmp_path: Path) -> None:
    publisher.publish("2.0")
    stick = tmp_path / "stick"
    copied(publisher, stick / "poolhouse-updates")
    assert copy.update(publisher, FolderSource(stick)) == "2.0"
    with pytest.raises(BadInput) as error:
        FolderSource(tmp_path / "elsewhere")
    assert error.value.reason.code == "update_no_folder"


def test_another_key_is_refused(publisher: Publisher, copy: Copy, tmp_path: Path) -> None:
    stranger = Publisher(tmp_path / "stranger")
    stranger.publish("2.0")
    error = refused(copy, publisher, FolderSource(stranger.place))
    assert error.reason.code == "update_wrong_key"
    assert str(stranger.place) in str(error.reason.facts)


def test_expired_information_is_refused(tmp_path: Path, copy: Copy) -> None:
    old = Publisher(tmp_path / "old", today() - timedelta(days=31))
    old.publish("2.0")
    assert refused(copy, old, FolderSource(old.place)).reason.code == "update_expired"
    Repository(old.place, old.keys).renew()
    assert copy.update(old, FolderSource(old.place)) == "2.0"


def test_an_older_stick_cannot_hide_what_was_seen(publisher: Publisher, copy: Copy, tmp_path: Path) -> None:
    publisher.publish("2.0")
    old = copied(publisher, tmp_path / "old")
    publisher.publish("3.0")
    offer = copy.updater(publisher).find(FolderSource(publisher.place))
    assert offer is not None
    assert refused(copy, publisher, FolderSource(old)).reason.code == "update_older"


def test_files_of_two_states_do_not_mix(publisher: Publisher, copy: Copy, tmp_path: Path) -> None:
    publisher.publish("2.0")
    old = copied(publisher, tmp_path / "old")
    publisher.publish("3.0")
    mixed = copied(publisher, tmp_path / "mixed")
    newest = max((mixed / "metadata").glob("*.targets.json"), key=lambda path: int(path.name.partition(".")[0]))
    before = max((old / "metadata").glob("*.targets.json"), key=lambda path: int(path.name.partition(".")[0]))
    shutil.copyfile(before, newest)
    assert refused(copy, publisher, FolderSource(mixed)).reason.code == "update_mixed"


def test_a_changed_archive_is_deleted(publisher: Publisher, copy: Copy) -> None:
    publisher.publish("2.0")
    archive = publisher.archive_of("app")
    data = bytearray(archive.read_bytes())
    data[100] ^= 1
    archive.write_bytes(data)
    assert refused(copy, publisher, FolderSource(publisher.place)).reason.code == "update_other_bytes"
    assert not list((copy.store.folder / DOWNLOADS).iterdir())


def test_a_longer_archive_is_not_even_written(publisher: Publisher, server: FilesServer, copy: Copy) -> None:
    publisher.publish("2.0")
    archive = publisher.archive_of("app")
    length = archive.stat().st_size
    archive.write_bytes(archive.read_bytes() + bytes(1_000_000))
    assert refused(copy, publisher, WebSource(server.address)).reason.code == "update_other_bytes"
    assert all(path.stat().st_size <= length for path in (copy.store.folder / DOWNLOADS).iterdir())


def test_a_missing_file_is_told(publisher: Publisher, copy: Copy) -> None:
    publisher.publish("2.0")
    publisher.archive_of("app").unlink()
    assert refused(copy, publisher, FolderSource(publisher.place)).reason.code == "update_file_missing"


def test_another_system_is_told(publisher: Publisher, copy: Copy) -> None:
    publisher.publish("2.0")
    with pytest.raises(Refused) as error:
        copy.updater(publisher).find(FolderSource(publisher.place), system="plan9-z80")
    assert error.value.reason.code == "update_none_for"


@pytest.mark.parametrize(("version", "code"), [("0.9", "update_downgrade"), ("1.0", "update_same")])
def test_an_older_and_the_same_version_are_refused(publisher: Publisher, copy: Copy, version: str, code: str) -> None:
    publisher.publish(version)
    assert refused(copy, publisher, FolderSource(publisher.place)).reason.code == code


def test_a_damaged_layer_of_the_copy_is_fetched(publisher: Publisher, copy: Copy, stick: FolderSource) -> None:
    (copy.base / "libraries/library.py").write_bytes(b"damaged")
    assert copy.update(publisher, stick) == "2.0"
    assert (copy.store.folder / "2.0/libraries/library.py").read_bytes() == LIBRARIES["library.py"]


def test_new_keys_are_learned_from_the_old_ones(publisher: Publisher, copy: Copy, tmp_path: Path) -> None:
    publisher.publish("2.0")
    keys = new_keys(tmp_path / "new keys", 3)
    root = new_root(keys, 2, today(), publisher.root, publisher.keys.roots)
    publisher.keys = keys
    publisher.repository.renew(root)
    publisher.publish("3.0")
    assert copy.update(publisher, FolderSource(publisher.place)) == "3.0"


def test_a_root_that_the_old_keys_did_not_sign_is_refused(publisher: Publisher, copy: Copy, tmp_path: Path) -> None:
    publisher.publish("2.0")
    keys = new_keys(tmp_path / "new keys", 3)
    forged = new_root(keys, 2, today())
    forged.signed.version = 2
    forged.signatures.clear()
    for signer in keys.roots:
        forged.sign(signer, append=True)
    publisher.repository.add_root(forged)
    assert refused(copy, publisher, FolderSource(publisher.place)).reason.code == "update_wrong_key"


def test_a_full_disk_is_told_before_anything_is_fetched(
    publisher: Publisher, server: FilesServer, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.publish("2.0")
    usage = shutil.disk_usage(copy.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    error = refused(copy, publisher, WebSource(server.address))
    assert isinstance(error, DoesNotFit)
    assert error.reason.code == "update_no_space"
    assert not [path for path, _ in server.requests if "layers/" in path]


def test_what_has_arrived_needs_no_space_again(
    publisher: Publisher, copy: Copy, stick: FolderSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed_bytes: list[int] = []
    require = VersionStore.require_space

    def note(store: VersionStore, n_bytes: int) -> None:
        needed_bytes.append(n_bytes)
        require(store, n_bytes)

    monkeypatch.setattr(VersionStore, "require_space", note)
    archive = publisher.archive_of("app")
    downloads = copy.store.folder / DOWNLOADS
    downloads.mkdir(parents=True)
    unpacked = tree_bytes(publisher.folder / "made/2.0/app")
    part = downloads / f"{archive.name.partition('.')[0]}.part"
    part.write_bytes(archive.read_bytes()[:100])
    copy.update(publisher, stick)
    assert needed_bytes[0] == unpacked + archive.stat().st_size - 100


def test_two_updates_at_once_are_refused(publisher: Publisher, copy: Copy, stick: FolderSource) -> None:
    with copy.store.locked():
        assert refused(copy, publisher, stick).reason.code == "update_busy"


def test_a_copy_without_keys_and_a_packaged_one_say_so(publisher: Publisher, copy: Copy, stick: FolderSource) -> None:
    without = Updater(Build(), copy.store, copy.folder, "1.0")
    obstacle = without.obstacle()
    assert obstacle is not None
    assert obstacle.reason.code == "update_no_keys"
    packaged = Updater(publisher.build, None, copy.folder, "1.0")
    offer = packaged.find(stick)
    assert offer is not None
    with pytest.raises(Refused) as error:
        packaged.install(offer)
    assert error.value.reason.code == "update_from_source"


KILLED = """
import os, sys
from pathlib import Path
from app.machine.versions import version_store
from app.machine.versions.version_store import NewLayer, VersionStore
place = VersionStore._place_layer
def killed(self, layer, part, stop):
    place(self, layer, part, stop)
    if layer.name == "python":
        os.kill(os.getpid(), 9)
VersionStore._place_layer = killed
from app.node.updates.sources import FolderSource
from app.node.updates.updater import Build, Updater
store = VersionStore(Path(sys.argv[1]), Path(sys.argv[2]))
updater = Updater(Build(Path(sys.argv[3]).read_bytes()), store, Path(sys.argv[1]), "1.0")
updater.install(updater.find(FolderSource(Path(sys.argv[4]))))
"""


def test_a_killed_installation_leaves_the_old_version_and_can_be_repeated(
    publisher: Publisher, copy: Copy, tmp_path: Path
) -> None:
    publisher.publish("2.0")
    root = tmp_path / "root.json"
    root.write_bytes(publisher.root.to_bytes())
    words = [str(copy.store.folder), str(copy.base), str(root), str(publisher.place)]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], check=False)
    assert done.returncode == -9
    assert list(copy.store.folder.glob(".new-*"))
    assert copy.chosen == ""
    assert copy.update(publisher, FolderSource(publisher.place)) == "2.0"
    assert not list(copy.store.folder.glob(".new-*"))


def test_going_back_and_forth(publisher: Publisher, copy: Copy, stick: FolderSource) -> None:
    assert copy.update(publisher, stick) == "2.0"
    publisher.publish("3.0")
    assert copy.update(publisher, FolderSource(publisher.place)) == "3.0"
    updater = copy.updater(publisher, "3.0")
    assert updater.roll_back() == "2.0"
    assert updater.roll_back() == "1.0"
    with pytest.raises(Refused) as error:
        updater.roll_back()
    assert error.value.reason.code == "update_no_previous"
    assert copy.update(publisher, FolderSource(publisher.place)) == "3.0"


def test_going_back_after_a_version_that_did_not_start(publisher: Publisher, copy: Copy, stick: FolderSource) -> None:
    assert copy.update(publisher, stick) == "2.0"
    publisher.publish("3.0")
    assert copy.update(publisher, FolderSource(publisher.place)) == "3.0"
    marks = copy.store.folder / launcher.MARKS
    marks.mkdir(exist_ok=True)
    (marks / "3.0.failed").write_text("{}")
    assert copy.store.next_version() == "2.0"
    assert copy.store.previous_version() == "1.0"
    assert copy.updater(publisher, "2.0").roll_back() == "1.0"


def test_going_back_to_a_version_that_could_not_read_the_data_is_refused(publisher: Publisher, copy: Copy) -> None:
    publisher.publish("2.0", data_format=2)
    assert copy.update(publisher, FolderSource(publisher.place)) == "2.0"
    with pytest.raises(Refused) as error:
        copy.updater(publisher, "2.0").roll_back()
    assert error.value.reason.code == "update_data_newer"
    assert error.value.reason.facts == {"version": "1.0", "own": "2.0"}
    assert copy.store.next_version() == "2.0"
    publisher.publish("3.0", data_format=2)
    assert copy.update(publisher, FolderSource(publisher.place)) == "3.0"
    assert copy.updater(publisher, "3.0").roll_back() == "2.0"


def test_a_copy_with_other_layers_gets_those_of_the_new_version(
    publisher: Publisher, server: FilesServer, copy: Copy
) -> None:
    """One layer has become two: both are fetched, and an unchanged one is not."""
    before = layers_of("2.0")
    (large, *rest) = before["libraries"].items()
    publisher.publish("2.0", layers={**before, "libraries": dict(rest), "qt": dict([large])})
    source = WebSource(server.address)
    offer = copy.updater(publisher).find(source)
    assert offer is not None
    fetched = [publisher.archive_of(name).stat().st_size for name in ("libraries", "qt", "app")]
    assert offer.download_bytes == sum(fetched)
    assert copy.update(publisher, source) == "2.0"
    assert server.sent_bytes == sum(fetched)
    made = copy.store.folder / "2.0"
    assert {path.name for path in made.iterdir() if path.is_dir()} == {"python", "libraries", "qt", "app"}
    assert (made / "qt" / large[0]).read_bytes() == large[1]
    assert not (made / "libraries" / large[0]).exists()


def test_only_the_last_two_versions_stay(publisher: Publisher, copy: Copy) -> None:
    for version in ("2.0", "3.0", "4.0"):
        publisher.publish(version)
        copy.update(publisher, FolderSource(publisher.place))
    assert copy.store.versions() == ["3.0", "4.0"]


def test_the_repository_keeps_no_file_that_nothing_names(publisher: Publisher) -> None:
    for number in range(2, 9):
        publisher.publish(f"{number}.0")
    publisher.repository.withdraw(SYSTEM, "8.0")
    releases = publisher.repository.channel(SYSTEM).releases
    assert [release.version for release in releases] == ["7.0", "6.0", "5.0", "4.0"]
    layers = publisher.place / "targets/layers"
    assert len(list(layers.iterdir())) == 2 + 7  # computers may be reading them
    publisher.now += timedelta(days=31)
    publisher.repository.withdraw(SYSTEM, "7.0")
    assert len(list(layers.iterdir())) == 2 + 4
    newest = json.loads((publisher.place / "metadata/timestamp.json").read_bytes())
    assert newest["signed"]["version"] == 10


@pytest.mark.parametrize(("version", "percent"), [("2.0", 150), ("2.0", -1), ("1.2rc1", 100)])
def test_a_list_that_no_computer_reads_is_not_signed(publisher: Publisher, version: str, percent: int) -> None:
    with pytest.raises(Trouble):
        publisher.publish(version, rollout=percent)
    assert not publisher.repository.channel(SYSTEM).releases


def test_an_archive_that_computers_refuse_is_not_signed(publisher: Publisher) -> None:
    with pytest.raises(Trouble, match="would refuse"):
        publisher.publish("2.0", layers=layers_of("2.0") | {"app": {"ä.txt": b"x"}})
    assert not publisher.repository.channel(SYSTEM).releases


def test_a_build_without_the_keys_of_the_repository_is_not_published(publisher: Publisher, tmp_path: Path) -> None:
    updates = tmp_path / "updates"
    updates.mkdir()
    root, address = updates / "root.json", updates / "address.txt"
    with pytest.raises(Trouble, match="needs"):
        check_updates(updates, publisher.place)
    root.write_bytes(publisher.root.to_bytes())
    address.write_text("http://updates.example.org")
    with pytest.raises(Trouble, match="https"):
        check_updates(updates, publisher.place)
    address.write_text("https://updates.example.org\n")
    check_updates(updates, publisher.place)
    root.write_bytes(new_root(new_keys(tmp_path / "other keys", 3), 2, today()).to_bytes())
    with pytest.raises(Trouble, match="other keys"):
        check_updates(updates, publisher.place)


@pytest.mark.parametrize("slow", ["metadata/", "targets/"])
def test_what_drips_before_a_download_ends_in_time(
    publisher: Publisher, copy: Copy, stick: FolderSource, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    read = stick.read

    def drip(path: str, start: int = 0) -> tuple[int, Generator[bytes, None, None]]:
        begins, chunks = read(path, start)
        if not path.startswith(slow):
            return begins, chunks
        data = b"".join(chunks)

        def bytes_slowly() -> Generator[bytes, None, None]:
            for number in range(len(data)):
                time.sleep(0.02)
                yield data[number : number + 1]

        return begins, bytes_slowly()

    monkeypatch.setattr(stick, "read", drip)
    monkeypatch.setattr(trust, "READ_SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(Unreachable):
        copy.updater(publisher).find(stick)
    monkeypatch.setattr(trust, "READ_SECONDS", 60.0)
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(Unreachable):
        copy.updater(publisher).find(stick, stop=stop)
    assert time.monotonic() - begun < 10


def test_a_server_that_begins_anew_and_breaks_at_varying_points_is_given_up(
    publisher: Publisher, copy: Copy, stick: FolderSource
) -> None:
    starts = []

    class Broken:
        name = stick.name

        def read(self, path: str, start: int = 0) -> tuple[int, Generator[bytes, None, None]]:
            if "layers/" not in path:
                return stick.read(path, start)
            starts.append(start)
            if len(starts) > 50:
                raise AssertionError("it fetches for ever")

            def some() -> Generator[bytes, None, None]:
                yield bytes(900 if len(starts) % 2 else 800)
                raise DownloadError("cut")

            return 0, some()

    publisher.publish("3.0", layers=layers_of("3.0") | {"app": {"data.bin": os.urandom(300_000)}})
    offer = copy.updater(publisher).find(Broken())
    assert offer is not None
    target = max(map(offer.repository.target, [layer.target for layer in offer.release.layers]), key=lambda t: t.length)
    with pytest.raises(Unreachable):
        offer.repository.download(target, copy.store.folder / "part", waits=(0.001,) * 5)
    assert len(starts) < 10


def test_two_processes_read_metadata_one_after_the_other(publisher: Publisher, copy: Copy, stick: FolderSource) -> None:
    lock = HomeLock(copy.store.folder / "metadata.lock")
    copy.store.folder.mkdir(exist_ok=True)
    assert lock.acquire()
    held = threading.Event()

    def release() -> None:
        held.set()
        lock.release()

    threading.Timer(0.4, release).start()
    assert copy.updater(publisher).find(stick) is not None
    assert held.is_set()
