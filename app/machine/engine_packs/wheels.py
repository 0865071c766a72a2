"""The wheels of the engines that can be installed apart from Poolhouse, PyTorch and MLX.

resources/engine-wheels.json lists them for each system, with their hashes; `python -m scripts.engine_wheels` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
from packaging.tags import Tag, sys_tags
from packaging.utils import parse_wheel_filename

from app.decoding import decode
from app.machine.engine_packs.store import this_system

NAMES = {"pytorch": "PyTorch", "mlx": "MLX"}


class Wheel(msgspec.Struct, frozen=True):
    """A package of an engine, in the form that the package index has it."""

    name: str
    version: str
    file: str
    size_bytes: int
    unpacked_bytes: int
    sha256: str


class EngineWheels(msgspec.Struct, frozen=True):
    """The wheels of one engine by system, such as `linux-x86_64`, for all versions of Python."""

    engine: str
    version: str
    systems: dict[str, list[Wheel]]


class EngineDownload(msgspec.Struct, frozen=True):
    """The wheels of one engine that fit this computer and this Python."""

    engine: str
    version: str
    wheels: list[Wheel]

    @property
    def label(self) -> str:
        """The engine and its version, for people."""
        return f"{NAMES[self.engine]} {self.version}"

    @property
    def size_bytes(self) -> int:
        """Return the size of the download."""
        return sum(wheel.size_bytes for wheel in self.wheels)

    @property
    def unpacked_bytes(self) -> int:
        """Return the size of the installed engine."""
        return sum(wheel.unpacked_bytes for wheel in self.wheels)

    def requirements(self) -> str:
        """Return the wheels in the form that pip reads and checks."""
        return "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in self.wheels)


def wheels_file() -> Path:
    """Return the file with the list."""
    return Path(__file__).resolve().parents[3] / "resources" / "engine-wheels.json"


@cache
def downloads() -> tuple[EngineDownload, ...]:
    """Return the engines that can be downloaded for this computer."""
    listed = decode(wheels_file().read_bytes(), list[EngineWheels])
    tags = list(sys_tags())
    fitting = [_fitting(engine, this_system(), tags) for engine in listed]
    return tuple(download for download in fitting if download is not None)


def _fitting(engine: EngineWheels, system: str, tags: Sequence[Tag]) -> EngineDownload | None:
    """Return the best wheel of each package, or None if one is missing. tags: of this Python, best first."""
    ranks = {tag: rank for rank, tag in enumerate(tags)}
    best: dict[str, tuple[int, Wheel]] = {}
    listed = engine.systems.get(system, [])
    for wheel in listed:
        own = [ranks[tag] for tag in parse_wheel_filename(wheel.file)[3] if tag in ranks]
        if own and (wheel.name not in best or min(own) < best[wheel.name][0]):
            best[wheel.name] = (min(own), wheel)
    if not listed or len(best) < len({wheel.name for wheel in listed}):
        return None
    return EngineDownload(engine.engine, engine.version, [wheel for _, wheel in best.values()])
