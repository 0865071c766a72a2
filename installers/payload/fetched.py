"""Files from Debian's archive and the package index, used only with the hashes that this project names."""

from __future__ import annotations

import contextlib
import subprocess
import tomllib
from pathlib import Path

import msgspec

from app.machine.versions.tree_hash import file_hash
from installers.payload.places import FILES
from scripts.setup_errors import Trouble

LIST = Path(__file__).resolve().parents[1] / "linux" / "debian-files.toml"


class DebianFile(msgspec.Struct, frozen=True):
    """A package of Debian from which files are shipped."""

    version: str
    file: str
    sha256: str
    source: str  # the name of its source package
    license: str  # of the files that are shipped from it


def debian_files() -> dict[str, DebianFile]:
    """Return all pinned packages, by name."""
    return msgspec.convert(tomllib.loads(LIST.read_text("utf-8")), dict[str, DebianFile])


def debian_file(name: str) -> Path:
    """Return the pinned file of a Debian package, downloaded if necessary. Raises Trouble."""
    pinned = debian_files()[name]
    path = FILES / pinned.file
    if not path.exists():
        FILES.mkdir(parents=True, exist_ok=True)
        command = ["apt-get", "download", "-qq", f"{name}={pinned.version}"]
        with contextlib.suppress(FileNotFoundError):  # not a Debian system: said below
            subprocess.run(command, cwd=FILES, capture_output=True, check=False)
    if not path.exists():
        raise Trouble(
            f"The file {pinned.file} of Debian 12 is needed and could not be downloaded here. Put it into {FILES}; "
            f"its SHA-256 is {pinned.sha256}."
        )
    if file_hash(path) != pinned.sha256:
        raise Trouble(f"{path} is not the expected file: its SHA-256 should be {pinned.sha256}. Delete it.")
    return path
