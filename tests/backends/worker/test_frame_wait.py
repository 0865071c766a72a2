"""A worker stays awake for a moment after a step, and sleeps otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from backends import __main__
from backends.__main__ import FrameWait
from backends.worker import process_resources

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes have no poll() there")
SWITCHES = __main__.switches
AWAKE_S, LATE_S = 1.0, 20.0  # long enough to be told from what a crowded machine adds


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever limits the tests themselves."""
    monkeypatch.setattr(process_resources, "cpu_quota_cores", lambda: None)
    monkeypatch.setattr(__main__, "AWAKE_S", AWAKE_S)
    monkeypatch.setattr(__main__, "switches", lambda: 0)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def taken(waits: FrameWait) -> float:
    began = time.monotonic()
    waits.wait()
    return time.monotonic() - began


def test_before_any_step_it_does_not_stay_awake(pipe: tuple[int, int]) -> None:
    assert taken(FrameWait(pipe[0])) < AWAKE_S / 2


def test_after_a_step_it_stays_awake_for_a_moment(pipe: tuple[int, int]) -> None:
    waits = FrameWait(pipe[0])
    waits.computed()
    assert AWAKE_S * 0.9 < taken(waits) < AWAKE_S + LATE_S
    assert taken(waits) < AWAKE_S / 2  # and no longer


def test_a_frame_ends_the_wait(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "AWAKE_S", 60.0)
    waits = FrameWait(pipe[0])
    waits.computed()
    soon = threading.Timer(0.05, os.write, (pipe[1], b"frame"))
    soon.start()
    assert taken(waits) < 0.05 + LATE_S
    soon.join()
    assert os.read(pipe[0], 16) == b"frame"  # untouched


def test_the_end_of_the_pipe_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "AWAKE_S", 60.0)
    read, write = os.pipe()
    waits = FrameWait(read)
    waits.computed()
    os.close(write)
    assert taken(waits) < LATE_S
    os.close(read)


def test_under_a_quota_it_sleeps(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_resources, "cpu_quota_cores", lambda: 0.5)
    waits = FrameWait(pipe[0])
    waits.computed()
    assert taken(waits) < AWAKE_S / 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no core can be chosen here")
def test_it_sleeps_where_another_computes_on_its_core(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "switches", SWITCHES)
    monkeypatch.setattr(__main__, "ASLEEP_S", 60.0)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        busy = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
        with subprocess.Popen(busy, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                other.stdout.readline()
                waits = FrameWait(pipe[0])
                waits.computed()
                assert taken(waits) < AWAKE_S / 2
                waits.computed()
                assert taken(waits) < 0.01  # it looks again later, not with each step
            finally:
                other.kill()
    finally:
        os.sched_setaffinity(0, before)
