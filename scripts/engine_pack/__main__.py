"""`python -m scripts.engine_pack BACKEND` builds an engine pack into build/engines, from the hashed source.

An interrupted build goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TextIO

from app.core.reasons import size
from app.machine.engine_packs.pack_reader import manifest_hash
from app.machine.engine_packs.pack_writer import write_archive
from app.machine.engine_packs.store import this_system
from scripts.engine_pack import cuda_tools, vulkan_tools
from scripts.engine_pack.pack_folder import write_pack
from scripts.engine_pack.recipes import MACOS, RECIPES, SHARED, WINDOWS, Recipe, check_tools, system_name
from scripts.engine_source import PROJECT, engine, fetch
from scripts.progress import clock_face, run
from scripts.setup_errors import Trouble, check_disk, explained

WORK = PROJECT / "build" / "engines"
PARTS = ("ggml/", "LICENSE")
GIB = 1 << 30
NEEDS_BYTES = 2 * GIB
# ggml as a part of a project: by itself, it would need a file that the source package leaves out.
PROJECT_FILE = """cmake_minimum_required(VERSION 3.19)
project(engine-pack C CXX)
add_subdirectory(${GGML_SOURCE} ggml)
"""
_GGML_VERSION = re.compile(r"GGML_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)")
_COMPILER = re.compile(r"-- The CXX compiler identification is (.+)")


class Tools(NamedTuple):
    """The needs of a back end beside a compiler: flags, libraries and licenses that come along, and a description."""

    flags: tuple[str, ...] = ()
    runtime: tuple[Path, ...] = ()
    licenses: Mapping[str, Path] = MappingProxyType({})
    described: str = ""


def main() -> int:
    """Build a pack, or explain in one sentence why that failed. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.engine_pack", description=__doc__)
    parser.add_argument("backend", choices=sorted(RECIPES), help="what the pack computes with")
    parser.add_argument("--jobs", type=int, default=0, help="compilers at once (default: one per core)")
    architectures = "compute capabilities for CUDA, such as 86;89 (default: this computer's card; `all`: every card)"
    parser.add_argument("--architectures", default="", help=architectures)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cards = cuda_tools.ALL_ARCHITECTURES if chosen.architectures == "all" else chosen.architectures
    try:
        build(RECIPES[chosen.backend], chosen.jobs, cards)
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next run goes on where this one stopped.", file=sys.stderr)
        return 130
    return 0


def build(recipe: Recipe, jobs: int, architectures: str) -> Path:
    """Build a pack and return its folder. Raises Trouble."""
    check_tools(recipe)
    check_disk(PROJECT, NEEDS_BYTES)
    started = time.monotonic()
    say(f"Building the engine pack {recipe.backend}: about {recipe.minutes} minutes on two idle cores.")
    if not recipe.is_verified:
        say("    Nobody has built this pack to the end yet, so expect surprises.")
    source = fetch(WORK / "source", PARTS)
    tools = tools_for(recipe, architectures)
    work = WORK / "work" / recipe.backend
    work.mkdir(parents=True, exist_ok=True)
    with (work / "build.log").open("a", encoding="utf-8") as log:
        output = configure(recipe, source, work, tools, log)
        lacks = vulkan_tools.lacking(output) if recipe.backend == "vulkan" else []
        for feature in lacks:
            say(f"    The shader compiler cannot compile {feature}; the pack will do without.")
        compile_target(recipe, work, jobs, log)
    about = {
        "backend": recipe.backend,
        "engine_version": engine().partition("==")[2],
        "ggml_version": ggml_version(source),
        "system": this_system(),
        "compiler": ", ".join(filter(None, (compiler_in(output), tools.described))),
        "flags": [*SHARED, *recipe.flags],
        "lacks": lacks,
    }
    libraries = built_libraries(recipe, work / "cmake" / "bin")
    licenses = {"llama.cpp.txt": source / "LICENSE", **tools.licenses}
    pack = write_pack(WORK, about, libraries, tools.runtime, licenses)
    packed = write_archive(pack, pack.with_name(f"{pack.name}.tar.gz"), pack.name)
    n_bytes = sum(file.stat().st_size for file in pack.rglob("*") if file.is_file())
    took = clock_face(time.monotonic() - started)
    say(f"Built in {took}: {pack.name}, {size(n_bytes)} ({size(packed.stat().st_size)} compressed).")
    say(f"Its checksum, by which other computers can recognize it: {manifest_hash(pack)}")
    say(f"Install it with `poolhouse engine add {packed.relative_to(PROJECT)}`.")
    return pack


def tools_for(recipe: Recipe, architectures: str) -> Tools:
    """Return the tools of a back end, after downloading them where a recipe says so. Raises Trouble."""
    folder = WORK / "tools" / recipe.backend
    if recipe.backend == "vulkan":
        vulkan = vulkan_tools.vulkan_tools(folder)
        return Tools(vulkan.flags, described=vulkan.described)
    if recipe.backend.startswith("cuda"):
        return Tools(*cuda_tools.cuda_tools(recipe.backend, folder, architectures))
    return Tools()


def configure(recipe: Recipe, source: Path, work: Path, tools: Tools, log: TextIO) -> str:
    """Run CMake's configuration and return its output, also if an earlier run did it. Raises Trouble."""
    project, kept = work / "project", work / "configured.txt"
    command = ["cmake", "-G", "Ninja", "-S", str(project), "-B", str(work / "cmake")]
    command += [f"-DGGML_SOURCE={source / 'ggml'}", *SHARED, *recipe.flags, *tools.flags, *system_flags(source, work)]
    if kept.exists() and (first := kept.read_text("utf-8").partition("\n"))[0] == " ".join(command):
        return first[2]
    shutil.rmtree(work / "cmake", ignore_errors=True)  # a changed flag does not change everything that it decided
    project.mkdir(exist_ok=True)
    (project / "CMakeLists.txt").write_text(PROJECT_FILE, "utf-8")
    code, output = run(command, build_environment(), "configuring", log)
    if code:
        raise Trouble(explained(output) or f"CMake could not configure the pack. All of its output is in {log.name}.")
    kept.write_text(" ".join(command) + "\n" + output, "utf-8")
    return output


def system_flags(source: Path, work: Path) -> list[str]:
    """Return the flags that depend on this system: no symbols, no paths of this computer, libraries found beside."""
    system = system_name()
    if system == WINDOWS:
        return []
    prefixes = f"-ffile-prefix-map={source}=. -ffile-prefix-map={work}=build"
    flags = [f"-DCMAKE_C_FLAGS={prefixes}", f"-DCMAKE_CXX_FLAGS={prefixes}"]
    if system == MACOS:
        return [*flags, "-DCMAKE_INSTALL_RPATH=@loader_path", "-DCMAKE_OSX_DEPLOYMENT_TARGET=13.3"]
    return [*flags, "-DCMAKE_INSTALL_RPATH=$ORIGIN", "-DCMAKE_MODULE_LINKER_FLAGS=-s -Wl,--build-id=none"]


def compile_target(recipe: Recipe, work: Path, jobs: int, log: TextIO) -> None:
    """Compile the back end. Raises Trouble."""
    command = ["cmake", "--build", str(work / "cmake"), "--target", recipe.target]
    command += ["-j", str(jobs)] if jobs else []
    code, output = run(command, build_environment(), "compiling", log)
    if code:
        raise Trouble(explained(output) or f"The pack could not be compiled. All of the output is in {log.name}.")


def built_libraries(recipe: Recipe, folder: Path) -> list[Path]:
    """Return the libraries that the build made. Raises Trouble if there are none."""
    names = {WINDOWS: f"{recipe.library}.dll"}.get(system_name(), f"lib{recipe.library}.so")
    libraries = sorted(file for file in folder.glob(names) if not file.is_symlink())
    if not libraries:
        raise Trouble(f"The build finished without {names}. Delete {folder.parent} and start again.")
    return libraries


def ggml_version(source: Path) -> str:
    """Return the version of ggml in the source."""
    return ".".join(_GGML_VERSION.findall((source / "ggml" / "CMakeLists.txt").read_text("utf-8"))[:3])


def compiler_in(output: str) -> str:
    """Return the compiler that CMake named, with the processor that it compiles for."""
    match = _COMPILER.search(output)
    return f"{match[1].strip()} ({platform.machine()})" if match else ""


def build_environment() -> dict[str, str]:
    """Return our environment, with the build tools of .venv first on PATH."""
    tools = sysconfig.get_path("scripts")
    return {**os.environ, "PATH": os.pathsep.join([tools, os.environ.get("PATH", os.defpath)])}


def say(text: str) -> None:
    """Print a line immediately."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
