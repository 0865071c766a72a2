"""Writing an engine pack as an archive, for another computer. The same pack always gives the same bytes."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path

from app.machine.engine_packs.manifest import MANIFEST
from app.machine.paths import sync_folder

SUFFIX = ".tar.gz"
PART = ".part"


def write_archive(pack: Path, place: Path, name: str) -> Path:
    """Write all files of a pack's folder into the archive `place`, below a folder `name`, and return `place`.

    The archive is complete or not there at all: until its bytes are on the disk, it has another name. Raises OSError.
    """
    files = sorted(path for path in pack.rglob("*") if path.is_file())
    files.sort(key=lambda path: path != pack / MANIFEST)  # the manifest first, so that a reader knows what follows
    part = place.with_name(f"{place.name}{PART}")
    try:
        with part.open("wb") as raw:
            with (
                gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
            ):
                for file in files:
                    _add(tar, file, f"{name}/{file.relative_to(pack).as_posix()}")
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(place.parent)
    return place


def _add(tar: tarfile.TarFile, file: Path, path: str) -> None:
    """Add a file without what depends on this computer: its owner, its rights and its times."""
    member = tarfile.TarInfo(path)
    member.size, member.mode, member.mtime = file.stat().st_size, 0o644, 0
    with file.open("rb") as content:
        tar.addfile(member, content)
