"""The license texts of the libraries inside CPython for Windows, which its embeddable package does not bring.

They are taken from Debian's packages of the same libraries, by the hashes of debian-files.toml. The versions differ,
the terms do not. That of libmpdec is in the terms of Debian's Python.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from installers.payload.fetched import debian_file
from installers.payload.trees import tool

PACKAGES = {
    "bzip2": "libbz2-1.0", "expat": "libexpat1", "libffi": "libffi8", "mpdecimal": "libpython3.11-minimal",
    "openssl": "libssl3", "sqlite": "libsqlite3-0", "xz": "liblzma5", "zlib": "zlib1g",
}  # fmt: skip


def add(folder: Path, scratch: Path) -> None:
    """Add the texts to the licenses of a layer with Python. Raises Trouble."""
    for name, package in PACKAGES.items():
        unpacked = scratch / package
        tool("dpkg-deb", "-x", str(debian_file(package)), str(unpacked), label="Unpacking license texts")
        shutil.copyfile(unpacked / "usr/share/doc" / package / "copyright", folder / "licenses" / f"{name}.txt")
