"""A clean Debian in a folder, on which a package is installed as on a new computer (root, Linux)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from installers.payload.places import WORK

ROOTS = WORK / "roots"
EXTRA = "ca-certificates,procps,libnss-myhostname"
NONE: Mapping[str, str] = {}
USER, USER_ID = "anna", 1000
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")
# What every system writes as it runs, whatever is installed.
NOISE = ("proc", "dev", "sys", "tmp", "run", "var/log", "var/cache", "var/lib/apt", "var/lib/dpkg", "root")


def can_be_used() -> str | None:
    """Return None if clean systems can be made here, or the reason why not."""
    if os.name != "posix" or os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("mmdebstrap", "chroot", "setpriv", "mount") if not shutil.which(name)]
    return f"needs {', '.join(missing)}" if missing else None


class CleanSystem:
    """The root folder of a running clean system."""

    def __init__(self, root: Path, shared: Path) -> None:
        self.root, self.shared = root, shared

    def command(
        self, *words: str, user: int | None = USER_ID, net: Sequence[str] = (), variables: Mapping[str, str] = NONE
    ) -> list[str]:
        """Return the words that run a command in it. user: None for root. net: as of `ip netns exec NAME`."""
        home = self.home_of(user)
        environment = {"HOME": home, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **variables}
        spec = [f"--userspec={user}:{user}"] if user is not None else []
        assigned = [f"{name}={value}" for name, value in environment.items()]
        return [*net, "chroot", *spec, str(self.root), "env", *assigned, *words]

    def run(
        self, *words: str, user: int | None = USER_ID, check: bool = True, variables: Mapping[str, str] = NONE
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it to the end."""
        command = self.command(*words, user=user, variables=variables)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def install(self, package: Path, check: bool = True, *options: str) -> subprocess.CompletedProcess[str]:
        """Install a package from its file with apt, as a double click does."""
        place = self.shared / package.name  # below /tmp, so it takes no space of the system's own disk
        shutil.copyfile(package, place)
        words = [*APT, "install", "--yes", "--no-install-recommends", *options, str(place)]
        done = self.run(*words, user=None, check=check)
        place.unlink()
        return done

    def home_of(self, user: int | None) -> str:
        for line in (self.root / "etc/passwd").read_text("utf-8").splitlines():
            fields = line.split(":")
            if fields[2] == str(user or 0):
                return fields[5]
        return "/"

    def files(self) -> set[str]:
        """Return all files in it, without what every system writes as it runs."""
        listed = set()
        for folder, folders, names in os.walk(self.root):
            inside = os.path.relpath(folder, self.root)
            if inside in NOISE:
                folders.clear()
                continue
            listed |= {os.path.join(inside, name).removeprefix("./") for name in names}
        return listed

    def processes(self) -> list[int]:
        """Return the processes that run in it."""
        listed = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "root") == str(self.root):
                    listed.append(int(entry.name))
            except OSError:
                continue
        return listed

    def end_all(self) -> None:
        """End all its processes."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.processes():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            for _ in range(100):
                if not self.processes():
                    return
                time.sleep(0.1)


@contextmanager
def clean_system(suite: str, package: Path, disk_mib: int = 0) -> Iterator[CleanSystem]:
    """Run a new system, on which a package's dependencies are installed and not itself, until the end of the block.

    disk_mib: the space that is left on its disk, if it is small.
    """
    with _mounted(_ready(suite, package), disk_mib) as made:
        yield made


@contextmanager
def _mounted(lower: Path, disk_mib: int = 0) -> Iterator[CleanSystem]:
    work = Path(tempfile.mkdtemp(prefix="poolhouse-clean-"))
    work.chmod(0o755)
    root, shared, disk = work / "root", work / "shared", work / "disk"
    for folder in (root, shared, disk):
        folder.mkdir()
    if disk_mib:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk_mib}m", "tmpfs", str(disk)], check=True)
    for name in ("upper", "work"):
        (disk / name).mkdir()
    layers = f"lowerdir={lower},upperdir={disk / 'upper'},workdir={disk / 'work'}"
    mounts = [
        ("-t", "overlay", "overlay", "-o", layers, str(root)),
        ("-t", "proc", "proc", str(root / "proc")),
        ("--rbind", "/dev", str(root / "dev")),
        ("--bind", "/tmp", str(root / "tmp")),
    ]
    made = CleanSystem(root, shared)
    try:
        for words in mounts:
            subprocess.run(["mount", *words], check=True)
        subprocess.run(["mount", "--make-rslave", str(root / "dev")], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copyfile(Path("/etc", name), root / "etc" / name)
        yield made
    finally:
        made.end_all()
        for folder in (root / "tmp", root / "dev", root / "proc", root, disk):
            subprocess.run(["umount", "-R", str(folder)], check=False, capture_output=True)
        if not any(map(os.path.ismount, (root, root / "tmp", root / "dev", disk))):
            shutil.rmtree(work)


def _base(suite: str) -> Path:
    """Return the folder of a minimal system, made if necessary."""
    folder = ROOTS / suite
    if not folder.exists():
        part = ROOTS / f"{suite}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        command = ["mmdebstrap", "--variant=minbase", f"--include={EXTRA}", suite, str(part)]
        subprocess.run(command, check=True, capture_output=True)
        part.rename(folder)
    return folder


def _ready(suite: str, package: Path) -> Path:
    """Return the folder of a system with all that a package depends on, and with a user."""
    folder = ROOTS / f"{suite}-ready"
    if not folder.exists():
        with _mounted(_base(suite)) as system:
            system.run("useradd", "--create-home", "--shell", "/bin/bash", USER, user=None)
            system.run(*APT, "update", user=None)
            system.install(package)
            system.run(*APT, "purge", "--yes", "poolhouse", user=None)
            system.end_all()
            part = ROOTS / f"{suite}-ready.part"
            shutil.rmtree(part, ignore_errors=True)
            words = ["cp", "-a", "--one-file-system", f"{system.root}/.", str(part)]
            subprocess.run(words, check=True)
        part.rename(folder)
    return folder
