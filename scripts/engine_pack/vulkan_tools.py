"""Vulkan's headers, loader and shader compiler: this system's, or Debian 13's in a folder of the build.

Debian 12's headers (1.3.239) lack types that llama.cpp uses, and its glslc leaves out shaders that make modern cards
fast. Debian 13's packages have both. They are not installed but unpacked into a folder: their glslc runs with the C
library that it was built for, and the pack itself is still linked to this system's, so it runs on old systems too.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from scripts.engine_pack.recipes import RECIPES, missing_tools
from scripts.setup_errors import NO_NETWORK, WRONG_HASH, Trouble

RELEASE = "trixie"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
OLDEST_HEADERS = (1, 3, 272)  # the first with vk::LayerSettingEXT
# The packages that decide what is built, by hash. Those below only run glslc and change with each point release; apt
# verifies them by Debian's signature.
PINNED = {
    "libvulkan-dev": ("1.4.309.0-1", "8d329d465e16168afff58b1bd0dd6db46aac2cc3f56054a481b25a04e90b345a"),
    "libvulkan1": ("1.4.309.0-1", "f47da79cd140264fe21cceb08bc87a71bc7fec05819e4a421f3f518d21101a37"),
    "spirv-headers": ("1.6.1+1.4.309.0-1", "dc18db866d63680351c40ac6b6bece34cb52da64a7799ce1cc4f16f6bff4d064"),
    "glslc": ("2025.2-1", "e05374965709159303041b104d4a26022d6ac5eb8296450364d66ae864a20367"),
    "libshaderc1": ("2025.2-1", "2a67c8f784c65e1aa0d251819c020917405b490fbb543c6a73a52a631e476463"),
}
RUNTIME = ("libc6", "libstdc++6", "libgcc-s1")
# What glslc may be unable to compile, by the name that llama.cpp's configuration prints
FEATURES = {
    "GL_KHR_cooperative_matrix": "cooperative matrices (fast prompts on cards since about 2022)",
    "GL_NV_cooperative_matrix2": "cooperative matrices 2 (fast prompts on NVIDIA cards)",
    "GL_NV_cooperative_matrix_decode_vector": "decoding vectors of cooperative matrices 2 (NVIDIA)",
    "GL_EXT_integer_dot_product": "integer dot products (fast prompts on cards without matrix units)",
    "GL_EXT_bfloat16": "bf16 arithmetic",
    "GL_EXT_float_e2m1": "4-bit floats (e2m1)",
    "GL_EXT_float_e4m3": "8-bit floats (e4m3)",
}
_UNSUPPORTED = re.compile(r"-- (GL_\w+) not supported by glslc")


class VulkanTools(NamedTuple):
    """CMake's flags for the tools, and a description of them for the manifest."""

    flags: tuple[str, ...]
    described: str


def vulkan_tools(folder: Path) -> VulkanTools:
    """Return Vulkan's tools, unpacking Debian's into `folder` if this is a Debian. Raises Trouble."""
    if "VULKAN_SDK" not in os.environ and is_debian() and platform.machine() == "x86_64":
        return debian_tools(folder)
    return system_tools()


def is_debian() -> bool:
    """Return whether this system's apt can verify and unpack Debian's packages."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return False
    return release.get("ID") == "debian" and KEYS.exists() and bool(shutil.which("apt-get"))


def system_tools() -> VulkanTools:
    """Return the installed tools. Raises Trouble if they are missing or too old."""
    recipe = RECIPES["vulkan"]
    if shutil.which("glslc") is None and "VULKAN_SDK" not in os.environ:
        raise missing_tools(recipe, "glslc")
    if sys.platform == "win32":
        return VulkanTools((), "the Vulkan SDK")
    version = header_version(Path(os.environ.get("VULKAN_SDK", "/usr")) / "include")
    if version is None:
        raise missing_tools(recipe, "vulkan/vulkan.hpp")
    if version < OLDEST_HEADERS:
        oldest, own = (".".join(map(str, part)) for part in (OLDEST_HEADERS, version))
        raise Trouble(
            f"The pack vulkan needs Vulkan's headers {oldest} or newer; this system has {own}. Install LunarG's "
            "Vulkan SDK, set VULKAN_SDK as it says, and start again."
        )
    return VulkanTools((), f"Vulkan headers {'.'.join(map(str, version))} and glslc of this system")


def header_version(include: Path) -> tuple[int, int, int] | None:
    """Return the version of the Vulkan headers in a folder, or None without them."""
    try:
        text = (include / "vulkan" / "vulkan_core.h").read_bytes()
        (include / "vulkan" / "vulkan.hpp").stat()
    except OSError:
        return None
    complete = re.search(rb"VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\(\d+, (\d+), (\d+),", text)
    patch = re.search(rb"VK_HEADER_VERSION (\d+)\s", text)
    return (int(complete[1]), int(complete[2]), int(patch[1])) if complete and patch else None


def lacking(configured: str) -> list[str]:
    """Return the features that glslc cannot compile, according to the output of CMake."""
    return [FEATURES.get(name, name) for name in _UNSUPPORTED.findall(configured)]


def debian_tools(folder: Path) -> VulkanTools:
    """Return the tools of Debian's packages, which are downloaded and unpacked once. Raises Trouble."""
    root, whole = folder / "root", folder / "packages.txt"
    listed = "".join(f"{name} {version} {digest}\n" for name, (version, digest) in PINNED.items())
    if not whole.exists() or not whole.read_text("utf-8").startswith(listed):
        shutil.rmtree(folder, ignore_errors=True)
        runtime = unpack(download(folder / "apt"), root)
        whole.write_text(listed + runtime, "utf-8")
    libraries = root / LIBRARIES
    glslc = root / "glslc"
    loader = libraries / "ld-linux-x86-64.so.2"
    glslc.write_text(f'#!/bin/sh\nexec "{loader}" --library-path "{libraries}" "{root}/usr/bin/glslc" "$@"\n', "utf-8")
    glslc.chmod(0o755)
    flags = {
        "Vulkan_INCLUDE_DIR": root / "usr/include",
        "Vulkan_LIBRARY": libraries / "libvulkan.so.1",
        "Vulkan_GLSLC_EXECUTABLE": glslc,
        "SPIRV-Headers_DIR": root / "usr/share/cmake/SPIRV-Headers",
    }
    versions = ", ".join(f"{name} {PINNED[name][0]}" for name in ("libvulkan-dev", "glslc"))
    return VulkanTools(tuple(f"-D{name}={path}" for name, path in flags.items()), f"{versions} of Debian 13")


def download(folder: Path) -> list[Path]:
    """Download Debian 13's packages with this system's apt, without root and without changing its lists.

    The server is the one from which this system gets its own packages. Raises Trouble.
    """
    for part in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(f"deb [signed-by={KEYS}] {server()} {RELEASE} main\n", "utf-8")
    settings = {
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "parts",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",  # the packages are unpacked by whoever builds, not by apt's own user
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    apt_run([*apt, "update"], folder)
    apt_run([*apt, "download", *(f"{name}={version}" for name, (version, _) in PINNED.items()), *RUNTIME], folder)
    return sorted(folder.glob("*.deb"))


def server() -> str:
    """Return the address from which this system gets its packages. Raises Trouble."""
    code = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    addresses = [line.partition(" ")[2] for line in listed.splitlines() if line.split(" ")[0] == code]
    if not addresses:
        raise missing_tools(RECIPES["vulkan"], "the address of Debian's packages")
    return addresses[0]


def apt_run(command: list[str], folder: Path) -> None:
    """Run apt. Raises Trouble."""
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if finished.returncode:
        words = finished.stderr.strip().splitlines() or [""]
        cause = NO_NETWORK if "Failed to fetch" in finished.stderr else f"apt said: {words[-1]}"
        raise Trouble(f"Debian 13's Vulkan headers could not be downloaded. {cause}")


def unpack(packages: list[Path], root: Path) -> str:
    """Verify the pinned packages, unpack all, and return the versions of the others. Raises Trouble."""
    root.mkdir(parents=True)
    runtime = ""
    for package in packages:
        name, version, *_ = package.stem.split("_")
        with package.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if name in PINNED and digest != PINNED[name][1]:
            raise Trouble(WRONG_HASH)
        if name in RUNTIME:
            runtime += f"{name} {version} {digest}\n"
        subprocess.run(["dpkg-deb", "--extract", str(package), str(root)], check=True)
        package.unlink()
    return runtime
