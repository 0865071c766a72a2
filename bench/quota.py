"""CPU quotas: control groups limited to a share of a core's time (Linux, root)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PERIOD_US = 10_000  # short, so that a machine pauses only for a few milliseconds
V1 = Path("/sys/fs/cgroup/cpu")
V2 = Path("/sys/fs/cgroup")


class NoQuota(RuntimeError):
    """This system offers no CPU quota. The text says why."""


def quota_files(folder: Path, cores: float, period_us: int = PERIOD_US) -> dict[str, str]:
    """Return the files to write in a group's folder, and their contents, so that the group gets `cores` of CPU time."""
    allowed = str(round(cores * period_us))
    if folder.parent == V1:
        return {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": allowed}
    return {"cpu.max": f"{allowed} {period_us}"}


def root() -> Path:
    """Return the root of the hierarchy with the CPU controller. Raises NoQuota."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise NoQuota("CPU quotas need root on Linux")
    if (V1 / "cpu.cfs_quota_us").exists():
        return V1
    controllers = V2 / "cgroup.controllers"
    if controllers.exists() and "cpu" in controllers.read_text().split():
        return V2
    raise NoQuota("this kernel offers no CPU quota (no cpu controller in /sys/fs/cgroup)")


@contextlib.contextmanager
def quotas(cores: Sequence[float], period_us: int = PERIOD_US) -> Iterator[list[Path]]:
    """Create a control group for each share of a core, and remove them afterwards. Raises NoQuota."""
    base = root()
    folders = [base / f"poolhouse-bench-{os.getpid()}-{n}" for n in range(len(cores))]
    try:
        with contextlib.suppress(OSError):
            if base == V2:
                (base / "cgroup.subtree_control").write_text("+cpu")
        for folder, share in zip(folders, cores, strict=True):
            folder.mkdir()
            for name, value in quota_files(folder, share, period_us).items():
                (folder / name).write_text(value)
        yield folders
    except OSError as error:
        raise NoQuota(f"a CPU quota could not be set: {error}") from error
    finally:
        for folder in folders:
            remove(folder)


def remove(folder: Path) -> None:
    """Remove a group, which is possible only a moment after its last process has ended."""
    for _ in range(50):
        if not folder.exists():
            return
        with contextlib.suppress(OSError):
            folder.rmdir()
        time.sleep(0.05)
