"""Tests of the processor time that control groups leave to a process, in both versions of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.worker.process_resources import cpu_quota_cores


@pytest.mark.parametrize(
    ("own", "folder", "said", "cores"),
    [
        ("0::/a/b", "a/b", {"cpu.max": "max 100000"}, None),
        ("0::/a/b", "a/b", {"cpu.max": "50000 100000"}, 0.5),
        ("0::/a/b", "a", {"cpu.max": "250000 100000"}, 2.5),
        ("0::/", "", {"cpu.stat": ""}, None),
        ("0::/", "", {"cpu.max": "100000 100000"}, 1.0),  # inside a container the root has one
        ("3:cpu,cpuacct:/a", "cpu/a", {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "9"}, None),
        ("1:memory:/x\n3:cpu,cpuacct:/a", "cpu/a",
         {"cpu.cfs_quota_us": "6667", "cpu.cfs_period_us": "10000"}, 0.6667),
        ("4:memory:/a", "cpu/a", {"cpu.cfs_quota_us": "6667", "cpu.cfs_period_us": "10000"}, None),
    ],
)  # fmt: skip
def test_a_quota_is_seen(tmp_path: Path, own: str, folder: str, said: dict[str, str], cores: float | None) -> None:
    there = tmp_path / "groups" / folder
    there.mkdir(parents=True)
    for name, text in said.items():
        (there / name).write_text(text + "\n")
    (tmp_path / "own").write_text(own + "\n")
    assert cpu_quota_cores(tmp_path / "groups", tmp_path / "own") == cores
    assert cpu_quota_cores(tmp_path / "groups", tmp_path / "none") is None


def test_the_strictest_group_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "a" / "b" / "cpu.max").write_text("400000 100000\n")
    (tmp_path / "own").write_text("0::/a/b\n")
    assert cpu_quota_cores(tmp_path, tmp_path / "own") == 1.5
