"""Archives of layers: the same bytes each time, and nothing that leads out of the folder."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from backports import zstd

from app.core.errors import AppError
from app.machine.versions.layer_archive import is_safe, unpack_archive, write_archive
from app.machine.versions.tree_hash import tree_bytes, tree_hash


def member(
    name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    made.size = len(content) if kind == tarfile.REGTYPE else 0
    return made, content


def archive(place: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as made:
        for info, content in members:
            made.addfile(info, io.BytesIO(content))
    place.write_bytes(zstd.compress(raw.getvalue()))
    return place


def test_a_layer_comes_back_as_it_was(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    (layer / "lib").mkdir(parents=True)
    (layer / "lib/libx.so.1").write_bytes(os.urandom(3 << 20))
    (layer / "lib/libx.so").symlink_to("libx.so.1")
    (layer / "run").write_text("#!/bin/sh\n")
    (layer / "run").chmod(0o755)
    write_archive(layer, tmp_path / "a", 1_700_000_000)
    write_archive(layer, tmp_path / "b", 1_700_000_000)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    before = os.umask(0o077)
    try:
        unpack_archive(tmp_path / "a", tmp_path / "new", "lib", tree_bytes(layer))
    finally:
        os.umask(before)
    assert tree_hash(tmp_path / "new") == tree_hash(layer)
    assert (tmp_path / "new/run").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "odd",
    [
        member("../up"),
        member("a/../../up"),
        member("/etc/passwd"),
        member("C:/x"),
        member("a\\b"),
        member("con.txt"),
        member("a\nb"),
        member("trailing."),
        member("x" * 300),
        member("link", kind=tarfile.SYMTYPE, link="/etc/passwd"),
        member("link", kind=tarfile.SYMTYPE, link="../up"),
        member("link", kind=tarfile.SYMTYPE, link=".."),
        member("hard", kind=tarfile.LNKTYPE, link="good"),
        member("pipe", kind=tarfile.FIFOTYPE),
        member("device", kind=tarfile.CHRTYPE),
        member("folder", kind=tarfile.DIRTYPE),
    ],
)
def test_what_does_not_belong_in_a_layer_ends_the_reading(tmp_path: Path, odd: tuple[tarfile.TarInfo, bytes]) -> None:
    source = archive(tmp_path / "a", member("good"), odd)
    with pytest.raises(AppError) as error:
        unpack_archive(source, tmp_path / "inside/new", "lib", 1000)
    assert error.value.reason.code == "update_unsafe"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["a", "good"]


def test_a_file_through_a_link_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    source = archive(tmp_path / "a", member("d", kind=tarfile.SYMTYPE, link="e"), member("d/x"))
    with pytest.raises((AppError, OSError)):
        unpack_archive(source, tmp_path / "new", "lib", 1000)
    assert not list(outside.iterdir())
    assert not (tmp_path / "new" / "e").exists()


def test_more_bytes_than_signed_are_refused_before_they_are_written(tmp_path: Path) -> None:
    source = archive(tmp_path / "a", member("large", bytes(50 << 20)))
    with pytest.raises(AppError) as error:
        unpack_archive(source, tmp_path / "new", "lib", 1000)
    assert error.value.reason.code == "update_too_large"
    assert tree_bytes(tmp_path / "new") == 0


@pytest.mark.parametrize("damage", ["cut", "flipped", "no archive", "twice"])
def test_a_damaged_archive_is_told(tmp_path: Path, damage: str) -> None:
    content = os.urandom(200_000)
    source = archive(tmp_path / "a", member("one", content), member("two"))
    data = source.read_bytes()
    match damage:
        case "cut":
            source.write_bytes(data[: len(data) // 2])
        case "flipped":
            source.write_bytes(data[:1000] + bytes([data[1000] ^ 255]) + data[1001:])
        case "no archive":
            source.write_bytes(b"hello")
        case "twice":
            archive(source, member("one"), member("one"))
    if damage == "flipped":  # the bytes of a file may be anything; their hash is checked afterwards
        unpack_archive(source, tmp_path / "new", "lib", 1 << 20)
        assert (tmp_path / "new" / "one").read_bytes() != content
        return
    with pytest.raises((AppError, OSError)) as error:
        unpack_archive(source, tmp_path / "new", "lib", 1 << 20)
    if damage == "twice":
        assert isinstance(error.value, FileExistsError)
    else:
        assert isinstance(error.value, AppError)
        assert error.value.reason.code == "update_layer_damaged"


@pytest.mark.parametrize("name", ["a", "a/b.py", "numpy/_core/x.so", "R & D (1).txt", "__pycache__/x.cpython-311.pyc"])
def test_usual_names_are_safe(name: str) -> None:
    assert is_safe(name)
