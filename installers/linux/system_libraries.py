"""The system's own libraries that the payload needs, and the Debian packages that have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from app.machine.versions.tree_hash import files_in
from installers.payload.qt_parts import needed
from installers.payload.trees import tool
from scripts.setup_errors import Trouble

# Debian 12, or the name since Debian 13 and Ubuntu 24.04.
PACKAGES = {
    "ld-linux-x86-64.so.2": "libc6",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libbrotlicommon.so.1": "libbrotli1",
    "libbrotlidec.so.1": "libbrotli1",
    "libc.so.6": "libc6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libdl.so.2": "libc6",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libgcc_s.so.1": "libgcc-s1",
    "libgio-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libglib-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libgobject-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libgthread-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libm.so.6": "libc6",
    "libpthread.so.0": "libc6",
    "libresolv.so.2": "libc6",
    "librt.so.1": "libc6",
    "libstdc++.so.6": "libstdc++6",
    "libutil.so.1": "libc6",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xinput.so.0": "libxcb-xinput0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
# Loaded only where the desktop has what they need; without it Qt does without them.
OPTIONAL_PLUGINS = ("libqgtk3.so",)
_GLIBC = re.compile(r"\(?GLIBC_(\d+)\.(\d+)\b")
_MAGIC = b"\x7fELF"


def programs_and_libraries(folder: Path) -> Iterator[Path]:
    """Yield all ELF files below a folder."""
    for path in files_in(folder):
        if not path.is_symlink() and path.stat().st_size > len(_MAGIC):
            with path.open("rb") as file:
                if file.read(len(_MAGIC)) == _MAGIC:
                    yield path


def needed_packages(files: Iterable[Path]) -> list[str]:
    """Return the packages with the libraries that these files need and that are not among them. Raises Trouble."""
    paths = [path for path in files if path.name not in OPTIONAL_PLUGINS]
    own = {path.name for path in paths}
    names = {name for path in paths for name in needed(path)} - own
    if unknown := sorted(names - PACKAGES.keys()):
        raise Trouble(f"No Debian package is named for {', '.join(unknown)}: add it to system_libraries.py.")
    return sorted({PACKAGES[name] for name in names} - {"libc6"})


def least_glibc(files: Iterable[Path]) -> str:
    """Return the oldest version of glibc that has everything these files use."""
    listed = tool("objdump", "-T", *map(str, files), label="Reading the libraries")
    newest = max((int(major), int(minor)) for major, minor in _GLIBC.findall(listed))
    return "{}.{}".format(*newest)
