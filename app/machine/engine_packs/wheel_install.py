"""Installing the wheels of an engine into a folder of its own, with pip in a child process.

pip takes only files with the hashes of the list, whichever server they come from.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import csv
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.core.errors import AppError, BadInput, Damaged, DoesNotFit, Refused, Unreachable
from app.core.reasons import os_cause
from app.decoding import decode
from app.machine import paths
from app.machine.engine_packs.pack_reader import CHUNK_BYTES, FULL, SPARE_BYTES
from app.machine.engine_packs.wheels import NAMES, EngineDownload
from app.machine.paths import PRIVATE_DIR, write_atomically

RECORD = "installed.json"
UNFINISHED = ".new-"  # a folder that is being filled
KEPT = ".kept"  # what pip has downloaded, until the engine is installed
KEPT_SECONDS = 7 * 24 * 3600.0
# A user's settings for pip that would lead elsewhere. Their mirrors and proxies stay in effect.
NOT_OURS = ("PIP_NO_CACHE_DIR", "PIP_CONSTRAINT", "PIP_PREFIX", "PIP_ROOT", "PIP_QUIET", "PIP_VERBOSE")
MAX_LINE_BYTES = 1 << 16
MAX_WORDS = 300
_PROGRESS = re.compile(r"^Progress (\d{1,15}) of (\d{1,15})$")
_ERROR = re.compile(r"^ERROR: (.+)$")
_CHANGED = "DO NOT MATCH THE HASHES"
_NOT_FOUND = ("No matching distribution", "Could not find a version")
_WAITING_SECONDS = 5.0  # for pip to end when it is stopped


class InstalledEngine(msgspec.Struct, frozen=True):
    """An engine in its folder."""

    engine: str
    version: str
    size_bytes: int

    @property
    def label(self) -> str:
        """The engine and its version, for people."""
        return f"{NAMES.get(self.engine, self.engine)} {self.version}"


def installed_engines(folder: Path) -> dict[str, InstalledEngine]:
    """Return the engines that are installed below `folder`, by name."""
    engines = {}
    for name in NAMES:
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeError):
            record = decode((folder / name / RECORD).read_bytes()[:CHUNK_BYTES], InstalledEngine)
            if record.engine == name:
                engines[name] = record
    return engines


async def install_engine(
    download: EngineDownload,
    folder: Path,
    wheels: str,
    on_progress: Callable[[int], None],
    unpacking: Callable[[], None],
) -> None:
    """Install an engine below `folder`, where it replaces an older version.

    wheels: a folder with the files, or "" to download them.
    on_progress: called with the bytes that have arrived.
    unpacking: called when all have.
    Raises DoesNotFit, Unreachable, Damaged, BadInput or Refused.
    """
    if wheels and not await asyncio.to_thread(Path(wheels).is_dir):
        raise BadInput("engine_folder", folder=wheels)
    try:
        await asyncio.to_thread(_make_room, folder, download, bool(wheels))
        place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=UNFINISHED, dir=folder))
        try:
            requirements = place / "requirements.txt"
            requirements.write_text(download.requirements(), "utf-8")
            await _run_pip(download, folder, place, wheels, on_progress, unpacking)
            record = InstalledEngine(download.engine, download.version, download.unpacked_bytes)
            await asyncio.to_thread(_finish, place, folder / download.engine, record)
            await asyncio.to_thread(shutil.rmtree, folder / KEPT, ignore_errors=True)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
    except OSError as error:
        if error.errno in FULL:
            raise DoesNotFit("pack_disk_full", pack=download.label) from error
        raise Refused("engine_not_written", engine=download.label, why=os_cause(error)) from error


def remove_engine(folder: Path, engine: str) -> None:
    """Delete an installed engine. Raises BadInput if there is none, and Refused if its files cannot be deleted."""
    installed = installed_engines(folder).get(engine)
    if installed is None:
        raise BadInput("engine_not_installed", engine=NAMES.get(engine, engine))
    gone = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder))
    try:
        (folder / engine).rename(gone / engine)  # as a whole, so that no half of an engine remains
        shutil.rmtree(gone)
    except OSError as error:
        raise Refused("engine_not_deleted", engine=installed.label, why=os_cause(error)) from error


def forget_download(folder: Path) -> None:
    """Delete what was downloaded of an engine that is not installed."""
    shutil.rmtree(folder / KEPT, ignore_errors=True)


def delete_unfinished(folder: Path) -> None:
    """Delete what an interrupted installation has left, except recent downloads, with which another try goes on."""
    for place in folder.glob(f"{UNFINISHED}*"):
        shutil.rmtree(place, ignore_errors=True)
    with contextlib.suppress(OSError):
        if (folder / KEPT).stat().st_mtime < time.time() - KEPT_SECONDS:
            forget_download(folder)


def damage(folder: Path, engine: str) -> AppError | None:
    """Return the error for the first file of an engine that differs from the record of its wheel, or None.

    Reads all files.
    """
    root = folder / engine
    name = NAMES.get(engine, engine)
    try:
        for record in sorted(root.glob("*.dist-info/RECORD")):
            with record.open(encoding="utf-8", newline="") as lines:
                for path, value, _ in csv.reader(lines):
                    if value and not _is_unchanged(root, path, value):
                        return Damaged("engine_file_changed", engine=name, file=path[:MAX_WORDS])
    except (OSError, ValueError, csv.Error) as error:
        why = os_cause(error) if isinstance(error, OSError) else str(error)[:MAX_WORDS]
        return Damaged("engine_unreadable", engine=name, why=why)
    return None


def _is_unchanged(root: Path, path: str, value: str) -> bool:
    """Return whether a file has the hash of its wheel's record, such as `sha256=…` in base64 without padding."""
    kind, _, expected = value.partition("=")
    file = root / path
    if ".." in Path(path).parts:  # programs that pip has put elsewhere, which no engine needs
        return True
    if kind != "sha256" or file.is_symlink():
        return False
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while data := content.read(CHUNK_BYTES):
            digest.update(data)
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() == expected


def _make_room(folder: Path, download: EngineDownload, has_wheels: bool) -> None:
    """Prepare the folder. Raises DoesNotFit if the disk is too full for the files and what is unpacked from them."""
    folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
    delete_unfinished(folder)
    kept = sum(file.stat().st_size for file in (folder / KEPT).rglob("*") if file.is_file())
    needed = download.unpacked_bytes + (0 if has_wheels else max(0, 2 * download.size_bytes - kept))
    free = shutil.disk_usage(folder).free - SPARE_BYTES
    if needed > free:
        raise DoesNotFit("engine_disk_short", engine=download.label, needed_bytes=needed, free_bytes=max(0, free))


def _finish(place: Path, final: Path, record: InstalledEngine) -> None:
    """Move a filled folder to its place."""
    write_atomically(place / "files" / RECORD, msgspec.json.encode(record))
    older = place / "older"
    if final.exists():
        final.rename(older)
    try:
        (place / "files").rename(final)
    except OSError:
        if older.exists():
            older.rename(final)
        raise


async def _run_pip(
    download: EngineDownload,
    folder: Path,
    place: Path,
    wheels: str,
    on_progress: Callable[[int], None],
    unpacking: Callable[[], None],
) -> None:
    """Run pip to its end. Raises Unreachable, Damaged, Refused or DoesNotFit if it fails."""
    options = ["--no-index", "--find-links", wheels] if wheels else ["--cache-dir", str(folder / KEPT)]
    command = paths.python_command(
        "-m", "pip", "install", *options, "--target", str(place / "files"), "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--no-compile", "--progress-bar", "raw", "--no-input", "--no-color",
        "--disable-pip-version-check", "-r", str(place / "requirements.txt"),
    )  # fmt: skip
    temporary = str(place)
    environment = paths.python_environment(TMPDIR=temporary, TEMP=temporary, TMP=temporary)
    for name in NOT_OURS:
        environment.pop(name, None)
    environment |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}  # over what a user's pip.conf says
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        limit=MAX_LINE_BYTES,
    )
    try:
        words = await _read_progress(process, on_progress, unpacking)
        code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if code:
        raise _failure(download, words, wheels)


async def _read_progress(
    process: asyncio.subprocess.Process, on_progress: Callable[[int], None], unpacking: Callable[[], None]
) -> list[str]:
    """Read what pip reports until it ends, and return its errors."""
    assert process.stdout is not None
    errors: list[str] = []
    whole = 0
    while True:
        try:
            data = await process.stdout.readline()
        except ValueError:  # a line that is too long
            continue
        if not data:
            return errors
        line = data.decode(errors="replace").strip()
        if match := _PROGRESS.match(line):
            done, total = int(match[1]), int(match[2])
            on_progress(whole + done)
            whole += total if done >= total else 0
        elif line.startswith("Installing collected packages"):
            unpacking()
        elif match := _ERROR.match(line):
            errors.append(match[1][:MAX_WORDS])


def _failure(download: EngineDownload, errors: list[str], wheels: str) -> AppError:
    """Return the error for what pip reported."""
    text = " ".join(errors)
    if _CHANGED in text:
        return Damaged("engine_wheel_changed", engine=download.label)
    if os.strerror(FULL[0]) in text:
        return DoesNotFit("pack_disk_full", pack=download.label)
    if wheels:
        if any(words in text for words in _NOT_FOUND):
            files = ", ".join(wheel.file for wheel in download.wheels[:3])
            return BadInput("engine_wheels_missing", engine=download.label, folder=wheels, files=files)
        return Refused("engine_not_written", engine=download.label, why=errors[-1].rstrip(".") if errors else "pip")
    why = errors[0].rstrip(".") if errors else "pip ended without a reason"
    return Unreachable("engine_not_downloaded", engine=download.label, why=why)
