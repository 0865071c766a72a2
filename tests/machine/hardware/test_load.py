"""Tests of how much of the processor other programs use."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from app.machine.hardware import devices


def test_this_process_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the computer is, what this process uses of it is taken off."""
    monkeypatch.setattr(psutil, "cpu_percent", _computed)
    n_cores = psutil.cpu_count() or 1
    assert devices.other_programs_share() < 1 - 0.1 / n_cores


def _computed(seconds: float) -> float:
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass
    return 100.0


def test_a_busy_program_is_seen() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    late = time.monotonic() + 10  # it takes a moment to begin
    try:
        while devices.other_programs_share() <= 0.3 / (psutil.cpu_count() or 1):
            assert time.monotonic() < late
    finally:
        busy.kill()
        busy.wait()


def test_a_system_that_does_not_report_its_load_counts_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wine is one. A model loads all the same."""

    def refuse(*_: object) -> None:
        raise OSError(1, "Invalid function")

    monkeypatch.setattr(psutil, "cpu_times", refuse)
    monkeypatch.setattr(psutil, "cpu_percent", refuse)
    assert devices.other_programs_share() == 0
    assert devices.OtherProgramsLoad(psutil.Process().pid).busy_cores() == 0
