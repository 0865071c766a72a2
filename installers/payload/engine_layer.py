"""The layer with llama.cpp, compiled from its hashed source for every kind of processor, without RPC."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from installers.payload import qt_parts
from installers.payload.places import WORK
from installers.payload.trees import build_python, tool
from scripts.engine_source import LOCK, download, engine
from scripts.progress import run
from scripts.setup import PIP, Build, clean_environment
from scripts.setup_errors import Trouble, check_compiler, check_disk, explained

SOURCE_NAME = "/engine"  # what the engine's own messages call the folder of its source
LIBGOMP = "../../../python/lib"  # seen from the libraries: the layer of Python has it
KEPT_LIBRARIES = ("libggml", "libllama", "libmtmd")
# Otherwise each library would name the folder it is linked in until it is installed, and its build ID would follow from
# that, so that no two builds were the same.
RELATIVE = "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON"
BINDING = ("__init__.py", "_ctypes_extensions.py", "_ggml.py", "llama_cpp.py", "llama_cpp_ext.py", "mtmd_cpp.py")


def key() -> str:
    """Return a short hash of everything that decides the bytes of the engine."""
    compiler = tool("c++", "--version", label="Compiling the engine").splitlines()[0]
    parts = (LOCK.read_text("utf-8"), cmake_args(), compiler, sys.platform)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def cmake_args() -> str:
    """Return the options with which the engine that ships is compiled."""
    return f"{Build(rpc=False).cmake_args} {RELATIVE}"


def build(folder: Path) -> None:
    """Make the layer in `folder`. Raises Trouble."""
    wheel = engine_wheel(WORK / "engine" / key())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    package = folder / "llama_cpp"
    for path in list(package.iterdir()):
        if path.name not in BINDING and path.name != "lib":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    libraries = package / "lib"
    for path in list(libraries.iterdir()):
        if not path.name.startswith(KEPT_LIBRARIES) or "-rpc" in path.name:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    _one_file_each(libraries)
    for path in sorted(libraries.glob("*.so*")):
        if not path.is_symlink():
            tool("strip", "--strip-unneeded", str(path), label="Making the engine smaller")
            tool("patchelf", "--set-rpath", f"$ORIGIN:$ORIGIN/{LIBGOMP}", str(path), label="Making the engine movable")
    for name in ("bin", "include", "lib"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for record in folder.glob("*.dist-info/RECORD"):
        record.unlink()


def engine_wheel(folder: Path) -> Path:
    """Return the compiled binding with the engine in it, compiled if it is not in `folder`. Raises Trouble."""
    done = sorted(folder.glob("*.whl"))
    if done:
        return done[0]
    check_compiler()
    check_disk(WORK.parent)
    source = unpacked_source(folder / "work")
    flag = f"-ffile-prefix-map={source}={SOURCE_NAME}"
    environment = {
        **clean_environment(),
        "CMAKE_ARGS": cmake_args(),
        "CFLAGS": flag,
        "CXXFLAGS": flag,
        "GIT_CEILING_DIRECTORIES": str(source.parent),  # or llama.cpp would take our commit for its own
        "SOURCE_DATE_EPOCH": "0",
        "ZERO_AR_DATE": "1",
        "PATH": os.pathsep.join([str(Path(build_python()).parent), os.environ.get("PATH", "")]),
    }
    command = [build_python(), *PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--verbose"]
    command += [str(source), "-w", str(folder / "made")]
    print("Compiling the engine (10 minutes on two idle cores).", flush=True)
    with (folder / "build.log").open("a", encoding="utf-8") as log:
        code, output = run(command, environment, "engine", log)
    if code:
        raise Trouble(explained(output) or f"The engine could not be compiled. All of the output is in {log.name}.")
    (made,) = (folder / "made").glob("*.whl")
    wheel = made.rename(folder / made.name)
    shutil.rmtree(folder / "work")
    return wheel


def unpacked_source(work: Path) -> Path:
    """Return the unpacked source package, whose hash was checked."""
    kept = WORK / "source"
    kept.mkdir(parents=True, exist_ok=True)
    name, _, version = engine().partition("==")
    stem = f"{name.replace('-', '_')}-{version}"
    if not (kept / f"{stem}.tar.gz").exists():
        try:
            download(kept)
        except subprocess.CalledProcessError:
            raise Trouble(f"The source of the engine, {engine()}, could not be downloaded.") from None
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    shutil.unpack_archive(kept / f"{stem}.tar.gz", work, filter="data")
    return work / stem


def _one_file_each(libraries: Path) -> None:
    """Replace the copies of a library under its shorter names by links. A wheel cannot contain links."""
    for path in sorted(libraries.glob("*.so.*")):
        stem = path.name.partition(".so.")[0]
        if path.name.count(".") > 2:  # libllama.so.0.5.0; the loader asks for libllama.so.0
            path.unlink()
        else:
            shorter = libraries / f"{stem}.so"
            shorter.unlink()
            shorter.symlink_to(path.name)


def needed_by(layer: Path) -> set[str]:
    """Return the names of all libraries that the engine needs."""
    files = (path for path in (layer / "llama_cpp" / "lib").glob("*.so*") if not path.is_symlink())
    return {name for path in files for name in qt_parts.needed(path)}
