"""The parts of Qt for Windows that are shipped: the modules of Linux, the plugins of Windows, and what those need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from installers.payload.qt_parts import LANGUAGES, MODULES, OWN_FILES
from installers.windows.cross import needed

PLUGINS = {
    "iconengines": ("qsvgicon",),
    "imageformats": ("qgif", "qico", "qjpeg", "qsvg", "qwebp"),  # pictures that people attach or paste
    "platforms": ("qoffscreen", "qwindows"),
    "styles": ("qmodernwindowsstyle",),
}
OWN_LIBRARIES = ("pyside6.abi3.dll",)


def prune(folder: Path) -> None:
    """Remove everything from an installed PySide6 for Windows that is not shipped."""
    kept = {folder / name for name in (*OWN_FILES, *OWN_LIBRARIES)}
    kept |= {folder / f"{module}.pyd" for module in MODULES}
    kept |= {folder / "plugins" / kind / f"{name}.dll" for kind, names in PLUGINS.items() for name in names}
    kept |= {folder / "translations" / f"qtbase_{language}.qm" for language in LANGUAGES}
    kept |= set((folder / "support").glob("*.py"))
    missing = sorted(path.relative_to(folder).as_posix() for path in kept if not path.exists())
    if missing:
        raise FileNotFoundError(f"PySide6 for Windows has no {', '.join(missing)}")
    kept |= set(_needed_libraries(kept, folder))
    for path in list(folder.rglob("*")):
        if path.is_file() and path not in kept:
            path.unlink()


def _needed_libraries(kept: set[Path], folder: Path) -> Iterator[Path]:
    """Yield the libraries beside PySide6 that the kept files need, and those that these need."""
    there = {path.name.lower(): path for path in folder.glob("*.dll")}
    seen: set[str] = set()
    waiting = [path for path in sorted(kept) if path.suffix in (".dll", ".pyd")]
    while waiting:
        for name in sorted(needed(waiting.pop())):
            if name in there and name not in seen:
                seen.add(name)
                waiting.append(there[name])
                yield there[name]
