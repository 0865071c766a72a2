"""A worker's bounds by the system: what Windows is asked for, and who asks."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run
from app.inference.worker import worker
from app.inference.worker.worker import ExtendedLimits, Job, Worker, limits
from backends.contract import Layers, NumberFormat, Role, StageConfig
from backends.worker import process_resources

GROWS = """
import sys
sys.stdin.readline()
try:
    print(len(bytearray(600 << 20)), flush=True)
except MemoryError:
    print("refused", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="the layout of 64 bits")
def test_it_has_the_layout_that_windows_reads() -> None:
    """winnt.h: 64 bytes, six counters, four sizes."""
    assert (ctypes.sizeof(ExtendedLimits), ExtendedLimits.process_memory.offset) == (144, 112)
    assert ExtendedLimits.basic.offset == 0
    assert worker.BasicLimits.flags.offset == 16


def test_a_job_ends_with_its_node_and_holds_memory_below_a_bound_that_is_given() -> None:
    assert limits().basic.flags == 0x2000
    bound = limits(5 << 30)
    assert (bound.basic.flags, bound.process_memory) == (0x2100, 5 << 30)


@pytest.mark.skipif(sys.platform != "win32", reason="a Job Object of Windows")
@pytest.mark.parametrize(("may", "expected"), [(256 << 20, "refused"), (2 << 30, str(600 << 20))])
def test_the_system_refuses_what_is_beyond_it(may: int, expected: str) -> None:
    """This test has not been run yet, as no Windows computer was available."""
    python = getattr(sys, "_base_executable", sys.executable)  # a venv's own one only starts that
    with subprocess.Popen([python, "-c", GROWS], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        job = Job(child.pid)
        assert child.stdin is not None
        assert child.stdout is not None
        job.limit_growth(may)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline().strip() == expected
        job.close()  # ends it
        assert child.wait(10) != 0


async def test_a_run_with_a_limit_is_bounded_with_room_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[int] = []
    monkeypatch.setattr(Job, "limit_growth", lambda _, n_bytes: requests.append(n_bytes))
    run = Run(bytes(16), Role.WHOLE, 8, NumberFormat.F32)
    config = StageConfig("fake", "fake:", "", Role.WHOLE, Layers(0, 2), 8, 1, 16, 16, 3)
    async with await Worker.start("worker") as worker:
        await open_run(worker, run, 16, config)
        assert requests == []  # its own machine's: nobody set a limit
    async with await Worker.start("worker") as worker:
        await open_run(worker, run, 16, config, memory_limit_bytes=100 << 20)
    assert requests == [process_resources.memory_allowance(100 << 20, 3)]
    assert requests[0] == (110 + 512 + 3 * 16) << 20
