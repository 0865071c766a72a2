"""The layer with llama.cpp for Windows, compiled on Linux from the same hashed source as the engine for Linux."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from installers.payload.engine_layer import BINDING, SOURCE_NAME, unpacked_source
from installers.payload.places import WORK
from installers.payload.trees import build_python, tool
from installers.windows import cross
from scripts.engine_source import LOCK
from scripts.progress import run
from scripts.setup import clean_environment
from scripts.setup_errors import Trouble, check_disk, explained

VARIANTS = (
    "alderlake", "cannonlake", "cascadelake", "cooperlake", "haswell", "icelake", "ivybridge", "piledriver",
    "sandybridge", "sapphirerapids", "skylakex", "sse42", "x64", "zen4",
)  # fmt: skip
LIBRARIES = ("ggml-base.dll", "ggml.dll", "libllama.dll", "libmtmd.dll", *(f"ggml-cpu-{name}.dll" for name in VARIANTS))
# Without OpenMP: GCC's needs locks of winpthreads at each barrier, of which a token has hundreds. llama.cpp's own
# threads use those of Windows.
OPTIONS = (
    "-DCMAKE_SYSTEM_NAME=Windows", "-DCMAKE_SYSTEM_PROCESSOR=x86_64", f"-DCMAKE_C_COMPILER={cross.C}",
    f"-DCMAKE_CXX_COMPILER={cross.CPP}", f"-DCMAKE_RC_COMPILER={cross.RESOURCES}", "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_NATIVE=OFF", "-DGGML_BACKEND_DL=ON", "-DGGML_CPU_ALL_VARIANTS=ON", "-DGGML_RPC=OFF", "-DGGML_OPENMP=OFF",
    "-DGGML_CCACHE=OFF", "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER",
    "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
    f"-DCMAKE_FIND_ROOT_PATH=/usr/{cross.PREFIX}",
)  # fmt: skip
DEFINES = "-D_WIN32_WINNT=0x0A00"  # Windows 10
LACKING = Path(__file__).with_name("mingw_lacks.h")


def key() -> str:
    """Return a short hash of everything that decides the bytes of the engine."""
    flags = (*OPTIONS, DEFINES, cross.LINK, cross.ASSEMBLER)
    parts = (LACKING.read_text("utf-8"), LOCK.read_text("utf-8"), *flags, cross.compiler_version())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def build(folder: Path) -> None:
    """Make the layer in `folder`. Raises Trouble."""
    made = compiled(WORK / "engine-windows" / key())
    shutil.copytree(made, folder, dirs_exist_ok=True)


def compiled(folder: Path) -> Path:
    """Return the folder with the binding and its libraries, compiled if that has not been done. Raises Trouble."""
    done = folder / "done"
    if done.exists():
        return done
    check_disk(WORK.parent)
    source = unpacked_source(folder / "work")
    build_folder = folder / "work" / "build"
    flags = f"-ffile-prefix-map={source}={SOURCE_NAME} -ffile-prefix-map={build_folder}={SOURCE_NAME}/build"
    flags += f" {cross.ASSEMBLER} {DEFINES} -include {LACKING}"
    environment = {
        **clean_environment(),
        "CFLAGS": flags,
        "CXXFLAGS": flags,
        "LDFLAGS": cross.LINK,
        "GIT_CEILING_DIRECTORIES": str(source.parent),  # or llama.cpp would take our commit for its own
        "SOURCE_DATE_EPOCH": "0",
        "ZERO_AR_DATE": "1",
        "PATH": os.pathsep.join([str(Path(build_python()).parent), os.environ.get("PATH", "")]),
    }
    print("Compiling the engine for Windows (20 minutes on two idle cores).", flush=True)
    with (folder / "build.log").open("a", encoding="utf-8") as log:
        for command in (
            ["cmake", "-S", str(source), "-B", str(build_folder), "-G", "Ninja", *OPTIONS],
            ["cmake", "--build", str(build_folder), "--target", "llama", "mtmd", "ggml"],
        ):
            code, output = run(["nice", "-n", "10", *command], environment, "engine", log)
            if code:
                raise Trouble(explained(output) or f"The engine for Windows could not be compiled: see {log.name}.")
    _collect(source, build_folder / "bin", folder / "part")
    (folder / "part").rename(done)
    shutil.rmtree(folder / "work")
    return done


def _collect(source: Path, made: Path, folder: Path) -> None:
    """Put the binding's Python files and the libraries into `folder`, as an installed wheel has them."""
    shutil.rmtree(folder, ignore_errors=True)
    libraries = folder / "llama_cpp" / "lib"
    libraries.mkdir(parents=True)
    for name in BINDING:
        shutil.copyfile(source / "llama_cpp" / name, folder / "llama_cpp" / name)
    for name in LIBRARIES:
        found = sorted(made.rglob(name))
        if not found:
            raise Trouble(f"The engine for Windows was compiled without {name}.")
        shutil.copyfile(found[0], libraries / name)
        tool(
            cross.STRIP, "--strip-unneeded", "--enable-deterministic-archives", str(libraries / name), label=cross.LABEL
        )
        if strange := cross.needed(libraries / name) - cross.SYSTEM - set(LIBRARIES):
            raise Trouble(f"{name} needs {', '.join(sorted(strange))}, which Windows does not have.")
    version = next(
        line.split(": ", 1)[1]
        for line in (source / "PKG-INFO").read_text("utf-8").splitlines()
        if line.startswith("Version: ")
    )
    info = folder / f"llama_cpp_python-{version}.dist-info"
    (info / "licenses").mkdir(parents=True)
    shutil.copyfile(source / "PKG-INFO", info / "METADATA")
    shutil.copyfile(source / "LICENSE.md", info / "licenses" / "LICENSE.md")
