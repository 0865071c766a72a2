"""The Python packages for macOS on Apple's processors: the wheels that pip would choose there, checked by hash."""

from __future__ import annotations

import shutil
from pathlib import Path

from installers.payload import libraries_layer
from installers.payload.libraries_layer import LOCK, lock_for, lock_of, trim
from installers.payload.qt_parts import LANGUAGES, MODULES, OWN_FILES

PYTHON = "3.13"
PLATFORM = "macosx_13_0_arm64"
# What pip would find on a Mac
SYSTEM = {
    "implementation_name": "cpython",
    "implementation_version": f"{PYTHON}.0",
    "os_name": "posix",
    "platform_machine": "arm64",
    "platform_python_implementation": "CPython",
    "platform_release": "22.0.0",
    "platform_system": "Darwin",
    "platform_version": "Darwin Kernel Version 22.0.0",
    "python_full_version": f"{PYTHON}.0",
    "python_version": PYTHON,
    "sys_platform": "darwin",
    "extra": "",
}
PLUGINS = {
    "iconengines": ("libqsvgicon",),
    "imageformats": ("libqgif", "libqico", "libqjpeg", "libqsvg", "libqwebp"),
    "platforms": ("libqcocoa", "libqoffscreen"),
    "styles": ("libqmacstyle",),
}


def lock_for_macos(lock: str) -> str:
    """Return the part of a lock that holds for macOS, without its conditions."""
    return lock_for(lock, SYSTEM)


def install(folder: Path, layer: str) -> None:
    """Install the packages of a layer into `folder`, and of Qt the parts that the app uses. Raises Trouble."""
    lock = lock_of(layer, lock_for_macos(LOCK.read_text("utf-8")))
    words = ["--platform", PLATFORM, "--implementation", "cp", "--python-version", PYTHON]
    words += ["--abi", "cp313", "--abi", "abi3", "--abi", "none", "--ignore-requires-python"]  # it asks the builder's
    libraries_layer.install(folder, lock, words)
    if layer == "qt":
        prune_qt(folder / "PySide6")
    trim(folder)


def prune_qt(folder: Path) -> None:
    """Remove the parts of Qt that the app does not use. Its modules need only each other. Raises FileNotFoundError."""
    kept = [folder / name for name in OWN_FILES]
    kept += [folder / f"{module}.abi3.so" for module in MODULES]
    kept += [folder / f"Qt/lib/{module}.framework" for module in MODULES]
    kept += [folder / f"Qt/plugins/{kind}/{name}.dylib" for kind, names in PLUGINS.items() for name in names]
    kept += [folder / f"Qt/translations/qtbase_{language}.qm" for language in LANGUAGES]
    kept += [*folder.glob("libpyside6.abi3*.dylib"), folder / "support"]
    if missing := sorted(path.relative_to(folder).as_posix() for path in kept if not path.exists()):
        raise FileNotFoundError(f"PySide6 has no {', '.join(missing)}")
    for path in list(folder.rglob("*")):
        if not path.is_dir() and not any(path == part or part in path.parents for part in kept):
            path.unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
    shutil.rmtree(folder / "scripts", ignore_errors=True)
