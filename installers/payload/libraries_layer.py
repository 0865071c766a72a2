"""The layers with the Python packages of requirements/run.txt, without what only developers of them need."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from packaging.markers import Marker

from app.machine.versions.tree_hash import files_in
from installers.payload import qt_parts
from installers.payload.places import PACKAGE_LAYERS, PROJECT
from installers.payload.trees import build_python
from scripts.setup import PIP, clean_environment
from scripts.setup_errors import Trouble, explained

LOCK = PROJECT / "requirements" / "run.txt"
# Large packages in layers of their own, because an update brings whole layers. All other packages are in `libraries`.
APART = {"qt": ("pyside6-essentials", "shiboken6"), "numpy": ("numpy",)}
# Sources of extension modules, type stubs, tests and programs; a package without them does the same.
UNWANTED_ENDINGS = (".pyi", ".pyx", ".pxd", ".c", ".h", ".hpp", ".cpp", ".a", ".typed", ".qmltypes", ".json.in")
UNWANTED_FOLDERS = (
    "bin", "share", "include", "numpy/_core/include", "numpy/_pyinstaller", "numpy/distutils", "numpy/doc",
    "numpy/f2py", "numpy/random/_examples", "numpy/testing", "numpy/typing/tests", "ziamath/test", "keyring/testing",
    "cffi/_cffi_include",
)  # fmt: skip
_TESTS = re.compile(r"(^|/)tests?$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def build(folder: Path, layer: str) -> None:
    """Make a layer in `folder`. Raises Trouble."""
    install(folder, lock_of(layer, LOCK.read_text("utf-8")), [])
    if layer == "qt":
        qt_parts.prune(folder / "PySide6")
    trim(folder)


def install(folder: Path, lock: str, words: list[str]) -> None:
    """Install the packages of a lock into `folder`. words: for pip, to choose another system. Raises Trouble."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "lock.txt"
        file.write_text(lock, "utf-8")
        command = [build_python(), *PIP, "install", "--no-deps", "--require-hashes", "--no-compile", "--only-binary"]
        command += [":all:", "--target", str(folder), *words, "-r", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    if done.returncode != 0:
        output = done.stdout + done.stderr
        last = output.strip().splitlines()[-1:] or ["no reason was given"]
        raise Trouble(explained(output) or f"The packages could not be installed: {last[0]}")


def lock_of(layer: str, lock: str) -> str:
    """Return the part of a lock that a layer is made of."""
    assert layer in PACKAGE_LAYERS
    others = {name for names in APART.values() for name in names}
    kept: list[str] = []
    is_kept = False
    for line in lock.splitlines():
        if name := _NAME.match(line):
            key = re.sub(r"[-_.]+", "-", name[0]).lower()
            is_kept = key in APART[layer] if layer in APART else key not in others
        if is_kept:
            kept.append(line)
    return "\n".join(kept) + "\n"


def lock_for(lock: str, system: Mapping[str, str]) -> str:
    """Return the part of a lock that holds for a system, without its conditions.

    system: what pip would find there, by the names of its markers. Told to choose for another system, pip still asks
    the builder's.
    """
    kept: list[str] = []
    is_kept = False
    for line in lock.splitlines():
        if line[:1].strip() and not line.startswith("#"):
            words, is_continued = line.removesuffix("\\").strip(), line.endswith("\\")
            requirement, _, condition = words.partition(";")
            is_kept = not condition or Marker(condition.strip()).evaluate(dict(system))
            if is_kept:
                kept.append(f"{requirement.strip()} \\" if is_continued else requirement.strip())
        elif is_kept:
            kept.append(line)
    return "\n".join(kept) + "\n"


def trim(folder: Path) -> None:
    """Remove what only developers of the packages need."""
    for name in UNWANTED_FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and _TESTS.search(path.relative_to(folder).as_posix()):
            shutil.rmtree(path)
        elif path.is_file() and path.name.endswith(UNWANTED_ENDINGS):
            path.unlink()
    for record in sorted(folder.glob("*.dist-info/RECORD")):
        _keep_listed(record, folder)
        for name in ("INSTALLER", "REQUESTED", "direct_url.json"):
            (record.parent / name).unlink(missing_ok=True)


def _keep_listed(record: Path, folder: Path) -> None:
    """Leave only existing files in a package's list, in the order of their names."""
    rows = csv.reader(io.StringIO(record.read_text("utf-8")))
    there = {path.relative_to(folder).as_posix() for path in files_in(folder)}
    kept = sorted(row for row in rows if row and row[0] in there and not row[0].endswith(("INSTALLER", "REQUESTED")))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(kept)
    record.write_text(out.getvalue(), "utf-8")
