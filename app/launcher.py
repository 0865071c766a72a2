"""Starts the newest version that works: the installed one, or one that an update put beside it.

This file runs by itself, with nothing but the standard library, before any version is chosen. The launcher of an old
version starts newer ones, so it must not depend on them: it knows only the folder of the versions and a few small files
in it.

A version that has never started well is watched. If it crashes, it is tried once more; then the version before it is
started instead, which tells the user why. A version that runs is never ended; if the user ends it after it has
shown nothing for a minute, that counts as a crash. One that refuses in good order, such as because a node runs already,
is not to blame. Commands that only ask are run by a version that has started well.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

if sys.platform != "win32":
    import fcntl

KINDS = ("appimage", "folder")  # copies that update themselves; packages of the system are updated by the system
FOLDER = "POOLHOUSE_VERSIONS"  # environment variable: the folder of the versions
BASE = "POOLHOUSE_BASE"  # environment variable: the folder of the copy that was installed
WAIT_FOR = "POOLHOUSE_WAIT_FOR"  # environment variable: the process that must end before this start
WATCHED = "POOLHOUSE_WATCHED"  # environment variable: set for the process whose exit code is judged
MANIFEST, CURRENT, MARKS, RUNTIME = "installed.json", "current.json", "marks", "runtime.json"
FAILED, WINDOW, NODE, TRY = "failed", "window", "node", "try"  # suffixes of marks
MOST_TRIES = 2
REFUSED, WRONG_USAGE, STOPPED = 79, 80, 130  # exit codes of a watched process that ended in good order
ORDERLY = {0: 0, REFUSED: 1, WRONG_USAGE: 2, STOPPED: STOPPED}  # these codes, and those to return for them
HUNG_SECONDS = 60.0  # a version that has not started well after that long hangs, if the user ends it
POLL_SECONDS = 0.1
STOP_SECONDS = 15.0
_SYNCHRONIZE, _WAIT_TIMEOUT = 0x100000, 0x102  # of Windows
_VERSION = re.compile(r"\d+(\.\d+){0,3}")


def main(words: Sequence[str]) -> int:
    """Start Poolhouse with these arguments and return its exit code."""
    base = Path(__file__).resolve().parents[2]
    _wait_for_earlier(os.environ.pop(WAIT_FOR, ""))
    manifest = _read(base / MANIFEST)
    if manifest.get("kind") not in KINDS:
        return _run_here(words)
    own_folder = default_folder(os.environ, sys.platform, Path.home())
    folder = Path(os.environ.get(FOLDER) or own_folder)
    os.environ[FOLDER], os.environ[BASE] = str(folder), str(base)
    what, base_version = started(words), str(manifest.get("version", ""))
    if what is None:
        chosen = choose_for_command(folder, base_version, words, _home(words) or own_folder.parent)
        return _replace(_command(folder / chosen, words, console=True), words) if chosen else _run_here(words)
    for chosen in usable(folder, base_version):
        command = _command(folder / chosen, words, console=what == NODE)
        if (folder / MARKS / f"{chosen}.{what}").exists():
            return _replace(command, words)
        try:
            code = _watched(folder / MARKS, chosen, what, command)
        except OSError:  # nothing can be noted, as on a full disk
            return _replace(command, words)
        if code is not None:
            return code
    return _run_here(words)


def _command(version_folder: Path, words: Sequence[str], *, console: bool) -> list[str]:
    return [str(python_of(version_folder, console=console)), "-P", "-m", "app", *words]


def default_folder(environment: Mapping[str, str], system: str, home: Path) -> Path:
    """Return the folder of this user's versions."""
    if system == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "poolhouse" / "versions"
    if system == "darwin":
        return home / "Library" / "Application Support" / "poolhouse" / "versions"
    data = environment.get("XDG_DATA_HOME", "")
    return (Path(data) if data.startswith("/") else home / ".local" / "share") / "poolhouse" / "versions"


def started(words: Iterable[str]) -> str | None:
    """Return whether these arguments start the window or the node, or None for commands that only ask."""
    rest = list(words)
    while rest and rest[0].startswith("--home"):
        del rest[: 1 if "=" in rest[0] else 2]
    if not rest or rest[0] == "--hidden":
        return WINDOW
    return NODE if rest[0] == "node" and "--help" not in rest else None


def choose(folder: Path, base_version: str) -> str:
    """Return the version to start, or "" for the installed copy."""
    return next(iter(usable(folder, base_version)), "")


def usable(folder: Path, base_version: str) -> list[str]:
    """Return the versions to start, best first, as far as the user has not replaced the installed copy by a newer one.

    A version that fails twice drops out while its successor in this list is still to be tried.
    """
    current = _read(folder / CURRENT)
    names = [str(current.get("current", "")), str(current.get("previous", ""))]
    return [name for name in names if is_newer(name, base_version) and _can_start(folder, name)]


def choose_for_command(folder: Path, base_version: str, words: Sequence[str], home: Path) -> str:
    """Return the version for a command that only asks: the one whose node runs, or one that has started well.

    Going back is left to a version that is not the one to leave, which may be broken.
    """
    proven = [name for name in usable(folder, base_version) if has_started(folder, name)]
    if "update" in words and "--rollback" in words:
        leaving = _read(folder / CURRENT).get("current")
        return next((name for name in proven if name != leaving), "")
    running = running_version(home)
    if running == base_version:
        return ""
    return running if running and _can_start(folder, running) else next(iter(proven), "")


def has_started(folder: Path, version: str) -> bool:
    """Return whether a version has ever started well here."""
    return any((folder / MARKS / f"{version}.{what}").exists() for what in (WINDOW, NODE))


def running_version(home: Path) -> str:
    """Return the version of the node that runs in a home, or "". A wrong answer does no harm."""
    runtime = _read(home / RUNTIME)
    pid = runtime.get("pid")
    return str(runtime.get("version", "")) if isinstance(pid, int) and _is_alive(pid) else ""


def _home(words: Sequence[str]) -> Path | None:
    for position, word in enumerate(words):
        if word.startswith("--home="):
            return Path(word.partition("=")[2]).expanduser()
        if word == "--home" and position + 1 < len(words):
            return Path(words[position + 1]).expanduser()
    return None


def _can_start(folder: Path, name: str) -> bool:
    if not _VERSION.fullmatch(name) or (folder / MARKS / f"{name}.{FAILED}").exists():
        return False
    return _read(folder / name / MANIFEST).get("version") == name and python_of(folder / name).is_file()


def is_newer(version: str, than: str) -> bool:
    """Return whether a release is newer than another. What is no number of a release counts as oldest."""
    return parts_of(version) > parts_of(than)


def parts_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, by which releases are sorted."""
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()


def python_of(version_folder: Path, *, console: bool = False) -> Path:
    """Return the path of the interpreter of a version. console: on Windows, the one that can write to a console."""
    if sys.platform == "win32":
        return version_folder / "python" / ("python.exe" if console else "pythonw.exe")
    return version_folder / "python" / "bin" / "python3.11"


def _watched(marks: Path, version: str, what: str, command: list[str]) -> int | None:
    """Start a version for the first time. Return its exit code, or None if another version must be tried.

    Raises OSError if nothing can be noted about it.
    """
    marks.mkdir(parents=True, exist_ok=True)
    n_crashes = 0  # seen here, where a file system without locks tells nothing about attempts
    ended_by: list[int] = []
    running: list[subprocess.Popen[bytes]] = []
    with _signals_passed_on(running, ended_by):
        while not ended_by:
            if len(_cut_off(marks, version)) >= MOST_TRIES:  # the computer was switched off during both
                give_up(marks, version, "unfinished", 0)
                return None
            attempt = marks / f"{version}.{TRY}-{os.getpid()}-{time.time_ns()}"
            file, began = _locked(attempt), time.monotonic()
            try:
                running[:] = [_start(command, file)]
                for number in ended_by:  # it came while the process was being started
                    running[0].send_signal(number)
                code = running[0].wait()
            except OSError:  # it cannot be run now; the next start tries again
                attempt.unlink(missing_ok=True)
                return None
            finally:
                os.close(file)
            has_begun = (marks / f"{version}.{what}").exists()
            if ended_by and not has_begun and time.monotonic() - began >= HUNG_SECONDS:
                return 128 + ended_by[0]  # the file of the attempt stays, so that it counts as cut off
            # it works, it refused in good order, or the user ended it before anything showed
            if has_begun or code in ORDERLY or ended_by:
                attempt.unlink(missing_ok=True)
                return 128 - code if code < 0 else ORDERLY.get(code, code)
            n_crashes += 1
            if max(n_crashes, len(_cut_off(marks, version))) >= MOST_TRIES:
                give_up(marks, version, "ended", code)
                return None
    return 128 + ended_by[0]


def _start(command: list[str], file: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, WATCHED: "1"}
    if sys.platform == "win32":
        return subprocess.Popen(command, env=environment)
    return subprocess.Popen(command, env=environment, pass_fds=(file,))


def _locked(attempt: Path) -> int:
    """Create the file of an attempt, locked for as long as a process has it open. Raises OSError."""
    file = os.open(attempt, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # a file system without locks, where no attempt counts as cut off
            fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _cut_off(marks: Path, version: str) -> list[Path]:
    """Return the attempts whose processes have ended without a good start."""
    return [path for path in marks.glob(f"{version}.{TRY}-*") if not _is_open(path)]


def _is_open(attempt: Path) -> bool:
    try:
        if sys.platform == "win32":  # an open file cannot be renamed there
            attempt.rename(attempt)
            return False
        file = os.open(attempt, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(file)
    except OSError:  # locked, or deleted because it ended well meanwhile
        return True
    return False


def give_up(marks: Path, version: str, how: str, code: int) -> None:
    """Note that a version does not start, so that it is not chosen again. Without space, nothing is noted."""
    part = marks / f"{version}.{FAILED}.part"
    with contextlib.suppress(OSError):
        part.write_text(json.dumps({"how": how, "code": code, "at": time.time()}), "utf-8")
        part.replace(marks / f"{version}.{FAILED}")
        for attempt in marks.glob(f"{version}.{TRY}-*"):
            attempt.unlink(missing_ok=True)


@contextlib.contextmanager
def _signals_passed_on(running: list[subprocess.Popen[bytes]], ended_by: list[int]) -> Iterator[None]:
    """Pass signals that end a program on to what runs, and note them in `ended_by`, until the block ends."""

    def pass_on(number: int, _: object) -> None:
        ended_by.append(number)
        for process in running:
            if process.poll() is None:
                process.send_signal(number)

    earlier = {}
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            earlier[number] = signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _wait_for_earlier(pid: str) -> None:
    """Wait until the process that asked for this start has ended."""
    until = time.monotonic() + STOP_SECONDS
    while pid.isdigit() and int(pid) != os.getpid() and time.monotonic() < until and _is_alive(int(pid)):
        time.sleep(POLL_SECONDS)


def _is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    if sys.platform == "win32":  # os.kill would send it a Ctrl-C there
        import ctypes

        system = ctypes.windll.kernel32
        handle = system.OpenProcess(_SYNCHRONIZE, False, pid)
        try:
            return bool(handle) and system.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT
        finally:
            if handle:
                system.CloseHandle(handle)
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _run_here(words: Sequence[str]) -> int:
    """Run the version that this file belongs to, in this process."""
    sys.argv = [sys.argv[0], *words]
    runpy.run_module("app", run_name="__main__", alter_sys=True)
    return 0


def _replace(command: list[str], words: Sequence[str]) -> int:
    """Replace this process by another program, or run the installed copy if that one cannot be run.

    Windows cannot replace a process, so there this one waits for the end of the other.
    """
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            return subprocess.call(command)
        os.execv(command[0], command)  # noqa: S606
    return _run_here(words)


def _read(file: Path) -> dict[str, object]:
    """Return the content of a small JSON file, or {} if there is none."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
