"""A worker that computes is told how many threads it may take, and says with how many it does."""

from __future__ import annotations

import asyncio
import os
import time
from types import SimpleNamespace

import psutil
import pytest

from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker.layer_benchmark import BenchmarkMonitor, TrialRun, report_nothing
from app.inference.worker.worker import Worker, threads_in_use
from app.machine.hardware import devices
from app.machine.hardware.cores import Threads, threads_left_by_owner
from app.machine.hardware.devices import OtherProgramsLoad
from backends.contract import Layers, NumberFormat, Role, StageConfig

WIDTH = 64
TWO = Threads(2, 2)


@pytest.mark.parametrize(
    ("most", "busy", "allowed"),
    [(2, 0.0, 2), (2, 0.3, 2), (2, 1.0, 1), (2, 2.0, 1), (8, 1.0, 7), (8, 3.7, 4), (8, 20.0, 1)],
)
def test_layers_of_others_make_room_for_what_the_owner_computes(most: int, busy: float, allowed: int) -> None:
    assert threads_left_by_owner(most, busy) == allowed


async def computed(worker: Worker) -> int:
    """Some steps of the engine that computes nothing; the threads told afterwards."""
    run = Run(os.urandom(16), Role.MIDDLE, WIDTH, NumberFormat.F16)
    config = StageConfig("fake", "fake:", "", Role.MIDDLE, Layers(0, 1), WIDTH, 1, 256, 64, threads=2, begin_threads=2)
    await open_run(worker, run, 256, config)
    client = own_stage(worker, run, "a trial", "a trial")
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(client.listen(), name="listen")
        watched = BenchmarkMonitor(lambda: False, report_nothing, asyncio.get_running_loop().time)
        await TrialRun(client, run, watched).time_steps(1, 0.01)
        listening.cancel()
    return worker.threads_used  # it answers in turn


@pytest.mark.parametrize(("yields", "used"), [(True, 1), (False, 2)])
async def test_lent_layers_yield_to_other_programs_and_one_s_own_do_not(
    monkeypatch: pytest.MonkeyPatch, yields: bool, used: int
) -> None:
    monkeypatch.setattr(OtherProgramsLoad, "busy_cores", lambda _: 1.0)
    async with await Worker.start("worker", threads=TWO, low_priority=yields) as worker:
        assert await computed(worker) == used
        assert threads_in_use() == used
    assert threads_in_use() == 0


async def test_a_number_that_was_chosen_is_told_to_nobody() -> None:
    async with await Worker.start("worker", threads=Threads(2)) as worker:
        assert await computed(worker) == 0


class Times:
    """The system's, and this process's: what a look reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.every_s, self.own_s, self.now_s = 100.0, 10.0, 0.0
        monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(user=self.every_s, system=0.0))
        monkeypatch.setattr(devices, "_used_s", lambda _: self.own_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)


def test_what_others_compute_is_counted_without_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    looks = OtherProgramsLoad(os.getpid())
    times.every_s, times.own_s, times.now_s = 107.0, 11.0, 2.0  # of ours, two processes: 2 s
    assert looks.busy_cores() == 2.5
    times.now_s = 4.0
    assert looks.busy_cores() == 0.0
