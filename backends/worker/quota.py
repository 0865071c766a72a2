"""How much processor time a control group leaves this process, on Linux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def quota_cores(groups: Path = GROUPS, own: Path = OWN) -> float | None:
    """In cores, by this process's control group and those above it; None: no limit."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return min((cores for line in lines for cores in _limits(line, groups)), default=None)


def _limits(line: str, groups: Path) -> Iterator[float]:
    """Of one hierarchy, as /proc/self/cgroup names it."""
    _, controllers, path = line.split(":", 2)
    if controllers and "cpu" not in controllers.split(","):
        return
    for group in (Path(path), *Path(path).parents):
        folder = groups / ("cpu" if controllers else "") / group.relative_to("/")
        try:
            if controllers:
                quota = (folder / "cpu.cfs_quota_us").read_text(encoding="utf-8").strip()
                period = (folder / "cpu.cfs_period_us").read_text(encoding="utf-8").strip()
            else:
                quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            continue  # the root has none
        if quota not in ("max", "-1"):
            yield int(quota) / int(period)
