"""Stages that are kept: found again, checked, within their limits, and none where a disk fails."""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from app.catalog.files import Disk
from app.catalog.stages import stage_store
from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import Manifest
from app.catalog.stages.stage_receiver import RESERVE_BYTES
from app.catalog.stages.stage_store import StageStore
from app.core.errors import BadInput, DoesNotFit
from app.core.reasons import said
from backends.contract import Layers, Role
from tests.catalog.conftest import LIMIT_BYTES, Home
from tests.catalog.raw import small
from tests.catalog.stage_files import expected, files, sent

PLENTY = 1 << 40


class BadDisk(Disk):
    """A disk that is full after so many bytes, or whose fsync fails."""

    def __init__(self, room: int = PLENTY, free: int = PLENTY, sync_fails: bool = False) -> None:
        self.room, self.free, self.sync_fails = room, free, sync_fails

    def free_bytes(self, folder: Path) -> int:
        return self.free

    def write(self, file: BinaryIO, data: memoryview) -> None:
        super().write(file, data[: self.room])
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self, file: BinaryIO) -> None:
        if self.sync_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_second_load_moves_nothing(cut: Cut, lender: Home) -> None:
    path = lender.stages.write_stage(cut)
    again = StageStore(lender.folder / "stages", LIMIT_BYTES)
    assert again.path(cut.manifest.id) == path
    values: list[int] = []
    assert again.write_stage(cut, values.append) == path
    assert values == []


def test_progress_adds_up(cut: Cut, lender: Home) -> None:
    values: list[int] = []
    lender.stages.write_stage(cut, values.append)
    assert sum(values) == cut.manifest.total_bytes


@pytest.mark.parametrize("percent", [0, 5, 50, 99])
def test_a_disk_that_fills_up_is_left_clean(cut: Cut, lender: Home, percent: int) -> None:
    room = cut.manifest.total_bytes * percent // 100
    store = StageStore(lender.folder / "stages", LIMIT_BYTES, BadDisk(room))
    with pytest.raises(DoesNotFit) as error:
        store.write_stage(cut)
    assert "full" in said(error.value)
    assert files(lender) == []
    assert lender.stages.write_stage(cut).read_bytes() == expected(cut)


def test_a_failing_fsync_leaves_no_stage(cut: Cut, lender: Home) -> None:
    store = StageStore(lender.folder / "stages", LIMIT_BYTES, BadDisk(sync_fails=True))
    with pytest.raises(BadInput) as error:
        store.write_stage(cut)
    assert error.value.reason.code == "disk_failed"
    assert files(lender) == []


def test_a_rename_that_fails_leaves_no_stage(cut: Cut, lender: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(manifest: Manifest) -> Path:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(lender.stages, "_install", fail)
    with pytest.raises(BadInput) as error:
        lender.stages.write_stage(cut)
    assert error.value.reason.code == "disk_failed"
    assert files(lender) == []
    lender.stages.receive(cut.manifest).close()  # and it can be tried again


def test_a_disk_too_small_is_said_before_a_byte_moves(cut: Cut, lender: Home) -> None:
    needed = cut.manifest.total_bytes + RESERVE_BYTES
    store = StageStore(lender.folder / "stages", LIMIT_BYTES, BadDisk(free=needed - 1))
    with pytest.raises(DoesNotFit) as error:
        store.receive(cut.manifest)
    assert error.value.reason.facts["needed_bytes"] == needed
    assert files(lender) == []
    store = StageStore(lender.folder / "stages", LIMIT_BYTES, BadDisk(free=needed))
    store.write_stage(cut)


def test_a_header_that_lies_is_refused_at_the_end(cut: Cut, lender: Home) -> None:
    """The hashes are right, but the header is not that of a model, or not of these pieces."""
    stranger = small().bytes()[:-224]
    for header in (b"GGUF" + bytes(100), stranger, cut.manifest.header[:-1] + b"\x01"):
        manifest: Manifest = replace(cut.manifest, header=header)
        with pytest.raises(BadInput) as error:
            lender.stages.write_stage(Cut(manifest, cut.sources))
        assert said(error.value)
        assert files(lender) == []


def test_60_flips_and_cuts_of_a_stage_are_found(cut: Cut, lender: Home) -> None:
    chance = random.Random(5)
    whole = expected(cut)
    inside = [place for piece in cut.manifest.pieces for place in (piece.offset, piece.n_bytes)]
    for turn in range(60):
        path = lender.stages.write_stage(cut)
        data = bytearray(whole)
        if turn % 3 == 0:
            del data[chance.randrange(len(data)) :]
        elif turn % 3 == 1:
            data[chance.randrange(len(cut.manifest.header))] ^= 1 << chance.randrange(8)
        else:
            at = 2 * chance.randrange(len(inside) // 2)
            data[inside[at] + chance.randrange(inside[at + 1])] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        os.utime(path, ns=(turn, turn))
        assert lender.stages.path(cut.manifest.id) is None
        assert files(lender) == []


@pytest.mark.parametrize("full", [False, True])
def test_an_untouched_stage_is_not_hashed_again(
    full: bool, cut: Cut, lender: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise DoesNotFit("disk_full", folder=str(path.parent), needed_bytes=len(data), free_bytes=0)

    path = lender.stages.write_stage(cut)
    checked: list[Path] = []
    check = lender.stages._check

    def counted(manifest: Manifest, path: Path) -> None:
        checked.append(path)
        check(manifest, path)

    monkeypatch.setattr(lender.stages, "_check", counted)
    assert lender.stages.path(cut.manifest.id) == path
    assert checked == []
    if full:
        monkeypatch.setattr(stage_store, "write_whole", refuse)
    os.utime(path, ns=(1, 1))
    assert lender.stages.path(cut.manifest.id) == path
    assert lender.stages.path(cut.manifest.id) == path
    assert checked == [path]


def test_a_flip_that_keeps_size_and_time_is_found(cut: Cut, lender: Home) -> None:
    path = lender.stages.write_stage(cut)
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert lender.stages.path(cut.manifest.id) is None
    assert lender.stages.write_stage(cut).read_bytes() == expected(cut)


def test_what_a_disk_lost_is_found_in_a_week(cut: Cut, lender: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e9]
    store = StageStore(lender.folder / "stages", LIMIT_BYTES, clock=lambda: now[0])
    store.write_stage(cut)
    checked: list[Path] = []
    monkeypatch.setattr(store, "_check", lambda manifest, path: checked.append(path))
    now[0] += 6 * 86_400
    assert store.path(cut.manifest.id)
    assert not checked
    now[0] += 2 * 86_400
    for _ in range(2):
        assert store.path(cut.manifest.id)
    assert len(checked) == 1
    now[0] -= 30 * 86_400  # the clock was set back
    assert store.path(cut.manifest.id)
    assert len(checked) == 2


@pytest.mark.parametrize("end", [".gguf", ".json", ".part", ".have"])
def test_a_folder_in_the_place_of_a_file_gives_way(cut: Cut, lender: Home, end: str) -> None:
    store = lender.stages
    if end == ".gguf":
        store.write_stage(cut).unlink()
    (lender.folder / "stages" / f"{cut.manifest.id}{end}" / "inside").mkdir(parents=True)
    assert store.path(cut.manifest.id) is None
    assert store.write_stage(cut).read_bytes() == expected(cut)
    assert store.path(cut.manifest.id)


def test_stages_long_unused_go_first_and_held_ones_stay(home: Home, lender: Home) -> None:
    folder = lender.folder / "stages"
    cuts = []
    for index in range(4):
        entry = home.add(f"m{index}", layers=4, seed=index)
        cuts.append(home.shelf.cut(entry, Layers(1, 3), Role.MIDDLE))
    ids = [cut.manifest.id for cut in cuts]
    for turn, cut in enumerate(cuts[:3]):
        lender.stages.write_stage(cut)
        os.utime(folder / f"{ids[turn]}.json", ns=(turn, turn))
        os.utime(folder / f"{ids[turn]}.gguf", ns=(turn, turn))
    held = lender.stages.hold(ids[0])
    assert held
    os.utime(folder / f"{ids[0]}.json", ns=(0, 0))
    lender.stages.limit_bytes = lender.stages.used_bytes() - 1
    lender.stages.write_stage(cuts[3])
    there = [stage_id for stage_id in ids if (folder / f"{stage_id}.gguf").exists()]
    assert there in ([ids[0], ids[3]], [ids[0], ids[2], ids[3]])
    lender.stages.limit_bytes = 0
    lender.stages.trim()
    assert [path.stem for path in folder.glob("*.gguf")] == [ids[0]]
    lender.stages.release(ids[0])
    lender.stages.trim()
    assert files(lender) == []


def test_both_stages_of_one_model_stay_whatever_the_limit(home: Home) -> None:
    entry = home.add("m", layers=4)
    home.stages.limit_bytes = 0
    first = home.stages.write_stage(home.shelf.cut(entry, Layers(0, 2), Role.FIRST))
    last = home.stages.write_stage(home.shelf.cut(entry, Layers(2, 4), Role.LAST))
    assert first.exists()
    assert last.exists()


def test_room_is_made_from_what_nobody_uses(home: Home, lender: Home) -> None:
    old = home.shelf.cut(home.add("old", layers=4), Layers(1, 3), Role.MIDDLE)
    new = home.shelf.cut(home.add("new", layers=4, seed=9), Layers(1, 3), Role.MIDDLE)
    lender.stages.write_stage(old)
    disk = BadDisk(free=RESERVE_BYTES)
    store = StageStore(lender.folder / "stages", LIMIT_BYTES, disk)
    with pytest.raises(DoesNotFit):
        store.write_stage(new)
    assert files(lender) == []
    assert lender.stages.path(old.manifest.id) is None


def test_two_stages_at_once_in_two_threads(home: Home, lender: Home) -> None:
    entry = home.add("m", layers=8)
    cuts = [home.shelf.cut(entry, Layers(1, 4), Role.MIDDLE), home.shelf.cut(entry, Layers(3, 6), Role.MIDDLE)]
    threads = [threading.Thread(target=lender.stages.write_stage, args=(cut,)) for cut in cuts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for cut in cuts:
        path = lender.stages.path(cut.manifest.id)
        assert path
        assert path.read_bytes() == expected(cut)


def test_a_stage_of_no_valid_name_is_never_looked_for(lender: Home) -> None:
    for name in ("../x", "", "A" * 64, "a" * 63):
        assert lender.stages.path(name) is None
        assert lender.stages.hold(name) is None


def cuts_of(home: Home, n_models: int) -> list[Cut]:
    """The same layers of several models."""
    entries = [home.add(f"m{seed}", layers=4, seed=seed) for seed in range(n_models)]
    return [home.shelf.cut(entry, Layers(1, 3), Role.MIDDLE) for entry in entries]


def bring(store: StageStore, cut: Cut, n_bytes: int | None = None) -> None:
    """Act as a host: offer a stage, and send all of it or a part."""
    with store.accept(cut.manifest) as receiver:
        receiver.write(b"".join(read_pieces(cut, receiver.wants))[:n_bytes])
        if n_bytes is None:
            receiver.finish()


def test_what_others_bring_never_goes_beyond_the_limit(home: Home, lender: Home) -> None:
    """This holds even if all claim to belong to one model, whose stages are otherwise spared."""
    store = lender.stages
    claims = [replace(cut.manifest, model_id="0" * 64) for cut in cuts_of(home, 4)]
    cuts = [Cut(claim, cut.sources) for claim, cut in zip(claims, cuts_of(home, 4), strict=True)]
    store.limit_bytes = int(2.5 * claims[0].total_bytes)  # and their indexes
    for cut in cuts:
        bring(store, cut)
        assert store.used_bytes() <= store.limit_bytes
    assert store.path(claims[3].id)
    assert not store.path(claims[0].id)


def test_stages_in_use_and_coming_in_are_counted_in_full(home: Home, lender: Home) -> None:
    store, (cut, two, three) = lender.stages, cuts_of(home, 3)
    store.limit_bytes = int(2.5 * cut.manifest.total_bytes)
    bring(store, cut)
    assert store.hold(cut.manifest.id)
    with store.accept(two.manifest), pytest.raises(DoesNotFit) as error:
        store.accept(three.manifest)
    assert error.value.reason.code == "stages_full"
    assert said(error.value)
    store.release(cut.manifest.id)
    bring(store, three)
    store.limit_bytes = three.manifest.total_bytes - 1
    with pytest.raises(DoesNotFit):
        store.accept(two.manifest)


def test_an_offer_takes_no_room_before_its_bytes_come(cut: Cut, lender: Home) -> None:
    part = lender.folder / "stages" / f"{cut.manifest.id}.part"
    with lender.stages.accept(cut.manifest) as receiver:
        assert part.stat().st_size == len(cut.manifest.header)
        for chunk in sent(cut, receiver.wants):
            receiver.write(chunk)
        assert receiver.finish().read_bytes() == expected(cut)


def test_stages_that_broke_off_do_not_pile_up(home: Home, lender: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_store, "MAX_PARTS", 2)
    for turn, cut in enumerate(cuts_of(home, 4)):
        bring(lender.stages, cut, 1000)
        os.utime(lender.folder / "stages" / f"{cut.manifest.id}.part", ns=(turn, turn))
        os.utime(lender.folder / "stages" / f"{cut.manifest.id}.have", ns=(turn, turn))
        assert files(lender).count(".part") == min(turn + 1, 2)
    assert cut.manifest.id in {path.stem for path in (lender.folder / "stages").glob("*.part")}


def test_others_leave_more_of_the_disk_free_than_its_owner(cut: Cut, lender: Home) -> None:
    disk = BadDisk(free=cut.manifest.total_bytes + RESERVE_BYTES)
    store = StageStore(lender.folder / "stages", LIMIT_BYTES, disk, reserve_bytes=RESERVE_BYTES + 1)
    with pytest.raises(DoesNotFit):
        store.accept(cut.manifest)
    assert store.write_stage(cut).exists()


@pytest.mark.parametrize(
    ("total_gib", "most_gib", "left_gib"), [(4, 1, 1), (64, 16, 5), (400, 100, 20), (4000, 200, 200)]
)
def test_limits_follow_the_size_of_the_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, total_gib: int, most_gib: int, left_gib: int
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(total=total_gib << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert stage_store.disk_limits(tmp_path) == (most_gib << 30, left_gib << 30)


def test_a_stage_is_kept_before_it_is_there(cut: Cut, lender: Home) -> None:
    lender.stages.protect(cut.manifest.id)
    lender.stages.write_stage(cut)
    lender.stages.limit_bytes = 0
    lender.stages.trim()
    assert files(lender) == [".gguf", ".json"]
    lender.stages.release(cut.manifest.id)
    lender.stages.trim()
    assert files(lender) == []
