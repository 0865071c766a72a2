"""Starts the newest version that works: the installed one, or one that an update put beside it.

This file runs by itself, with nothing but the standard library, before any version is chosen. The launcher of an old
version starts newer ones, so it must not depend on them: it knows only the folder of the versions and a few small files
in it.

A version that has never started well is watched. If it ends with an error, or gives no sign of life in time, it is
tried once more; then the version before it is started instead, which tells the user why.
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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

KINDS = ("appimage", "folder")  # copies that update themselves; packages of the system are updated by the system
FOLDER = "POOLHOUSE_VERSIONS"  # environment variable: the folder of the versions
BASE = "POOLHOUSE_BASE"  # environment variable: the folder of the copy that was installed
WAIT_FOR = "POOLHOUSE_WAIT_FOR"  # environment variable: the process that must end before this start
MANIFEST, CURRENT, MARKS = "installed.json", "current.json", "marks"
FAILED, WINDOW, NODE, TRIES = "failed", "window", "node", "tries"  # suffixes of marks
MOST_TRIES = 2
START_SECONDS = 120.0  # a slow disk reads a new version for the first time
POLL_SECONDS = 0.1
STOP_SECONDS = 15.0
_VERSION = re.compile(r"\d+(\.\d+){0,3}")


def main(words: Sequence[str]) -> int:
    """Start Poolhouse with these arguments and return its exit code."""
    base = Path(__file__).resolve().parents[2]
    _wait_for_earlier(os.environ.pop(WAIT_FOR, ""))
    manifest = _read(base / MANIFEST)
    if manifest.get("kind") not in KINDS:
        return _run_here(words)
    folder = Path(os.environ.get(FOLDER) or default_folder(os.environ, sys.platform, Path.home()))
    os.environ[FOLDER], os.environ[BASE] = str(folder), str(base)
    what = started(words)
    while True:
        chosen = choose(folder, str(manifest.get("version", "")))
        if not chosen:
            return _run_here(words)
        command = [str(python_of(folder / chosen)), "-P", "-m", "app", *words]
        if what is None or (folder / MARKS / f"{chosen}.{what}").exists():
            return _replace(command, words)
        code = _watched(folder, chosen, what, command)
        if code is not None:
            return code


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
    """Return the version to start, or "" for the installed copy, which the user may have replaced by a newer one."""
    current = _read(folder / CURRENT)
    for name in (str(current.get("current", "")), str(current.get("previous", ""))):
        if not name or is_newer(base_version, name) or name == base_version:
            continue
        whole = _read(folder / name / MANIFEST).get("version") == name and python_of(folder / name).is_file()
        if whole and not (folder / MARKS / f"{name}.{FAILED}").exists():
            return name
    return ""


def is_newer(version: str, than: str) -> bool:
    """Return whether a release is newer than another. What is no number of a release counts as oldest."""
    return parts_of(version) > parts_of(than)


def parts_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, by which releases are sorted."""
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()


def python_of(version_folder: Path) -> Path:
    """Return the path of the interpreter of a version."""
    if sys.platform == "win32":
        return version_folder / "python" / "pythonw.exe"
    return version_folder / "python" / "bin" / "python3.11"


def _watched(folder: Path, version: str, what: str, command: list[str]) -> int | None:
    """Start a version for the first time. Return its exit code, or None if another version must be tried."""
    marks = folder / MARKS
    marks.mkdir(parents=True, exist_ok=True)
    tries = marks / f"{version}.{TRIES}"
    n_tries = _number(tries) + 1
    if n_tries > MOST_TRIES:  # the computer was switched off, or the launcher was killed, during both
        _give_up(marks, version, "unfinished", 0)
        return None
    tries.write_text(str(n_tries), "utf-8")
    ended_by: list[int] = []
    process = subprocess.Popen(command)
    _forward_signals(process, ended_by)
    healthy, begun = marks / f"{version}.{what}", time.monotonic()
    while process.poll() is None and not healthy.exists():
        if time.monotonic() - begun > START_SECONDS:
            _stop(process)
            _note_failure(marks, version, n_tries, "silent", 0)
            return None
        time.sleep(POLL_SECONDS)
    code = process.wait()
    if healthy.exists() or code == 0 or ended_by:  # it works, or the user ended it before that showed
        tries.unlink(missing_ok=True)
        return 128 - code if code < 0 else code
    _note_failure(marks, version, n_tries, "ended", code)
    return None


def _note_failure(marks: Path, version: str, n_tries: int, how: str, code: int) -> None:
    if n_tries >= MOST_TRIES:
        _give_up(marks, version, how, code)


def _give_up(marks: Path, version: str, how: str, code: int) -> None:
    """Note that a version does not start, so that it is not chosen again."""
    part = marks / f"{version}.{FAILED}.part"
    part.write_text(json.dumps({"how": how, "code": code, "at": time.time()}), "utf-8")
    part.replace(marks / f"{version}.{FAILED}")
    (marks / f"{version}.{TRIES}").unlink(missing_ok=True)


def _forward_signals(process: subprocess.Popen[bytes], ended_by: list[int]) -> None:
    """Pass signals that end a program on to the version that is watched."""

    def pass_on(number: int, _: object) -> None:
        ended_by.append(number)
        if process.poll() is None:
            process.send_signal(number)

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for_earlier(pid: str) -> None:
    """Wait until the process that asked for this start has ended."""
    until = time.monotonic() + STOP_SECONDS
    while pid.isdigit() and int(pid) != os.getpid() and time.monotonic() < until:
        try:
            os.kill(int(pid), 0)
        except OSError:
            return
        time.sleep(POLL_SECONDS)


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


def _number(file: Path) -> int:
    try:
        return int(file.read_text("utf-8"))
    except (OSError, ValueError):
        return 0


def _read(file: Path) -> dict[str, object]:
    """Return the content of a small JSON file, or {} if there is none."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
