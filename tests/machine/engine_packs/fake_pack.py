"""Small engine packs with a fake library, whole or broken in one way."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from app.machine.engine_packs.manifest import MANIFEST, installed_name, parse
from app.machine.engine_packs.store import this_system

ENGINE = "0.3.36"
LIBRARY = "libggml-vulkan.so"
FILES = {LIBRARY: b"\x7fELF no library", "licenses/llama.cpp.txt": b"MIT"}

Json = dict[str, Any]


def manifest(data: dict[str, bytes] | None = None, /, **changes: Any) -> Json:
    """Return the JSON of a manifest for these files, with some of its fields changed."""
    contents = FILES if data is None else data
    listed = [
        {"path": path, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in contents.items()
    ]
    fields = {
        "format": 1, "backend": "vulkan", "engine_version": ENGINE, "ggml_version": "0.25.3", "system": this_system(),
        "built": "2026-11-30", "libraries": [LIBRARY], "files": listed,
    }  # fmt: skip
    return fields | changes


def folder_pack(folder: Path, data: dict[str, bytes] | None = None, /, **changes: Any) -> Path:
    """Write a pack into a folder and return it."""
    contents = FILES if data is None else data
    place = folder / "pack"
    for path, content in contents.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    (place / MANIFEST).write_text(json.dumps(manifest(contents, **changes)), "utf-8")
    return place


def archive_pack(place: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    """Write an archive with exactly these members."""
    with place.open("wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
        for member, data in members:
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return place


def member(path: str, data: bytes, kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    """Return a member of an archive in the folder `pack`, which may also be a link or a device."""
    info = tarfile.TarInfo(path)
    info.type, info.linkname = kind, link
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def members(data: dict[str, bytes] | None = None, /, **changes: Any) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Return the members of a whole pack."""
    contents = FILES if data is None else data
    first = member(f"pack/{MANIFEST}", json.dumps(manifest(contents, **changes)).encode())
    return [first, *(member(f"pack/{path}", content) for path, content in contents.items())]


def name_of(**changes: Any) -> str:
    """Return the name under which a pack with these changes is installed."""
    data = json.dumps(manifest(**changes)).encode()
    return installed_name(parse(data, "pack"), hashlib.sha256(data).hexdigest())


def bomb(place: Path, n_bytes: int) -> Path:
    """Write a small archive of which a header claims to be long, and is: it unpacks to zeros."""
    info = tarfile.TarInfo("pack/long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, n_bytes
    with gzip.open(place, "wb") as file:
        file.write(info.tobuf())
        for _ in range(n_bytes >> 20):
            file.write(bytes(1 << 20))
    return place
