"""The parts of Qt that are shipped: the modules that the app imports, the plugins that it uses, and what those need."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from installers.payload.places import PROJECT
from installers.payload.trees import tool

MODULES = ("QtCore", "QtDBus", "QtGui", "QtNetwork", "QtSvg", "QtWidgets")
PLUGINS = {
    "iconengines": ("qsvgicon",),
    "imageformats": ("qgif", "qico", "qjpeg", "qsvg", "qwebp"),  # pictures that people attach or paste
    "platforminputcontexts": ("composeplatforminputcontextplugin", "ibusplatforminputcontextplugin"),
    "platforms": ("qoffscreen", "qwayland", "qxcb"),
    "platformthemes": ("qgtk3", "qxdgdesktopportal"),  # the desktop's own file dialogs
    "wayland-decoration-client": ("adwaita", "bradient"),
    "wayland-graphics-integration-client": ("qt-plugin-wayland-egl",),
    "wayland-shell-integration": ("xdg-shell",),
    "xcbglintegrations": ("qxcb-egl-integration", "qxcb-glx-integration"),
}
LANGUAGES = ("de", "en")
OWN_FILES = ("__init__.py", "_config.py", "_git_pyside_version.py")
OWN_LIBRARIES = ("libpyside6.abi3.so*",)
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


def imported_modules() -> set[str]:
    """Return the Qt modules that the app's source files import."""
    listed = set()
    for path in (PROJECT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("PySide6"):
                module = (node.module or "").partition(".")[2]
                listed |= {module} if module else {alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                listed |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("PySide6.")}
    return listed


def prune(folder: Path) -> None:
    """Remove everything from an installed PySide6 that is not shipped."""
    kept = {folder / name for name in OWN_FILES}
    kept |= {folder / f"{module}.abi3.so" for module in MODULES}
    kept |= {path for pattern in OWN_LIBRARIES for path in folder.glob(pattern)}
    kept |= {folder / "Qt/plugins" / kind / f"lib{name}.so" for kind, names in PLUGINS.items() for name in names}
    kept |= {folder / "Qt/translations" / f"qtbase_{language}.qm" for language in LANGUAGES}
    kept |= set((folder / "support").glob("*.py"))
    missing = sorted(path.relative_to(folder).as_posix() for path in kept if not path.exists())
    if missing:
        raise FileNotFoundError(f"PySide6 has no {', '.join(missing)}")
    kept |= set(_needed_libraries(kept, folder / "Qt/lib"))
    for path in list(folder.rglob("*")):
        if path.is_file() and path not in kept:
            path.unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    shutil.rmtree(folder / "scripts", ignore_errors=True)


def needed(path: Path) -> list[str]:
    """Return the names of the shared libraries that a file needs."""
    return _NEEDED.findall(tool("readelf", "-d", str(path), label="Reading a library"))


def _needed_libraries(kept: set[Path], libraries: Path) -> Iterator[Path]:
    """Yield Qt's own libraries that the kept files need, and those that these need."""
    seen: set[str] = set()
    waiting = [path for path in sorted(kept) if ".so" in path.name]
    while waiting:
        for name in needed(waiting.pop()):
            path = libraries / name
            if name not in seen and path.exists():
                seen.add(name)
                waiting.append(path)
                yield path
