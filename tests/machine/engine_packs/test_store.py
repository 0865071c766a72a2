"""Installing, choosing, rolling back and removing packs, and every input that must be refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.core.errors import AppError, Reason, Refused
from app.core.reasons import said
from app.machine.engine_packs.manifest import MANIFEST
from app.machine.engine_packs.store import PART, STATE, InstalledPack, PackStore, Tested
from tests.machine.engine_packs.fake_pack import (
    ENGINE,
    FILES,
    LIBRARY,
    archive_pack,
    bomb,
    folder_pack,
    manifest,
    member,
    members,
    name_of,
)

NEWER = {LIBRARY: b"a newer library", "licenses/llama.cpp.txt": b"MIT"}


@pytest.fixture
def store(tmp_path: Path) -> PackStore:
    return PackStore(tmp_path / "engines", engine_version=ENGINE)


def refused(store: PackStore, source: Path) -> Reason:
    """Return why a pack was refused. Nothing of it may remain."""
    before = [pack.name for pack in store.packs()]
    with pytest.raises(AppError) as error:
        store.install(source)
    assert said(error.value)
    assert [pack.name for pack in store.packs()] == before
    assert not list(store._folder.glob(f"{PART}*"))
    return error.value.reason


def install(store: PackStore, folder: Path, files: dict[str, bytes]) -> InstalledPack:
    shutil.rmtree(folder / "pack", ignore_errors=True)
    return store.install(folder_pack(folder, files))


@pytest.mark.parametrize("packed", [False, True])
def test_a_pack_is_installed_used_and_removed(store: PackStore, tmp_path: Path, packed: bool) -> None:
    source = archive_pack(tmp_path / "p.tar.gz", members()) if packed else folder_pack(tmp_path)
    assert store.packs() == []
    pack = store.install(source)
    assert (pack.name, pack.problem, pack.is_current) == (name_of(), None, False)
    assert store.libraries() == {}
    assert store.use("vulkan").is_current
    path = store.libraries()["vulkan"]
    assert path.is_absolute()
    assert path.read_bytes() == FILES[LIBRARY]
    assert store.install(source) == store.find(pack.name)  # again: nothing changes
    assert store.remove("vulkan") == pack.name
    assert (store.packs(), store.libraries()) == ([], {})


def test_the_previous_pack_is_used_again(store: PackStore, tmp_path: Path) -> None:
    old, new = install(store, tmp_path, FILES), install(store, tmp_path, NEWER)
    with pytest.raises(AppError, match="pack_no_previous"):
        store.roll_back("vulkan")
    store.use(old.name)
    assert store.use(new.name).is_current
    assert [(pack.name, pack.is_current, pack.is_previous) for pack in store.packs()] == [
        (new.name, True, False), (old.name, False, True),
    ]  # fmt: skip
    assert store.roll_back("vulkan").name == old.name
    assert store.roll_back("vulkan").name == new.name
    store.remove(old.name)
    with pytest.raises(AppError, match="pack_no_previous"):
        store.roll_back("vulkan")
    assert store.libraries()["vulkan"].read_bytes() == NEWER[LIBRARY]


def test_a_pack_that_failed_its_test_is_installed_and_not_used(store: PackStore, tmp_path: Path) -> None:
    pack = store.install(folder_pack(tmp_path))
    failure = Reason("pack_no_device", {"backend": "Vulkan"})
    assert store.note_test(pack.name, Tested(failure=failure)).problem == failure
    with pytest.raises(AppError, match="pack_no_device"):
        store.use(pack.name)
    again = PackStore(store._folder, engine_version=ENGINE)
    assert again.packs()[0].problem == failure
    assert again.note_test(pack.name, Tested()).problem is None
    assert again.use(pack.name).is_current


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"engine_version": "0.3.35"}, "pack_other_engine"),
        ({"system": "amiga-68000"}, "pack_other_system"),
        ({"backend": "opencl"}, "pack_unknown_backend"),
        ({"format": 9}, "pack_newer_format"),
    ],
)
def test_a_pack_that_does_not_fit_is_refused(
    store: PackStore, tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    assert refused(store, folder_pack(tmp_path, **changes)).code == code
    assert refused(store, archive_pack(tmp_path / "p.tar.gz", members(**changes))).code == code


def test_a_file_with_other_bytes_is_refused(store: PackStore, tmp_path: Path) -> None:
    source = folder_pack(tmp_path)
    (source / LIBRARY).write_bytes(FILES[LIBRARY].swapcase())
    reason = refused(store, source)
    assert (reason.code, reason.facts["file"]) == ("pack_wrong_hash", LIBRARY)
    (source / LIBRARY).write_bytes(FILES[LIBRARY] + b"more")
    assert refused(store, source).code == "pack_wrong_hash"
    (source / LIBRARY).write_bytes(FILES[LIBRARY][:-1])
    assert refused(store, source).code == "pack_incomplete"
    (source / LIBRARY).unlink()
    assert refused(store, source).code == "pack_incomplete"


def test_links_in_a_folder_are_refused(store: PackStore, tmp_path: Path) -> None:
    source = folder_pack(tmp_path)
    (source / LIBRARY).rename(tmp_path / "elsewhere")
    (source / LIBRARY).symlink_to(tmp_path / "elsewhere")
    assert refused(store, source).code == "pack_unsafe"


def test_a_link_to_a_whole_pack_is_followed(store: PackStore, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder_pack(tmp_path))
    assert store.install(tmp_path / "link").problem is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_has_no_packs(store: PackStore, tmp_path: Path) -> None:
    store.install(folder_pack(tmp_path))
    store._folder.chmod(0)
    assert store.packs() == []
    store._folder.chmod(0o700)


def test_a_pipe_or_an_absent_file_is_refused_at_once(store: PackStore, tmp_path: Path) -> None:
    assert refused(store, tmp_path / "absent").code == "pack_unreadable"
    (tmp_path / "empty").mkdir()
    assert refused(store, tmp_path / "empty").code == "pack_no_manifest"
    os.mkfifo(tmp_path / "pipe")
    assert refused(store, tmp_path / "pipe").code == "pack_unreadable"
    source = folder_pack(tmp_path)
    (source / LIBRARY).unlink()
    os.mkfifo(source / LIBRARY)
    assert refused(store, source).code == "pack_unreadable"


WHOLE = members()
LONG = b"x" * len(FILES[LIBRARY])


class Broken(NamedTuple):
    """The members of a broken archive, and the code of its refusal."""

    members: list[tuple[tarfile.TarInfo, bytes]]
    code: str


@pytest.mark.parametrize(
    "broken",
    [
        Broken([], "pack_no_manifest"),
        Broken(WHOLE[1:], "pack_order"),
        Broken([*WHOLE[1:], WHOLE[0]], "pack_order"),
        Broken(WHOLE[:1], "pack_incomplete"),
        Broken(WHOLE[:2], "pack_incomplete"),
        Broken([*WHOLE, WHOLE[1]], "pack_unsafe"),  # twice
        Broken([*WHOLE, member("pack/more.so", b"more")], "pack_unsafe"),
        Broken([*WHOLE, member("pack/../../up.so", b"up")], "pack_unsafe"),
        Broken([*WHOLE, member("/etc/cron.d/x", b"up")], "pack_unsafe"),
        Broken([*WHOLE, member("other/more.so", b"up")], "pack_unsafe"),
        Broken([WHOLE[0], member(f"pack/{LIBRARY}", b"", tarfile.SYMTYPE, "/bin/sh")], "pack_unsafe"),
        Broken([WHOLE[0], member(f"pack/{LIBRARY}", b"", tarfile.LNKTYPE, "pack/pack.json")], "pack_unsafe"),
        Broken([WHOLE[0], member(f"pack/{LIBRARY}", b"", tarfile.CHRTYPE)], "pack_unsafe"),
        Broken([WHOLE[0], member(f"pack/{LIBRARY}", b"", tarfile.FIFOTYPE)], "pack_unsafe"),
        Broken([WHOLE[0], member("pack/licenses", b"", tarfile.DIRTYPE)], "pack_unsafe"),
        Broken([WHOLE[0], member(f"pack/{LIBRARY}", LONG), WHOLE[2]], "pack_wrong_hash"),
        Broken([WHOLE[0], member(f"pack/{LIBRARY}", LONG * 9), WHOLE[2]], "pack_wrong_hash"),
        Broken([member("pack/pack.json", b" " * (2 << 20)), *WHOLE[1:]], "pack_no_manifest"),
        Broken([member("pack/pack.json", b"", tarfile.SYMTYPE, "/etc/passwd"), *WHOLE[1:]], "pack_no_manifest"),
    ],
)  # fmt: skip
def test_a_broken_archive_is_refused(store: PackStore, tmp_path: Path, broken: Broken) -> None:
    assert refused(store, archive_pack(tmp_path / "p.tar.gz", broken.members)).code == broken.code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engines", "p.tar.gz"]


def test_a_cut_archive_is_refused_wherever_it_ends(store: PackStore, tmp_path: Path) -> None:
    whole = archive_pack(tmp_path / "whole.tar.gz", members()).read_bytes()
    cut = tmp_path / "cut.tar.gz"
    for length in range(0, len(whole) - 100, 11):  # what follows the last file only says that the archive has ended
        cut.write_bytes(whole[:length])
        assert refused(store, cut).code in ("pack_damaged", "pack_no_manifest", "pack_incomplete"), length


def test_an_archive_with_flipped_bytes_is_never_half_installed(store: PackStore, tmp_path: Path) -> None:
    whole = archive_pack(tmp_path / "whole.tar.gz", members()).read_bytes()
    broken = tmp_path / "broken.tar.gz"
    for place in range(10, len(whole), 13):
        broken.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with suppress(AppError):
            pack = store.install(broken)
            assert store.verify(pack.name) is None
            store.remove(pack.name)
        assert store.packs() == []


@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b", bytes(2000)])
def test_what_is_no_archive_is_refused(store: PackStore, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "p.tar.gz").write_bytes(data)
    assert refused(store, tmp_path / "p.tar.gz").code in ("pack_no_manifest", "pack_damaged")


def test_a_header_that_unpacks_to_much_takes_no_memory(store: PackStore, tmp_path: Path) -> None:
    source = bomb(tmp_path / "bomb.tar.gz", 64 << 20)
    tracemalloc.start()
    reason = refused(store, source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reason.code in ("pack_no_manifest", "pack_damaged")
    assert peak < 8 << 20


def test_a_full_disk_is_noticed_before_and_while_copying(
    store: PackStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder_pack(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=5))
        assert refused(store, source).code == "pack_no_room"

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert refused(store, source).code == "pack_disk_full"
    store.install(source)


def test_what_an_interrupted_installation_left_is_never_visible(store: PackStore, tmp_path: Path) -> None:
    halves = [store._folder / f"{PART}{process}" / "pack" for process in ("x", os.getpid(), 1 << 30, os.getppid())]
    for half in halves:
        half.mkdir(parents=True)
        (half / LIBRARY).write_bytes(b"half")
    assert store.packs() == []
    store.install(folder_pack(tmp_path))
    assert [half.exists() for half in halves] == [False, False, False, True]  # the last process still runs


KILLED = """
import os, signal, sys
from pathlib import Path
from app.machine.engine_packs.store import PackStore
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
PackStore(Path(sys.argv[1]), engine_version="0.3.36").install(Path(sys.argv[2]))
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")
def test_a_process_that_is_killed_while_copying_leaves_nothing_visible(store: PackStore, tmp_path: Path) -> None:
    source = archive_pack(tmp_path / "p.tar.gz", members())
    killed = subprocess.run([sys.executable, "-c", KILLED, str(store._folder), str(source)], check=False)
    assert killed.returncode < 0
    assert list(store._folder.glob(f"{PART}*"))
    assert store.packs() == []
    assert store.install(source).problem is None
    assert not list(store._folder.glob(f"{PART}*"))


def test_a_file_changed_after_the_installation_is_noticed(store: PackStore, tmp_path: Path) -> None:
    store.install(folder_pack(tmp_path))
    path = store.use("vulkan").name and store.libraries()["vulkan"]
    assert isinstance(path, Path)
    path.write_bytes(FILES[LIBRARY].swapcase())
    assert store.libraries() == {}
    (pack,) = store.packs()
    assert pack.problem is not None
    assert (pack.problem.code, pack.is_current) == ("pack_wrong_hash", True)
    assert store.verify("vulkan") is not None
    repaired = store.install(tmp_path / "pack")  # repairs it
    assert repaired.problem is None
    assert "vulkan" in store.libraries()
    (path.parent / MANIFEST).write_text("{}", "utf-8")
    assert store.packs()[0].problem is not None
    store.remove("vulkan")
    assert store.packs() == []


def test_after_an_update_of_the_engine_its_packs_are_named_and_not_used(store: PackStore, tmp_path: Path) -> None:
    store.install(folder_pack(tmp_path))
    store.use("vulkan")
    updated = PackStore(store._folder, engine_version="0.3.37")
    assert updated.libraries() == {}
    (pack,) = updated.packs()
    assert pack.problem is not None
    assert pack.problem.code == "pack_other_engine"


def test_foreign_things_in_the_folder_are_left_alone(store: PackStore, tmp_path: Path) -> None:
    store.install(folder_pack(tmp_path))
    (store._folder / "notes.txt").write_text("mine", "utf-8")
    (store._folder / "linked").symlink_to(tmp_path)
    (store._folder / "strange").mkdir()
    assert [(pack.name, pack.problem.code if pack.problem else "") for pack in store.packs()] == [
        ("strange", "pack_no_manifest"), (name_of(), ""),
    ]  # fmt: skip
    (store._folder / STATE).write_text("{broken", "utf-8")
    assert not store.find("vulkan").is_current


def test_an_unknown_or_unclear_name_is_refused(store: PackStore, tmp_path: Path) -> None:
    install(store, tmp_path, FILES)
    install(store, tmp_path, NEWER)
    for typed, code in (("metal", "pack_not_installed"), ("../x", "pack_not_installed"), ("vulkan", "pack_ambiguous")):
        with pytest.raises(AppError, match=code):
            store.remove(typed)


def test_a_pack_for_processors_is_refused_and_one_from_earlier_is_not_used(store: PackStore, tmp_path: Path) -> None:
    files = {"libggml-cpu-haswell.so": b"one", "libggml-cpu-zen4.so": b"two"}
    source = folder_pack(tmp_path, files, backend="cpu", libraries=sorted(files))
    with pytest.raises(Refused) as refused:
        store.install(source)
    assert "already supports every kind of processor" in said(refused.value)
    assert store.packs() == []
    shutil.copytree(source, store._folder / "cpu-0.3.36-linux-x86_64-12345678")
    (pack,) = store.packs()
    assert pack.problem is not None
    assert pack.problem.code == "pack_for_processors"
    assert store.libraries() == {}


def test_the_manifest_of_an_installed_pack_is_the_original(store: PackStore, tmp_path: Path) -> None:
    pack = store.install(archive_pack(tmp_path / "p.tar.gz", members()))
    assert json.loads((store._folder / pack.name / MANIFEST).read_text("utf-8")) == manifest()
