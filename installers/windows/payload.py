"""The payload for Windows: the same layers as for Linux, with Python, packages and engine for Windows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from app.machine.versions.tree_hash import file_hash
from installers.payload import app_layer, components, engine_layer, libraries_layer, payload
from installers.payload.components import Component
from installers.payload.places import LAYERS
from installers.windows import cross, engine, libraries, python, qt_files

SYSTEM = "windows"
MINGW_TERMS = Path("/usr/share/doc/mingw-w64-common/copyright")


def build(version: str, rebuild: bool, stand_in: bool) -> payload.Payload:
    """Build all layers for Windows. stand_in: with the Python that is only for tests. Raises Trouble."""
    scratch = LAYERS / f"{SYSTEM}.scratch"

    def with_scratch(folder: Path) -> Path:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        return scratch

    python_key = f"{'test' if stand_in else 'made'}-{payload.key(python)}"
    made_python = payload.layer(
        "python", python_key, lambda folder: python.build(folder, with_scratch(folder), stand_in), rebuild, SYSTEM
    )
    libraries_key = payload.key(libraries_layer.LOCK, libraries_layer, libraries, qt_files, python)
    made_libraries = payload.layer(
        "libraries", libraries_key, lambda folder: libraries.build(folder, with_scratch(folder)), rebuild, SYSTEM
    )
    engine_key = f"{engine.key()}-{payload.key(engine, engine_layer)}"
    made_engine = payload.layer("engine", engine_key, build_engine, rebuild, SYSTEM)
    app = payload.layer("app", version, lambda folder: app_layer.build(folder, version), True, SYSTEM)
    shutil.rmtree(scratch, ignore_errors=True)
    made = (made_python, made_libraries, made_engine, app, payload.models(rebuild))
    return payload.assemble(version, made, lambda folders: listed(folders, stand_in))


def build_engine(folder: Path) -> None:
    """Make the layer of the engine, with the terms of the libraries that became part of it. Raises Trouble."""
    engine.build(folder)
    (info,) = folder.glob("*.dist-info")
    shutil.copyfile(MINGW_TERMS, info / "licenses" / "mingw-w64.txt")


def listed(layers: dict[str, Path], stand_in: bool) -> list[Component]:
    """Return the components of the layers, sorted by name."""
    packages = layers["libraries"]
    rust = packages / "cryptography/hazmat/bindings/_rust.pyd"
    made = [*components.python_packages(packages), *components.engine(layers["engine"]), components.MODEL]
    made += components.inside_packages(packages, packages / "PySide6/Qt6Core.dll", rust)
    return components.in_order([*made, *_python(layers["python"], stand_in), *_compiler(layers["engine"])])


def _python(layer: Path, stand_in: bool) -> Iterator[Component]:
    version = "3.13.2" if stand_in else python.VERSION
    sha256 = file_hash(layer / "python313.dll") if stand_in else python.SHA256
    yield Component(
        "CPython for Windows", version, "PSF-2.0", f"pkg:generic/cpython@{version}", "python/licenses", sha256=sha256
    )
    if match := re.search(rb"OpenSSL (\d+\.\d+\.\d+) \d", (layer / "libcrypto-3.dll").read_bytes()):
        found = match[1].decode()
        yield Component("OpenSSL (in CPython)", found, "Apache-2.0", f"pkg:generic/openssl@{found}?for=cpython",
                        "python/licenses")  # fmt: skip


def _compiler(layer: Path) -> Iterator[Component]:
    """Yield what the compiler added to each library of the engine."""
    (info,) = layer.glob("*.dist-info")
    version = cross.compiler_version().split()[-1].removesuffix("-posix")
    yield Component(
        "GCC's runtime (in the engine)", version, "GPL-3.0-or-later WITH GCC-exception-3.1",
        f"pkg:generic/gcc@{version}", f"engine/{info.name}/licenses",
    )  # fmt: skip
    yield Component(
        "MinGW-w64's runtime (in the engine)", "10.0.0", "ZPL-2.1 AND MIT", "pkg:generic/mingw-w64@10.0.0",
        f"engine/{info.name}/licenses",
    )  # fmt: skip
