"""Tests of which cores count: fast, whole ones that this process may use, and no more than a quota leaves."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from app.machine.hardware import cores
from app.machine.hardware.cores import Cores, Threads, linux_cores, windows_cores


def write(folder: Path, cpu: int, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"cpu{cpu}" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def test_two_threads_of_a_core_are_one_whole(tmp_path: Path) -> None:
    for cpu in range(8):
        write(tmp_path, cpu, topology__core_cpus_list=f"{cpu % 4},{cpu % 4 + 4}")
    assert linux_cores(range(8), tmp_path) == Cores(8, 4)
    assert linux_cores([0, 4, 1], tmp_path) == Cores(3, 2)  # what a pinned process may use


def test_slow_cores_are_left_out_by_their_frequency(tmp_path: Path) -> None:
    """Four fast cores of two threads each, of which one is faster still, and four slow ones."""
    for cpu in range(12):
        fast = cpu < 8
        write(
            tmp_path, cpu,
            cpufreq__cpuinfo_max_freq="5200000" if cpu < 2 else "5000000" if fast else "3600000",
            topology__thread_siblings_list=f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" if fast else str(cpu),
        )  # fmt: skip
    assert linux_cores(range(12), tmp_path) == Cores(8, 4)
    assert linux_cores(range(8, 12), tmp_path) == Cores(4, 4)  # pinned to the slow ones


def test_slow_cores_are_left_out_by_their_capacity(tmp_path: Path) -> None:
    for cpu, capacity in enumerate((1024, 1024, 800, 800, 320, 320, 320, 320)):
        write(tmp_path, cpu, cpu_capacity=str(capacity))
    assert linux_cores(range(8), tmp_path) == Cores(4, 4)


def test_a_kernel_that_tells_nothing_has_equal_cores(tmp_path: Path) -> None:
    assert linux_cores(range(3), tmp_path) == Cores(3, 3)


def core(kind: int, mask: int, group: int = 0) -> bytes:
    """PROCESSOR_RELATIONSHIP as Windows writes it, for one core."""
    body = struct.pack("<BB20xHQH6x", 0, kind, 1, mask, group)
    return struct.pack("<II", 0, 8 + len(body)) + body


def test_windows_names_a_class_for_each_core() -> None:
    described = core(1, 0b11) + core(1, 0b1100) + core(0, 0b10000) + core(0, 0b100000) + core(1, 3, 1)
    assert windows_cores(described, set(range(6))) == Cores(4, 2)
    assert windows_cores(described, {0, 2, 4}) == Cores(2, 2)
    assert windows_cores(described, {4, 5}) == Cores(2, 2)
    assert windows_cores(b"", {0}) is None


def test_a_quota_bounds_both() -> None:
    assert Cores(8, 4).within(None) == Cores(8, 4)
    assert Cores(8, 4).within(5.0) == Cores(5, 4)
    assert Cores(8, 4).within(1.5) == Cores(2, 2)
    assert Cores(8, 4).within(0.2) == Cores(1, 1)


def test_here_at_least_one_and_no_more_than_allowed() -> None:
    fast_cores = cores.fast_cores()
    assert 1 <= fast_cores.physical <= fast_cores.logical <= (os.cpu_count() or 1)


def test_a_worker_begins_with_whole_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "fast_cores", lambda: Cores(8, 4))
    monkeypatch.setattr(cores, "cpu_quota_cores", lambda: None)
    assert cores.worker_threads() == Threads(8, 4)
    monkeypatch.setattr(cores, "cpu_quota_cores", lambda: 2.0)
    assert cores.worker_threads() == Threads(2, 2)


def test_what_an_owner_lends_bounds_both() -> None:
    assert Threads(8, 4).at_most(0) == Threads(8, 4)
    assert Threads(8, 4).at_most(6) == Threads(6, 4)
    assert Threads(8, 4).at_most(2) == Threads(2, 2)
    assert Threads(3).at_most(2) == Threads(2)
