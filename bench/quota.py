"""CPU quotas by means of control groups that are limited to a fraction of a core (Linux, root)."""

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
    """Raised if this system offers no CPU quotas. The message states the reason."""


def quota_files(folder: Path, cores: float, period_us: int = PERIOD_US) -> dict[str, str]:
    """Return the contents of the files in a control group's folder that limit it to `cores` of CPU time."""
    allowed = str(round(cores * period_us))
    if folder.parent == V1:
        return {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": allowed}
    return {"cpu.max": f"{allowed} {period_us}"}


def root() -> Path:
    """Return the root of the control group hierarchy that has the CPU controller. Raises NoQuota."""
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
    """Create a control group for each fraction of a core, and remove them at the end of the block. Raises NoQuota."""
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
    """Remove a control group. Retry for a while, because its last process may still be ending."""
    for _ in range(50):
        if not folder.exists():
            return
        with contextlib.suppress(OSError):
            folder.rmdir()
        time.sleep(0.05)
