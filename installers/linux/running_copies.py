"""Stops the running copies of an installed Poolhouse before an update, and starts them again after it.

`running_copies.py stop FILE` asks them to end, which drains answers in progress, and notes in FILE what ran.
`running_copies.py start FILE` starts the same again, as the same users. The package's scripts call it as root, with the
Python that is installed beside it. It uses only the standard library, because it runs while files are being replaced.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

PROGRAM = str(Path(sys.executable).resolve())
WAIT_S, POLL_S = 40.0, 0.2  # a node drains for at most 30 seconds
BY_WINDOW = "POOLHOUSE_BY_WINDOW"  # in the environment of a node that its window started, and will start again
UNIT = "poolhouse.service"


@dataclass(frozen=True)
class Copy:
    """A running copy that someone started, and what is needed to start it again."""

    words: list[str]  # its arguments
    environment: dict[str, str]
    user: int
    is_unit: bool  # the user's systemd started it


def main() -> int:
    """Stop or start, and return the exit code. Whatever goes wrong, the installation goes on."""
    action, file = sys.argv[1], Path(sys.argv[2])
    if action == "stop":
        noted = stop()
        if noted:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # environments can hold secrets
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump([asdict(copy) for copy in noted], out)
    elif file.exists():
        listed = json.loads(file.read_text("utf-8"))
        file.unlink()
        for fields in listed:
            start(Copy(**fields))
    return 0


def stop() -> list[Copy]:
    """End all copies, and return those that someone started."""
    running = ours()
    noted = [copy for pid in running if (copy := describe(pid)) is not None]
    if running:
        print("Poolhouse is running. It finishes its answers and stops.", flush=True)
    for pid in running:
        end(pid, signal.SIGTERM)
    deadline = time.monotonic() + WAIT_S
    while ours() and time.monotonic() < deadline:
        time.sleep(POLL_S)
    for pid in ours():
        end(pid, signal.SIGKILL)
    return noted


def ours() -> list[int]:
    """Return the processes of this installation, other than this one."""
    listed = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if os.readlink(entry / "exe").removesuffix(" (deleted)") == PROGRAM and _has_program(entry):
                    listed.append(int(entry.name))
            except OSError:
                continue
    return listed


def _has_program(entry: Path) -> bool:
    """Return whether a process sees the same file system as we do, not that of a container."""
    try:
        return os.stat(entry / "root") == os.stat("/")
    except OSError:
        return False


def describe(pid: int) -> Copy | None:
    """Return what is needed to start a copy again, or None for workers and nodes that another copy starts."""
    place = Path("/proc", str(pid))
    try:
        words = (place / "cmdline").read_bytes().decode("utf-8", "surrogateescape").rstrip("\0").split("\0")
        pairs = (place / "environ").read_bytes().decode("utf-8", "surrogateescape").split("\0")
        group = (place / "cgroup").read_text("utf-8")
        user = place.stat().st_uid
    except OSError:
        return None
    environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if "-m" not in words or words[words.index("-m") + 1 :][:1] != ["app"] or BY_WINDOW in environment:
        return None
    rest = words[words.index("-m") + 2 :]
    if rest and not rest[0].startswith("-") and rest[0] != "node":
        return None  # a command such as `poolhouse ask` was interrupted; only its user can repeat it
    return Copy(rest, environment, user, UNIT in group)


def start(copy: Copy) -> None:
    """Start a copy again as its user, in its desktop."""
    try:
        known = pwd.getpwuid(copy.user)
        if copy.is_unit:
            command = ["systemctl", "--user", f"--machine={known.pw_name}@", "start", UNIT]
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)
            return
        subprocess.Popen(
            [PROGRAM, "-m", "app", *copy.words],
            env=copy.environment,
            cwd="/",
            user=copy.user,
            group=known.pw_gid,
            extra_groups=os.getgrouplist(known.pw_name, known.pw_gid),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (KeyError, OSError, subprocess.TimeoutExpired) as error:
        print(f"Poolhouse was not started again: {error}. Open it from the menu.", flush=True)


def end(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have ended already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main())
