"""NVIDIA's compiler and runtime: an installed CUDA toolkit, or the pinned wheels of the package index.

Not verified: no pack for CUDA has been built from beginning to end yet.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from scripts.engine_pack.recipes import RECIPES, missing_tools
from scripts.engine_source import PROJECT
from scripts.setup_errors import Trouble, explained

RUNTIME = ("libcudart.so*", "libcublas.so*", "libcublasLt.so*")  # without the driver's libcuda, which comes with it
LICENSED = ("cublas", "cuda_runtime")  # the wheels that they come from
# Compute capabilities: Turing, Ampere, Ada, Hopper and Blackwell
ALL_ARCHITECTURES = "75;80;86;89;90;120"
_VERSION = re.compile(r"release (\d+)\.")


class CudaTools(NamedTuple):
    """CMake's flags for the toolkit, the libraries and licenses that come with the pack, and a description."""

    flags: tuple[str, ...]
    runtime: tuple[Path, ...]
    licenses: Mapping[str, Path]  # by the name of their copy
    described: str


def cuda_tools(backend: str, folder: Path, architectures: str) -> CudaTools:
    """Return the toolkit for `cuda12` or `cuda13`; without an installed one, unpack wheels into `folder`.

    architectures: compute capabilities, separated by semicolons; "" for that of this computer's card. Raises Trouble.
    """
    major = backend.removeprefix("cuda")
    chosen = f"-DCMAKE_CUDA_ARCHITECTURES={architectures or own_architecture()}"
    if (nvcc := installed(major)) is not None:
        root = nvcc.resolve().parent.parent
        flags = (chosen, f"-DCMAKE_CUDA_COMPILER={nvcc}", f"-DCUDAToolkit_ROOT={root}")
        licenses = {"cuda.txt": root / "EULA.txt"} if (root / "EULA.txt").exists() else {}
        return CudaTools(flags, tuple(runtime_in(root)), licenses, f"CUDA {major} of this system")
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise missing_tools(RECIPES[backend], f"nvcc of CUDA {major}")
    root = from_wheels(backend, folder)
    flags = (chosen, f"-DCMAKE_CUDA_COMPILER={root}/bin/nvcc", f"-DCUDAToolkit_ROOT={root}")
    return CudaTools(
        flags, tuple(runtime_in(root)), licenses_in(folder / "wheels"), f"NVIDIA's wheels of {backend}.txt"
    )


def installed(major: str) -> Path | None:
    """Return the nvcc of a complete toolkit of this version, or None."""
    place = shutil.which("nvcc") or shutil.which("nvcc", path=str(Path(os.environ.get("CUDA_PATH", "")) / "bin"))
    if place is None:
        return None
    words = subprocess.run([place, "--version"], capture_output=True, text=True, check=False).stdout
    match = _VERSION.search(words)
    nvcc = Path(place)
    return nvcc if match and match[1] == major and has_cublas(nvcc.resolve().parent.parent) else None


def has_cublas(root: Path) -> bool:
    """Return whether a toolkit has cuBLAS. Small installations have only the compiler."""
    patterns = ("lib*/libcublas.so*", "targets/*/lib/libcublas.so*", "lib/x64/cublas.lib")
    return any(next(root.glob(pattern), None) for pattern in patterns)


def own_architecture() -> str:
    """Return the compute capabilities of this computer's cards, or all if the driver names none."""
    try:
        command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
        words = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ALL_ARCHITECTURES
    return ";".join(sorted({cap.replace(".", "") for cap in re.findall(r"\d+\.\d", words)})) or ALL_ARCHITECTURES


def from_wheels(backend: str, folder: Path) -> Path:
    """Install NVIDIA's wheels into `folder` once, and arrange them as a toolkit. Raises Trouble."""
    wheels, root, whole = folder / "wheels", folder / "toolkit", folder / "lock.txt"
    lock = PROJECT / "requirements" / f"{backend}.txt"
    if whole.exists() and whole.read_text("utf-8") == lock.read_text("utf-8"):
        return root
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--only-binary", ":all:", "--target", str(wheels), "-r", str(lock)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise Trouble(explained(finished.stdout + finished.stderr) or "NVIDIA's compiler could not be downloaded.")
    arrange(wheels / "nvidia", root)
    whole.write_text(lock.read_text("utf-8"), "utf-8")
    return root


def arrange(wheels: Path, root: Path) -> None:
    """Link the files of the wheels into one tree, with the names and the driver's stub that CMake looks for."""
    for part in sorted(path for path in wheels.iterdir() if path.is_dir()):
        for file in sorted(part.rglob("*")):
            if file.is_file():
                link = root / file.relative_to(part)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.unlink(missing_ok=True)
                link.hardlink_to(file)
    libraries = root / "lib"
    for file in sorted(libraries.glob("lib*.so.*")):
        plain = libraries / f"{file.name.partition('.so')[0]}.so"
        if not plain.exists():
            plain.symlink_to(file.name)
    if not (root / "lib64").exists():
        (root / "lib64").symlink_to("lib")
    stubs = libraries / "stubs"
    stubs.mkdir(exist_ok=True)
    names = driver_functions(PROJECT)
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in names)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-Wl,-soname,libcuda.so.1", "-o", str(stubs / "libcuda.so")]
    subprocess.run(command, input=source, text=True, check=True)


def driver_functions(project: Path) -> list[str]:
    """Return the functions of NVIDIA's driver that llama.cpp calls. Only a stub to link against needs them."""
    source = project / "build" / "engines" / "source"
    text = "".join(file.read_text("utf-8", "replace") for file in sorted(source.rglob("ggml-cuda/*.cu*")))
    return sorted(set(re.findall(r"\b(cu(?:Device|Mem|Get|Ctx|Init|Driver)\w*)\s*\(", text)))


def licenses_in(wheels: Path) -> dict[str, Path]:
    """Return the licenses of the wheels whose libraries come with the pack, by the name of their copy."""
    files = [file for name in LICENSED for file in sorted(wheels.glob(f"nvidia_{name}*.dist-info/**/License.txt"))]
    info = ((next(part for part in file.parts if part.endswith(".dist-info")), file) for file in files)
    return {f"{folder.partition('-')[0]}.txt": file for folder, file in info}


def runtime_in(root: Path) -> Iterator[Path]:
    """Yield the libraries that a computer without the toolkit needs, under the names that the loader looks for."""
    for folder in (root / "lib", root / "lib64", root / "bin"):
        patterns = ("cudart64_*.dll", "cublas64_*.dll", "cublasLt64_*.dll") if folder.name == "bin" else RUNTIME
        libraries = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
        if libraries:
            yield from (file for file in libraries if re.search(r"\.so\.\d+$|\.dll$", file.name))
            return
