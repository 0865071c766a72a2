"""The setup program for Windows, made by NSIS on Linux from the payload, for one user and without an administrator."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from app.machine.versions.tree_hash import files_in, tree_bytes
from installers.payload.payload import Payload
from installers.payload.places import PROJECT, RESULTS, WORK
from installers.payload.trees import normalize, tool
from installers.windows import starters
from scripts.setup_errors import check_disk

SCRIPT, TEXTS = (Path(__file__).with_name(name) for name in ("setup.nsi", "texts.nsh"))
PYTHON_LIBRARY = "python313.dll"
LEAST_BUILD = 17763  # of Windows 10, for Qt 6.11: version 1809
LONGEST_PATH = 166  # in the installed folder: Windows allows 260 in all, unless its owner changed that
FORBIDDEN = frozenset('$"<>:|?*\\')  # NSIS's own signs, and those that Windows does not allow
# In the installed folder, as in switch.c: what to remove, where a new version is unpacked, and that it is being moved
FILE_LIST, NEW_FOLDER, SWITCH_MARK = "files.txt", "poolhouse.new", "poolhouse.switch"
SMALL = 100_000_000  # bytes of a payload of the tests, packed fast
COMPILED_MB = 120  # what Python's compiled files need in addition


def pack(payload: Payload, *, stand_in: bool = False) -> Path:
    """Write the setup program into dist/ and return its path. stand_in: for tests, as its name says. Raises Trouble."""
    check_disk(PROJECT)
    root, scratch = WORK / "windows", WORK / "windows.scratch"
    for folder in (root, scratch):
        shutil.rmtree(folder, ignore_errors=True)
    scratch.mkdir(parents=True)
    payload.write(root, "windows-test" if stand_in else "windows", "")
    icon = starters.write(root, scratch, payload.version)
    normalize(root, payload.time)
    (scratch / "files.nsh").write_text(script_of_files(root), "utf-8")
    (scratch / FILE_LIST).write_text(list_of_files(root), "utf-16-le", newline="")
    os.utime(scratch / FILE_LIST, (payload.time, payload.time))  # which NSIS stores
    RESULTS.mkdir(exist_ok=True)
    result = RESULTS / f"poolhouse-{payload.version}-{'test-only-' if stand_in else ''}setup.exe"
    part = scratch / result.name
    n_bytes = tree_bytes(root)
    defines = {
        "VERSION": payload.version,
        "FOUR": starters.four_numbers(payload.version),
        "RESULT": part,
        "ICON": icon,
        "TEXTS": TEXTS,
        "FILES": scratch / "files.nsh",
        "FILE_LIST": FILE_LIST,
        "LIST": scratch / FILE_LIST,
        "NEW_FOLDER": NEW_FOLDER,
        "SWITCH_MARK": SWITCH_MARK,
        "STARTER": root / starters.WINDOW,
        "COMPRESSOR": "zlib" if stand_in and n_bytes < SMALL else "lzma",
        "PYTHON_LIBRARY": PYTHON_LIBRARY,
        "LEAST_BUILD": LEAST_BUILD,
        "KIB": -(-n_bytes // 1024),
        "NEEDED_MB": n_bytes // 1_000_000 + COMPILED_MB,
    }
    words = [f"-D{name}={value}" for name, value in defines.items()]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(payload.time), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    tool(
        "makensis", "-V2", "-NOCD", "-INPUTCHARSET", "UTF8", "-XTarget amd64-unicode", *words, str(SCRIPT),
        label="Packing", env=environment,
    )  # fmt: skip
    shutil.move(part, result)
    for folder in (root, scratch):
        shutil.rmtree(folder)
    return result


def script_of_files(root: Path) -> str:
    """Return the part of the script that installs all files in the order of their names, and the one that removes them.

    NSIS would take them in the order in which the disk has them.
    """
    lines, before = [], None
    for path in files_in(root):
        name = path.relative_to(root)
        if len(str(name)) > LONGEST_PATH or set(str(name)) & FORBIDDEN:
            raise ValueError(f"{name} cannot be the name of a file here")
        if name.parent != before:
            before = name.parent
            lines.append("SetOutPath " + str(Path('"$INSTDIR') / NEW_FOLDER / before).replace("/", "\\") + '"')
        lines.append(f'File "{path}"')
    return "\n".join(lines) + "\n"


def list_of_files(root: Path) -> str:
    """Return the list by which an installation is removed: files, folders with compiled files, and then all folders.

    The deepest folders come first, because only an empty folder is removed.
    """
    names = [path.relative_to(root) for path in files_in(root)]
    sources = sorted({name.parent for name in names if name.suffix == ".py"})
    folders = sorted({folder for name in names for folder in name.parents} - {Path()}, reverse=True)
    lines = [f"{sign} {name}" for sign, found in (("F", names), ("C", sources), ("D", folders)) for name in found]
    return "".join(line.replace("/", "\\") + "\n" for line in lines)
