"""Writing a built back end as a pack: a folder with its manifest."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from app.machine.engine_packs.manifest import MANIFEST, Manifest, PackFile, parse

LICENSES = "licenses"
CHUNK_BYTES = 1 << 20


def write_pack(
    folder: Path,
    about: Mapping[str, object],
    libraries: Sequence[Path],
    runtime: Sequence[Path] = (),
    licenses: Mapping[str, Path] | None = None,
) -> Path:
    """Write a pack into a new folder inside `folder`, named after its content. Replaces an older one of that name.

    about: the fields of the manifest other than its files. runtime: libraries that are not loaded by themselves.
    """
    part = folder / "pack.part"
    shutil.rmtree(part, ignore_errors=True)
    (part / LICENSES).mkdir(parents=True)
    for file in (*libraries, *runtime):
        shutil.copyfile(file, part / file.name)  # follows links: an archive of a pack has none
    for name, file in (licenses or {}).items():
        shutil.copyfile(file, part / LICENSES / name)
    paths = sorted(path.relative_to(part).as_posix() for path in part.rglob("*") if path.is_file())
    files = [PackFile(path, (part / path).stat().st_size, digest(part / path)) for path in paths]
    names = sorted(file.name for file in libraries)
    fields = {**about, "built": build_day(), "libraries": names, "files": msgspec.to_builtins(files)}
    manifest = msgspec.convert(fields, Manifest)
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    parse(data, manifest.name)  # what cannot be installed is not written
    (part / MANIFEST).write_bytes(data)
    place = folder / manifest.name
    shutil.rmtree(place, ignore_errors=True)
    part.rename(place)
    return place


def build_day() -> str:
    """Return today's date in UTC, or the one in SOURCE_DATE_EPOCH, which reproducible builds set."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
