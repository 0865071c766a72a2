"""The processor cores that this process may use, and the number of threads that a worker should run on them."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import psutil

from backends.worker.process_resources import cpu_quota_cores


@dataclass(frozen=True, slots=True)
class Threads:
    """The thread counts of a worker. No step uses more than `most` threads.

    The search for the fastest count starts at `begin` (backends/llamacpp/thread_choice.py). If `begin` is 0, the worker
    always uses `most` threads, because the user chose that number.
    """

    most: int
    begin: int = 0

    def at_most(self, limit: int) -> Threads:
        """Return the thread counts limited to the number of threads that the owner lends. 0 means no limit."""
        if not limit or limit >= self.most:
            return self
        return Threads(limit, min(self.begin, limit))


YIELD_SHARE = 0.4  # of a core; if other programs use more than this, our workers give up a thread


def threads_left_by_owner(most: int, others_cores: float) -> int:
    """Return how many threads other machines' layers may use while the owner's programs use `others_cores` cores.

    At least one thread is always allowed. Beyond that, enough cores are left that the owner's programs never have to
    wait.
    """
    return max(1, min(most, int(most - others_cores + YIELD_SHARE)))


LINUX = Path("/sys/devices/system/cpu")
FAST_SHARE = 0.7  # of the fastest core's speed; fast cores would wait for slower ones at the end of each layer
FREQUENCY = Path("cpufreq/cpuinfo_max_freq")
SIBLINGS = (Path("topology/core_cpus_list"), Path("topology/thread_siblings_list"))  # new name, old name
CORE = 0  # LOGICAL_PROCESSOR_RELATIONSHIP::RelationProcessorCore


@dataclass(frozen=True, slots=True)
class Cores:
    """A number of processor cores.

    A core that runs two hardware threads counts twice in `logical` and once in `physical`.
    """

    logical: int
    physical: int

    def within(self, quota: float | None) -> Cores:
        """Return the cores limited to `quota`, a control group's CPU quota in cores. None means no quota."""
        if quota is None:
            return self
        most = max(1, ceil(quota))
        return Cores(min(self.logical, most), min(self.physical, most))


def worker_threads() -> Threads:
    """Return a worker's thread counts on this machine, with at most one thread per fast logical core.

    The search for the fastest count starts with one thread per fast physical core.
    """
    cores = fast_cores().within(cpu_quota_cores())
    return Threads(cores.logical, cores.physical)


def fast_cores() -> Cores:
    """Return the fast cores that this process may use, or all its cores if the system does not distinguish them."""
    cores = None
    if sys.platform == "linux":
        cores = linux_cores(os.sched_getaffinity(0))
    elif sys.platform == "darwin":
        cores = _on_macos()
    elif sys.platform == "win32":
        cores = windows_cores(_windows_cores(), set(psutil.Process().cpu_affinity()))
    if cores is not None:
        return cores
    logical = os.cpu_count() or 1
    return Cores(logical, min(logical, psutil.cpu_count(logical=False) or logical))


def linux_cores(allowed: Iterable[int], folder: Path = LINUX) -> Cores | None:
    """Return the fast cores among the `allowed` cores, or None if there are none.

    Cores are compared by their capacity or maximum frequency in sysfs.
    """
    places = {cpu: folder / f"cpu{cpu}" for cpu in allowed}
    # cpu_capacity is exact, but exists only on some kernels and only if cores differ
    for file in (Path("cpu_capacity"), FREQUENCY):
        speeds = {cpu: _number(place / file) for cpu, place in places.items()}
        if len(set(speeds.values())) > 1:
            break
    most = max(speeds.values(), default=0)
    quick = [cpu for cpu, speed in speeds.items() if speed >= FAST_SHARE * most]
    if not quick:
        return None
    physical = {_first_text(places[cpu] / file for file in SIBLINGS) or str(cpu) for cpu in quick}
    return Cores(len(quick), len(physical))


def windows_cores(described: bytes, allowed: set[int]) -> Cores | None:
    """Return the `allowed` cores with the highest efficiency class, or None if there are none.

    described: the output of GetLogicalProcessorInformationEx. Only processor group 0 counts, because a process does not
    use other groups by default.
    """
    by_class: dict[int, list[int]] = {}
    for kind, mask in _cores_in(described):
        n_threads = sum(1 for cpu in allowed if mask >> cpu & 1)
        if n_threads:
            by_class.setdefault(kind, []).append(n_threads)
    if not by_class:
        return None
    quickest = by_class[max(by_class)]
    return Cores(sum(quickest), len(quickest))


def _cores_in(described: bytes) -> Iterator[tuple[int, int]]:
    """Yield the efficiency class and the logical processor mask of each core in processor group 0."""
    offset = 0
    while offset + 8 <= len(described):
        relationship, size = struct.unpack_from("<II", described, offset)
        if relationship == CORE and size >= 48:
            kind, mask, group = struct.unpack_from("<xB22xQH", described, offset + 8)
            if group == 0:
                yield kind, mask
        offset += max(size, 8)


def _windows_cores() -> bytes:
    """Return the output of GetLogicalProcessorInformationEx, or nothing if the call fails or on other systems."""
    if sys.platform == "win32":
        ask = ctypes.windll.kernel32.GetLogicalProcessorInformationEx
        size = ctypes.c_uint32(0)
        ask(CORE, None, ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value)
        return room.raw[: size.value] if ask(CORE, room, ctypes.byref(size)) else b""
    return b""


def _on_macos() -> Cores | None:
    """Return the cores with the highest performance level, or None on Macs whose cores are all alike."""
    physical, logical = _macos_perf_level("physicalcpu"), _macos_perf_level("logicalcpu")
    return Cores(logical, physical) if physical and logical else None


def _macos_perf_level(key: str) -> int:
    """Return `hw.perflevel0.KEY`, or 0 if it does not exist."""
    value, size = ctypes.c_uint32(0), ctypes.c_size_t(4)
    name = f"hw.perflevel0.{key}".encode()
    failed = ctypes.CDLL(None).sysctlbyname(name, ctypes.byref(value), ctypes.byref(size), None, 0)
    return 0 if failed else value.value


def _number(file: Path) -> int:
    text = _first_text([file])
    return int(text) if text.isdigit() else 0


def _first_text(files: Iterable[Path]) -> str:
    """Return the content of the first readable file."""
    for file in files:
        try:
            return file.read_text(encoding="utf-8").strip()
        except OSError:
            continue
    return ""
