"""`python -m scripts.engine_wheels` writes resources/engine-wheels.json: the wheels of PyTorch and MLX for each system.

pip chooses them from the package index; nothing but their tables of contents is downloaded. Needs pip 25 or newer.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec
import urllib3

from app.machine.engine_packs.wheels import EngineWheels, Wheel, wheels_file

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LINUX = (*(f"manylinux_2_{minor}_x86_64" for minor in range(39, 4, -1)), "manylinux2014_x86_64", "manylinux2010_x86_64")
# A wheel for a newer macOS may use more of its graphics processor, so each has its own.
MACOS = tuple(tuple(f"macosx_{major}_0_arm64" for major in (newest, 14, 13, 12, 11)) for newest in (26, 15, 14))
# The packages that PyTorch needs everywhere. pip reads conditions of the system that it runs on, so it cannot find the
# needs of another one.
TORCH = "torch===2.13.0"  # not a build with a suffix, such as +cpu
TORCH_NEEDS = (
    "filelock",
    "fsspec",
    "jinja2",
    "markupsafe",
    "mpmath<1.4",
    "networkx",
    "setuptools",
    "sympy<1.15,>=1.13.3",
)
HTTP = urllib3.PoolManager(timeout=120.0)


@dataclass(frozen=True)
class Recipe:
    """The packages of an engine on one system. needs: whether pip is to add what they need."""

    engine: str
    system: str
    platforms: Sequence[Sequence[str]]
    packages: Sequence[str]
    needs: bool = False


RECIPES = (
    Recipe("pytorch", "linux-x86_64", (LINUX,), (TORCH,), needs=True),
    Recipe("pytorch", "macos-arm64", MACOS, (TORCH, "typing-extensions", *TORCH_NEEDS)),
    Recipe("mlx", "linux-x86_64", (LINUX,), ("mlx==0.32.4", "mlx-cpu==0.32.4")),
    Recipe("mlx", "macos-arm64", MACOS, ("mlx==0.32.4", "mlx-metal==0.32.4")),
)


class _RemoteFile(io.RawIOBase):
    """A file on a server, read in pieces."""

    def __init__(self, url: str) -> None:
        self._url, self._at = url, 0
        self.n_bytes = int(HTTP.request("HEAD", url).headers["Content-Length"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self.n_bytes)[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        end = min(self.n_bytes, self._at + len(buffer))
        if end <= self._at:
            return 0
        data = HTTP.request("GET", self._url, headers={"Range": f"bytes={self._at}-{end - 1}"}).data
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def main() -> int:
    """Write the list. Return the exit code."""
    engines = []
    for engine in dict.fromkeys(recipe.engine for recipe in RECIPES):
        systems = {recipe.system: wheels_of(recipe) for recipe in RECIPES if recipe.engine == engine}
        first = {"pytorch": "torch"}.get(engine, engine)
        version = next(wheel.version for wheels in systems.values() for wheel in wheels if wheel.name == first)
        engines.append(EngineWheels(engine, version, systems))
    text = msgspec.json.format(msgspec.json.encode(engines), indent=1).decode()
    wheels_file().write_text(text + "\n", "utf-8")
    for each in engines:
        for system, wheels in each.systems.items():
            print(f"{each.engine} {each.version} for {system}: {len(wheels)} wheels")
    return 0


def wheels_of(recipe: Recipe) -> list[Wheel]:
    """Return the wheels of an engine for one system, for all versions of Python."""
    urls = {
        url: sha256
        for python in PYTHONS
        for platforms in recipe.platforms
        for url, sha256 in chosen_by_pip(recipe, python, platforms)
    }
    with ThreadPoolExecutor(4) as pool:
        wheels = list(pool.map(lambda pair: described(*pair), urls.items()))
    return sorted(wheels, key=lambda wheel: (wheel.name, wheel.file))


def chosen_by_pip(recipe: Recipe, python: str, platforms: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the address and the SHA-256 of each wheel that pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", str(report), "--target", folder, "--only-binary", ":all:", "--implementation", "cp"]
        command += ["--python-version", python, "--abi", f"cp{python.replace('.', '')}", "--abi", "abi3"]
        command += ["--abi", "none"]
        # the public index, no mirror of this computer
        environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
        for platform in platforms:
            command += ["--platform", platform]
        command += [] if recipe.needs else ["--no-deps"]
        subprocess.run([*command, *recipe.packages], check=True, env=environment)
        for package in json.loads(report.read_bytes())["install"]:
            place = package["download_info"]
            yield place["url"], place["archive_info"]["hashes"]["sha256"]


def described(url: str, sha256: str) -> Wheel:
    """Return what the list holds of a wheel."""
    remote = _RemoteFile(url)
    with zipfile.ZipFile(io.BufferedReader(remote, 1 << 17)) as archive:
        unpacked_bytes = sum(entry.file_size for entry in archive.infolist())
    file = url.rpartition("/")[2]
    name, version = file.split("-")[:2]
    return Wheel(name.replace("_", "-").lower(), version, file, remote.n_bytes, unpacked_bytes, sha256)


if __name__ == "__main__":
    sys.exit(main())
