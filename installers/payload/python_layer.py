"""The layer with CPython: Debian 12's own build, made independent of where it lies and of the system's Python.

Debian's build is optimized with a profile, gets security updates, and needs only glibc 2.36. It finds its standard
library next to itself. A file `python3.11._pth` beside the program names all folders that it imports from and makes it
ignore PYTHONPATH, user site packages and the current directory, as in Python's embeddable package for Windows.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from app.machine.versions.tree_hash import files_in
from installers.payload.fetched import debian_file
from installers.payload.places import PACKAGE_LAYERS
from installers.payload.trees import tool

VERSION = "3.11"
PACKAGES = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib")
LIBRARY_PACKAGES = (
    "libssl3", "libsqlite3-0", "libffi8", "libexpat1", "zlib1g", "libbz2-1.0", "liblzma5", "libuuid1", "libgomp1",
    "gcc-12-base",
)  # fmt: skip
PROGRAM = f"bin/python{VERSION}"
IMPORTS = (  # relative to the program
    f"../lib/python{VERSION}",
    f"../lib/python{VERSION}/lib-dynload",
    *(f"../../{name}" for name in PACKAGE_LAYERS),
    "../../engine",
    "../../app",
)
# Parts of the standard library that no program of ours imports: build tools, consoles, databases, tests.
LEFT_OUT = (
    "EXTERNALLY-MANAGED", "cgi.py", "cgitb.py", "config-3.11-x86_64-linux-gnu", "curses", "dbm", "distutils",
    "ensurepip", "idlelib", "lib2to3", "pydoc_data", "sitecustomize.py", "test", "tkinter", "turtle.py", "turtledemo",
    "venv",
)  # fmt: skip
MODULES_LEFT_OUT = (
    "_crypt", "_ctypes_test", "_curses", "_curses_panel", "_dbm", "_gdbm", "_testbuffer", "_testcapi", "_testclinic",
    "_testimportmultiple", "_testinternalcapi", "_testmultiphase", "_tkinter", "_xxtestfuzz", "nis", "ossaudiodev",
    "readline", "xxlimited", "xxlimited_35",
)  # fmt: skip
KEPT_LIBRARIES = ("libssl.so.3", "libcrypto.so.3", "libsqlite3.so.0", "libffi.so.8", "libexpat.so.1", "libz.so.1",
                  "libbz2.so.1.0", "liblzma.so.5", "libuuid.so.1", "libgomp.so.1")  # fmt: skip
SYSTEM = "x86_64-linux-gnu"


def build(folder: Path, scratch: Path) -> None:
    """Make the layer in `folder`. Raises Trouble."""
    for name in (*PACKAGES, *LIBRARY_PACKAGES):
        tool("dpkg-deb", "-x", str(debian_file(name)), str(scratch), label="Unpacking Python")
    library = folder / "lib" / f"python{VERSION}"
    shutil.copytree(scratch / "usr/lib" / f"python{VERSION}", library, symlinks=True)
    for name in LEFT_OUT:
        _remove(library / name)
    for name in MODULES_LEFT_OUT:
        for path in (library / "lib-dynload").glob(f"{name}.cpython-*"):
            path.unlink()
    for path in [path for path in files_in(library) if path.is_symlink()]:
        _copy_in_place(path, scratch)
    (folder / "bin").mkdir()
    program = folder / PROGRAM
    shutil.copyfile(scratch / "usr/bin" / f"python{VERSION}", program)
    program.chmod(0o755)
    Path(f"{program}._pth").write_text("".join(f"{line}\n" for line in IMPORTS), "utf-8")
    _copy_libraries(folder / "lib", scratch)
    _copy_licenses(folder / "licenses", scratch)
    tool("patchelf", "--set-rpath", "$ORIGIN/../lib", str(program), label="Making Python movable")
    for path in sorted((library / "lib-dynload").glob("*.so")):
        tool("patchelf", "--set-rpath", "$ORIGIN/../..", str(path), label="Making Python movable")
    for path in sorted((folder / "lib").glob("*.so*")):
        tool("patchelf", "--set-rpath", "$ORIGIN", str(path), label="Making Python movable")


def _copy_libraries(folder: Path, scratch: Path) -> None:
    """Copy the shared libraries of Python's modules under the names by which they are loaded."""
    for name in KEPT_LIBRARIES:
        for place in (scratch / "usr/lib" / SYSTEM, scratch / "lib" / SYSTEM):
            if (place / name).exists():
                shutil.copyfile((place / name).resolve(), folder / name)
                (folder / name).chmod(0o644)
                break
        else:
            raise FileNotFoundError(name)


def _copy_licenses(folder: Path, scratch: Path) -> None:
    folder.mkdir()
    for name in (*PACKAGES, *LIBRARY_PACKAGES):
        for path in sorted((scratch / "usr/share/doc" / name).glob("copyright")):
            if not path.is_symlink():
                shutil.copyfile(path, folder / f"{name}.txt")


def _copy_in_place(link: Path, scratch: Path) -> None:
    """Replace a link that leads out of the layer by its file, or remove it."""
    target = link.readlink()
    target_file = scratch / target.relative_to("/") if target.is_absolute() else link.parent / target
    link.unlink()
    if target_file.is_file():
        shutil.copyfile(target_file, link)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
