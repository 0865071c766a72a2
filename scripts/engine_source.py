"""The source of llama.cpp, extracted from the hashed source package of its Python binding."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
LOCK = PROJECT / "requirements" / "engine.txt"
INSIDE = "/vendor/llama.cpp/"


def engine() -> str:
    """Return the name and version of the engine, such as `llama-cpp-python==0.3.36`."""
    return LOCK.read_text("utf-8").split(maxsplit=1)[0]


def fetch(work: Path, parts: tuple[str, ...]) -> Path:
    """Return a folder below `work` with these parts of llama.cpp. They are downloaded and unpacked once per version."""
    folder = work / engine() / "llama.cpp"
    whole = folder / ".unpacked"
    there = whole.read_text("utf-8").split() if whole.exists() else []
    if lacking := tuple(part for part in parts if part not in there):
        if not list(folder.parent.glob("llama_cpp_python-*.tar.gz")):
            download(folder.parent)
        (archive,) = folder.parent.glob("llama_cpp_python-*.tar.gz")
        unpack(archive, folder, lacking)
        whole.write_text("\n".join([*there, *lacking]), "utf-8")
    return folder


def download(folder: Path) -> None:
    """Download the source package of the engine and verify its hash.

    Its build tools must be installed, because pip reads the metadata of the package.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--no-binary", ":all:", "--no-build-isolation", "-r", str(LOCK), "-d", str(folder)]
    subprocess.run(command, check=True)


def unpack(archive: Path, folder: Path, parts: tuple[str, ...]) -> None:
    """Unpack only these parts of the archive, which contains several thousand files."""
    with tarfile.open(archive) as source:
        for member in source.getmembers():
            _, _, inside = member.name.partition(INSIDE)
            if inside.startswith(parts) and member.isfile():
                member.name = inside
                source.extract(member, folder, filter="data")
