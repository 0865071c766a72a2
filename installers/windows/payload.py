"""The payload for Windows: the same layers as for Linux, with Python, packages and engine for Windows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from app.machine.versions.tree_hash import file_hash
from installers.payload import app_layer, components, engine_layer, libraries_layer, payload
from installers.payload.components import Component
from installers.payload.fetched import LIST
from installers.payload.places import LAYERS, PACKAGE_LAYERS
from installers.payload.trees import tool
from installers.windows import cross, engine, libraries, python, python_terms, qt_files

SYSTEM = payload.WINDOWS
MICROSOFT = "LicenseRef-Microsoft-Distributable-Code"  # its text is in the license of CPython for Windows
RUNTIMES = ("vcruntime140*.dll", "msvcp140*.dll", "concrt140*.dll")
INSIDE_PYTHON = (  # what CPython for Windows contains: name, license, a file of it, where that file states the version
    ("libffi", "MIT", "libffi-8.dll", rb""),
    ("SQLite", "blessing", "sqlite3.dll", rb"(3\.\d\d\.\d+)"),
    ("XZ", "LicenseRef-public-domain", "_lzma.pyd", rb""),
    ("bzip2", "bzip2-1.0.6", "_bz2.pyd", rb"(1\.0\.\d+), \d"),
    ("Expat", "MIT", "pyexpat.pyd", rb"expat_(\d+\.\d+\.\d+)"),
    ("zlib", "Zlib", "python313.dll", rb"\0(1\.[23]\.\d[.\d]*)\0"),
    ("mpdecimal", "BSD-2-Clause", "_decimal.pyd", rb"\0(2\.5\.\d|4\.\d\.\d)\0"),
)
MINGW_TERMS = Path("/usr/share/doc/mingw-w64-common/copyright")


def build(version: str, rebuild: bool, stand_in: bool) -> payload.Payload:
    """Build all layers for Windows. stand_in: with the Python that is only for tests. Raises Trouble."""
    scratch = LAYERS / f"{SYSTEM}.scratch"

    def with_scratch(folder: Path) -> Path:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        return scratch

    def build_python(folder: Path) -> None:
        python.build(folder, with_scratch(folder), stand_in)
        python_terms.add(folder, scratch)

    python_key = payload.key(python, python_terms, LIST, " ".join(python.IMPORTS))
    python_key = f"{'test' if stand_in else 'made'}-{python_key}"
    made_python = payload.layer("python", python_key, build_python, rebuild, SYSTEM)
    lock, packages = libraries_layer.LOCK.read_text("utf-8"), []
    for name in PACKAGE_LAYERS:
        modules = (libraries_layer, libraries, python, *([qt_files] if name == "qt" else []))
        inputs = payload.key(libraries_layer.lock_of(name, lock), *modules)
        packages.append(payload.layer(name, inputs, partial(libraries.build, layer=name), rebuild, SYSTEM))
    engine_key = f"{engine.key()}-{payload.key(engine, engine_layer)}"
    made_engine = payload.layer("engine", engine_key, build_engine, rebuild, SYSTEM)
    app = payload.layer("app", version, lambda folder: app_layer.build(folder, version), True, SYSTEM)
    shutil.rmtree(scratch, ignore_errors=True)
    made = (made_python, *packages, made_engine, app, payload.models(rebuild))
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
    made = [*components.python_packages(layers), *components.engine(layers["engine"]), components.MODEL]
    made += components.inside_packages(packages, layers["qt"] / "PySide6/Qt6Core.dll", rust)
    made += [*_python(layers["python"], stand_in), *_compiler(layers["engine"])]
    return components.in_order([*made, *microsoft(layers)])


def _python(layer: Path, stand_in: bool) -> Iterator[Component]:
    version = "3.13.2" if stand_in else python.VERSION
    sha256 = file_hash(layer / "python313.dll") if stand_in else python.SHA256
    yield Component(
        "CPython for Windows", version, f"PSF-2.0 AND {MICROSOFT}", f"pkg:generic/cpython@{version}",
        "python/licenses", sha256=sha256,
    )  # fmt: skip
    if match := re.search(rb"OpenSSL (\d+\.\d+\.\d+) \d", (layer / "libcrypto-3.dll").read_bytes()):
        found = match[1].decode()
        yield Component("OpenSSL (in CPython)", found, "Apache-2.0", f"pkg:generic/openssl@{found}?for=cpython",
                        "python/licenses")  # fmt: skip
    for name, terms, file, pattern in INSIDE_PYTHON:
        inside = re.search(pattern, (layer / file).read_bytes()) if pattern else None
        stated = inside[1].decode() if inside else f"as in CPython {version}"
        purl = f"pkg:generic/{name.lower()}@{stated.replace(' ', '-')}?for=cpython"
        yield Component(f"{name} (in CPython)", stated, terms, purl, "python/licenses")


def microsoft(layers: dict[str, Path]) -> Iterator[Component]:
    """Yield the versions of Microsoft's C and C++ runtime that lie in the layers, each with the layer."""
    for layer, folder in sorted(layers.items()):
        found = {file_version(path) for pattern in RUNTIMES for path in folder.rglob(pattern)}
        for version in sorted(found - {""}):
            yield Component(
                f"Microsoft Visual C++ runtime (in {layer})", version, MICROSOFT,
                f"pkg:generic/vcruntime@{version}?for={layer}", "python/licenses",
            )  # fmt: skip


def file_version(path: Path) -> str:
    """Return the version that a file for Windows states, or ""."""
    stated = re.search("FileVersion\0+".encode("utf-16-le")[:-2] + rb"(?:\0\0)+((?:[\d.]\0)+)", path.read_bytes())
    return stated[1].decode("utf-16-le") if stated else ""


def _compiler(layer: Path) -> Iterator[Component]:
    """Yield what the compiler added to each library of the engine, and to the programs that start Poolhouse."""
    (info,) = layer.glob("*.dist-info")
    version = cross.compiler_version().split()[-1].removesuffix("-posix")
    shown = tool("dpkg-query", "-W", "-f", "${Version}", "mingw-w64-x86-64-dev", label=cross.LABEL)
    mingw = shown.strip().partition("-")[0]
    yield Component(
        "GCC's runtime (in the engine and the starters)", version, "GPL-3.0-or-later WITH GCC-exception-3.1",
        f"pkg:generic/gcc@{version}", f"engine/{info.name}/licenses",
    )  # fmt: skip
    yield Component(
        "MinGW-w64's runtime (in the engine and the starters)", mingw, "ZPL-2.1 AND MIT",
        f"pkg:generic/mingw-w64@{mingw}", f"engine/{info.name}/licenses",
    )  # fmt: skip
