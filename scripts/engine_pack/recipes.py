"""The recipe of each engine pack: what CMake is told, which tools it needs, and what comes along."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.setup_errors import NO_COMPILER, Trouble, check_compiler

# One library apart from the base engine. The base engine has the same API number, which ggml checks when it loads it.
SHARED = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DGGML_BACKEND_DL=ON",
    "-DGGML_NATIVE=OFF",
    "-DGGML_CCACHE=OFF",
    "-DGGML_BUILD_TESTS=OFF",
    "-DGGML_BUILD_EXAMPLES=OFF",
    "-DGIT_EXE=OFF",  # otherwise the library names the commit of whichever repository contains the source
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
)
CARD = ("-DGGML_CPU=OFF", "-DGGML_OPENMP=OFF")  # the processor's libraries belong to the base engine
WINDOWS, LINUX, MACOS = "windows", "linux", "macos"


@dataclass(frozen=True)
class Recipe:
    """The way to build one pack.

    minutes: about, on two idle cores. is_verified: whether the pack was built to the end and its library loaded.
    """

    backend: str
    target: str  # of ggml's CMake project
    library: str  # pattern of the libraries, without prefix and suffix
    flags: tuple[str, ...]
    systems: tuple[str, ...]
    minutes: int
    cure: Mapping[str, str]  # by system: how to install the tools, if they are missing
    programs: tuple[str, ...] = ()  # any of which shows that the tools are there
    is_verified: bool = False


TOOLKIT = {
    WINDOWS: "Install NVIDIA's CUDA Toolkit {version} and the Visual Studio Build Tools with the workload "
    '"Desktop development with C++"; then start again.'
}
RECIPES = {
    recipe.backend: recipe
    for recipe in (
        Recipe(
            "vulkan",
            "ggml-vulkan",
            "ggml-vulkan",
            (*CARD, "-DGGML_VULKAN=ON"),
            (LINUX, WINDOWS),
            minutes=6,
            is_verified=True,
            cure={
                LINUX: "Install Vulkan's headers, its loader, glslc and the SPIR-V headers (Debian, Ubuntu: `sudo "
                "apt-get install libvulkan-dev glslc spirv-headers`; Fedora: `sudo dnf install vulkan-headers "
                "vulkan-loader-devel glslc spirv-headers-devel`; Arch: `sudo pacman -S vulkan-headers "
                "vulkan-icd-loader shaderc spirv-headers`) and start again.",
                WINDOWS: "Install the Vulkan SDK of LunarG, open a new window and start again.",
            },
        ),
        Recipe(
            "cuda13",
            "ggml-cuda",
            "ggml-cuda",
            (*CARD, "-DGGML_CUDA=ON", "-DGGML_CUDA_NCCL=OFF"),
            (LINUX, WINDOWS),
            minutes=40,
            cure={WINDOWS: TOOLKIT[WINDOWS].format(version=13)},
        ),
        Recipe(
            "cuda12",
            "ggml-cuda",
            "ggml-cuda",
            (*CARD, "-DGGML_CUDA=ON", "-DGGML_CUDA_NCCL=OFF"),
            (LINUX, WINDOWS),
            minutes=40,
            cure={WINDOWS: TOOLKIT[WINDOWS].format(version="12.8")},
        ),
        Recipe(
            "hip",
            "ggml-hip",
            "ggml-hip",
            (*CARD, "-DGGML_HIP=ON"),
            (LINUX, WINDOWS),
            minutes=60,
            programs=("hipcc", "amdclang++"),
            cure={
                LINUX: "Install AMD's ROCm 6.1 or newer with hipBLAS and rocBLAS (from AMD's repository, because "
                "Debian's is too old; Fedora: `sudo dnf install rocm-hip-devel hipblas-devel rocblas-devel`; "
                "Arch: `sudo pacman -S rocm-hip-sdk`) and start again.",
                WINDOWS: "Install AMD's HIP SDK and start again.",
            },
        ),
        Recipe(
            "metal",
            "ggml-metal",
            "ggml-metal",
            (*CARD, "-DGGML_METAL=ON", "-DGGML_METAL_EMBED_LIBRARY=ON"),
            (MACOS,),
            minutes=3,
            programs=("xcrun",),
            cure={MACOS: "Install Xcode's command line tools with `xcode-select --install` and start again."},
        ),
    )
}


def system_name() -> str:
    """Return this operating system as recipes name it."""
    return {"win32": WINDOWS, "darwin": MACOS}.get(sys.platform, LINUX)


def check_tools(recipe: Recipe) -> None:
    """Raise Trouble if the pack cannot be built on this system or a tool is missing."""
    system = system_name()
    if system not in recipe.systems:
        raise Trouble(f"The pack {recipe.backend} cannot be built on {system}, only on {' and '.join(recipe.systems)}.")
    check_compiler()
    if recipe.programs and not any(find_program(name) for name in recipe.programs):
        raise missing_tools(recipe, recipe.programs[0])


def missing_tools(recipe: Recipe, what: str) -> Trouble:
    """Return the error for a missing tool, with the cure for this system."""
    system = system_name()
    cure = recipe.cure.get(system) or NO_COMPILER[sys.platform if sys.platform in NO_COMPILER else "linux"]
    return Trouble(f"The pack {recipe.backend} needs {what}, which was not found. {cure}")


def find_program(name: str) -> Path | None:
    """Return a program on PATH or in ROCm's folder, or None."""
    rocm = Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "bin"
    place = shutil.which(name) or shutil.which(name, path=str(rocm))
    return Path(place) if place else None
