"""The speeds of llama.cpp and an added engine are compared before that engine computes a family."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import AppError, Reason
from app.core.planner.speed_estimates import Speed, SpeedConditions
from app.inference.worker.layer_benchmark import BenchmarkSettings
from app.machine.hardware.added_engines import UsableEngine
from app.machine.hardware.cores import Threads
from app.machine.settings import EngineSettings
from app.node.engines import added_engine
from app.node.engines.added_engine import AddedEngine
from app.node.planning import local_speed
from app.node.planning.local_speed import Hardware, LocalSpeed, LocalWork
from tests.node.planning.test_speed_cache import SHAPE

TORCH = UsableEngine("pytorch", "/srv/torch", "2.13.0", "", "", frozenset({"llama"}))
USUAL = Speed(0.002, 0.001, 1e-6, 0.05, 1e-5, 0.0002, 0.004, 0.003)
FASTER = replace(USUAL, layer_s=0.0005, chunk_s=0.01)
CONDITIONS = SpeedConditions(128, family="llama Q4_K_M")
GIB = 1 << 30


class Spare:
    @asynccontextmanager
    async def reserve(self) -> AsyncIterator[None]:
        yield


class Idle:
    """This machine's work and limits: nothing to do, and a gibibyte to lend."""

    spare_memory = Spare()
    used_bytes, answering = 0, False

    def busy(self) -> bool:
        return False

    def require(self) -> None:
        """Lending is on."""

    def lent_bytes(self) -> int:
        return GIB

    def threads(self) -> int:
        return 1


class Bench:
    """A machine whose layers take what `speeds` says, by engine."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path, added: Speed | AppError) -> None:
        self.speeds: dict[bool, Speed | AppError] = {False: USUAL, True: added}
        self.trials: list[str] = []
        patch.setattr(added_engine, "try_engine", self._try)
        patch.setattr(local_speed, "measure", self._measure)
        patch.setattr(local_speed, "other_programs_share", lambda: 0.0)
        patch.setattr(Hardware, "engines", self._no_engines)
        chosen = EngineSettings("pytorch", "/srv/torch", if_faster=True)
        self.engine = AddedEngine(lambda: chosen, choices=root / "engine-speeds.json")
        hardware = Hardware(Threads(1), lambda: None)
        hardware.added_engine = self.engine
        idle = Idle()
        self.speed = LocalSpeed(LocalWork(hardware, idle, idle, idle), root)  # type: ignore[arg-type]

    async def _try(self, chosen: EngineSettings, _: object) -> UsableEngine | Reason:
        return TORCH

    async def _no_engines(self, *_: object) -> list[object]:
        return []

    async def _measure(self, shape: object, folder: Path, gauge: BenchmarkSettings, **_: object) -> Speed:
        self.trials.append("PyTorch" if gauge.engine else "llama.cpp")
        result = self.speeds[gauge.engine is not None]
        if isinstance(result, AppError):
            raise result
        return result

    async def tested(self) -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.engine.run(), name="test the engine")
            await self.engine.tested()
            task.cancel()


@pytest.fixture(params=["own", "lent"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def measured(bench: Bench, kind: str) -> Speed:
    if kind == "own":
        return await bench.speed.for_user(SHAPE, CONDITIONS)
    return await bench.speed.for_member(SHAPE, CONDITIONS, again=False)


async def test_a_faster_engine_computes_the_family_from_then_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    bench = Bench(monkeypatch, tmp_path, FASTER)
    await bench.tested()
    assert bench.engine.for_stage(CONDITIONS.family) is None
    assert await measured(bench, kind) == FASTER
    assert bench.engine.for_stage(CONDITIONS.family) == TORCH
    assert await measured(bench, kind) == FASTER
    assert bench.trials == ["llama.cpp", "PyTorch"]  # each once


async def test_a_slower_engine_does_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    bench = Bench(monkeypatch, tmp_path, replace(USUAL, layer_s=0.02))
    await bench.tested()
    assert await measured(bench, kind) == USUAL
    assert await measured(bench, kind) == USUAL
    assert bench.trials == ["llama.cpp", "PyTorch"]
    assert bench.engine.for_stage(CONDITIONS.family) is None
    assert bench.engine.candidate(CONDITIONS.family) is None


async def test_an_engine_that_cannot_be_measured_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    bench = Bench(monkeypatch, tmp_path, AppError("device_unfit", worker="den", cause=Reason("device_crashed")))
    await bench.tested()
    assert await measured(bench, kind) == USUAL
    assert await measured(bench, kind) == USUAL
    assert bench.trials == ["llama.cpp", "PyTorch"]
    state = bench.engine.state
    assert state is not None
    assert state.refused == [CONDITIONS.family]


async def test_exact_loads_are_not_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    bench = Bench(monkeypatch, tmp_path, FASTER)
    await bench.tested()
    exact = replace(CONDITIONS, exact=True)
    if kind == "own":
        assert await bench.speed.for_user(SHAPE, exact) == USUAL
    else:
        assert await bench.speed.for_member(SHAPE, exact, again=False) == USUAL
    assert bench.trials == ["llama.cpp"]


async def test_measuring_again_by_hand_compares_the_engines_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, replace(USUAL, layer_s=0.02))
    await bench.tested()
    await bench.speed.for_user(SHAPE, CONDITIONS)
    bench.speeds[True] = FASTER
    await bench.speed.doubt(SHAPE, CONDITIONS, by_hand=True)
    assert bench.engine.candidate(CONDITIONS.family) == TORCH
    assert await bench.speed.for_user(SHAPE, CONDITIONS) == FASTER
    bench.speeds[False] = replace(FASTER, layer_s=0.0001)
    await bench.speed.doubt(SHAPE, CONDITIONS, by_hand=True)
    assert await bench.speed.for_user(SHAPE, CONDITIONS) == bench.speeds[False]
