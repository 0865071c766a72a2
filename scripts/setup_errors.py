"""The problems that can stop the setup on a fresh machine, each as a sentence with a remedy."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GIB = 1 << 30
NEEDS_BYTES = 2 * GIB  # 0.5 GiB remain in use, the compiler's temporary files come on top, and the rest is margin

NO_VENV = (
    "Python's venv module is incomplete on this computer. On Debian and Ubuntu, install it with `sudo apt-get "
    "install python3-venv`; elsewhere, install Python from python.org. Then start again."
)
NO_COMPILER: dict[str, str] = {
    "linux": (
        "No working C++ compiler was found, and the engine has to be compiled. Install one "
        "(Debian, Ubuntu: `sudo apt-get install build-essential`; Fedora: `sudo dnf install "
        "gcc-c++`; Arch: `sudo pacman -S base-devel`) and start again."
    ),
    "darwin": (
        "No working C++ compiler was found, and the engine has to be compiled. Install Apple's "
        "with `xcode-select --install` and start again."
    ),
    "win32": (
        "No C++ compiler was found, and the engine has to be compiled. Install the Visual Studio "
        'Build Tools with the workload "Desktop development with C++" and start again.'
    ),
}
DISK_FULL = "The disk is full. Free some space and start again; finished steps are not repeated."
WRONG_HASH = (
    "A downloaded package differs from the one that Poolhouse expects, so it was not installed. Try "
    "another network. If that does not help, report it."
)
NO_NETWORK = (
    "The package server cannot be reached. Check this computer's internet connection (or proxy) "
    "and start again; finished steps are not repeated."
)
NO_MEMORY = (
    "The compiler ran out of memory. Close other programs, or set CMAKE_BUILD_PARALLEL_LEVEL=1, and start again."
)
NOT_OFFERED = (
    "A required package is not available for this computer's system, processor or Python version. Poolhouse "
    "needs Python 3.11 to 3.13 on a 64-bit system."
)

# Output of pip or the compiler -> its meaning. The first match counts.
SENTENCES: list[tuple[tuple[str, ...], str]] = [
    (("No space left on device", "[Errno 28]", "There is not enough space on the disk"), DISK_FULL),
    (("DO NOT MATCH THE HASHES",), WRONG_HASH),
    (
        (
            "Temporary failure in name resolution",
            "Name or service not known",
            "nodename nor servname",
            "getaddrinfo failed",
            "NewConnectionError",
            "ConnectTimeoutError",
            "Read timed out",
            "Connection refused",
            "Network is unreachable",
            "Connection broken",
            "ProxyError",
        ),
        NO_NETWORK,
    ),
    (("terminated program cc1plus", "Killed signal", "out of heap space"), NO_MEMORY),
    (
        ("CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "compiler identification is unknown"),
        NO_COMPILER.get(sys.platform, NO_COMPILER["linux"]),
    ),
    (("No matching distribution found", "not a supported wheel on this platform"), NOT_OFFERED),
]


class Trouble(Exception):
    """Raised if the setup cannot continue. The message is the complete sentence for the user."""


def explained(output: str) -> str | None:
    """Explain the output of a failed command in one sentence, or return None if the cause is unknown."""
    for signs, sentence in SENTENCES:
        if any(sign in output for sign in signs):
            return sentence
    return None


def check_python() -> None:
    """Raise Trouble if this Python cannot create virtual environments."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise Trouble(NO_VENV)


def check_disk(project: Path, needs_bytes: int = NEEDS_BYTES) -> None:
    """Raise Trouble if there is too little disk space for the project or for temporary files."""
    for folder in (project, Path(tempfile.gettempdir())):
        free_bytes = shutil.disk_usage(str(folder)).free
        if free_bytes < needs_bytes:
            raise Trouble(
                f"The disk that holds {folder} has {free_bytes / GIB:.1f} GiB free, but the setup needs "
                f"{needs_bytes / GIB:.1f} GiB. Free some space and start again."
            )


def check_compiler() -> None:
    """Raise Trouble if no C++ compiler can build a small program."""
    has_compiler = _visual_studio() if sys.platform == "win32" else _compiles()
    if not has_compiler:
        raise Trouble(NO_COMPILER.get(sys.platform, NO_COMPILER["linux"]))


def _compiles() -> bool:
    """Return whether a tiny program can be compiled and linked. The stub of a missing compiler fails this test."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    compiler = next((name for name in names if name and shutil.which(name.split()[0])), None)
    if compiler is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text("#include <thread>\n#include <vector>\nint main() { return 0; }\n")
        command = [*compiler.split(), str(source), "-o", str(Path(folder, "probe"))]
        try:
            return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def _visual_studio() -> bool:
    """Return whether Microsoft's compiler is on PATH or known to its installer."""
    if shutil.which("cl") or shutil.which("clang-cl"):
        return True
    roots = (os.environ.get("PROGRAMFILES(X86)"), os.environ.get("PROGRAMFILES"))
    finders = [Path(root, "Microsoft Visual Studio", "Installer", "vswhere.exe") for root in roots if root]
    finder = next((path for path in finders if path.exists()), None)
    if finder is None:
        return False
    tools = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"
    command = [str(finder), "-latest", "-products", "*", "-requires", tools, "-property", "installationPath"]
    return bool(subprocess.run(command, capture_output=True, check=False, timeout=60).stdout.strip())
