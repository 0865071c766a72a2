"""The layers with the Python packages for Windows: the wheels of requirements/run.txt that pip would choose there."""

from __future__ import annotations

import shutil
from pathlib import Path

from installers.payload.libraries_layer import LOCK, install, lock_for, lock_of, trim
from installers.windows import qt_files
from installers.windows.python import TAG, VERSION

# What pip would find on Windows
SYSTEM = {
    "implementation_name": "cpython",
    "implementation_version": VERSION,
    "os_name": "nt",
    "platform_machine": "AMD64",
    "platform_python_implementation": "CPython",
    "platform_release": "10",
    "platform_system": "Windows",
    "platform_version": "10.0.19045",
    "python_full_version": VERSION,
    "python_version": VERSION.rpartition(".")[0],
    "sys_platform": "win32",
    "extra": "",
}

# Of pywin32, only its modules for processes are used, by the package mcp.
UNWANTED = (
    "PyWin32.chm", "adodbapi", "isapi", "pythoncom.py", "pythonwin", "pywin32.pth", "win32/Demos", "win32/include",
    "win32/libs", "win32/pythonservice.exe", "win32/scripts", "win32/test", "win32com", "win32comext",
)  # fmt: skip


def build(folder: Path, layer: str) -> None:
    """Make a layer in `folder`. Raises Trouble."""
    lock = lock_of(layer, for_windows(LOCK.read_text("utf-8")))
    words = ["--platform", "win_amd64", "--implementation", "cp", "--python-version", VERSION]
    words += ["--abi", TAG, "--abi", "abi3", "--abi", "none", "--ignore-requires-python"]  # it asks the builder's
    install(folder, lock, words)
    if layer == "qt":
        qt_files.prune(folder / "PySide6")
    for name in UNWANTED:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    # Its modules find these libraries by a startup file, which our Python does not read, or beside themselves.
    for path in sorted((folder / "pywin32_system32").glob("*.dll")):
        shutil.copyfile(path, folder / "win32" / path.name)
    trim(folder)


def for_windows(lock: str) -> str:
    """Return the part of a lock that holds for Windows, without its conditions."""
    return lock_for(lock, SYSTEM)
