"""The engine that the owner prefers: when it computes, what it takes, and when it is given up."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.gguf.gguf_file import Tensor
from app.core.errors import AppError, Busy, DoesNotFit, Reason, StageLost
from app.machine.hardware.added_engines import LIBRARY_BYTES, UsableEngine
from app.machine.settings import EngineSettings
from app.node.engines import added_engine
from app.node.engines.added_engine import AddedEngine
from backends.contract import LLAMACPP, Layers, Role, StageConfig

TORCH = UsableEngine("pytorch", "/srv/torch", "2.13.0+cpu", "", "", frozenset({"llama", "qwen3"}))
CONFIG = StageConfig(LLAMACPP, "stage.gguf", "", Role.MIDDLE, Layers(2, 6), 64, 2, 512, 64, 1, compared=True)
CHOSEN = EngineSettings("pytorch", "/srv/torch")
FAMILY = "llama Q4_K_M"
UNFIT = AppError("device_unfit", worker="attic", cause=Reason("device_apart", {"percent": "40.0"}))


class Owner:
    """An owner whose choice is tested by a stand-in for the process that tests engines."""

    def __init__(
        self, patch: pytest.MonkeyPatch, result: UsableEngine | Reason = TORCH, choices: Path | None = None
    ) -> None:
        self.chosen, self.notes, self.result = CHOSEN, list[Reason](), result
        self.tests: list[EngineSettings] = []
        self.takes: asyncio.Event | None = None  # what a test waits for
        patch.setattr(added_engine, "try_engine", self._try)
        self.engine = AddedEngine(lambda: self.chosen, note=self.notes.append, choices=choices)

    async def _try(self, chosen: EngineSettings, _: object) -> UsableEngine | Reason:
        self.tests.append(chosen)
        if self.takes is not None:
            await self.takes.wait()
        return self.result

    async def tested(self) -> AddedEngine:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.engine.run(), name="test the engine")
            await self.engine.tested()
            task.cancel()
        return self.engine


async def test_it_computes_its_architectures_once_it_has_passed_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    state = owner.engine.state
    assert state is not None
    assert state.testing
    assert owner.engine.for_stage(FAMILY) is None
    engine = await owner.tested()
    assert engine.for_stage(FAMILY) == TORCH
    assert engine.for_stage("mamba Q4_K_M") is None
    assert engine.for_stage(FAMILY, exact=True) is None
    assert (TORCH.label, engine.label) == ("PyTorch 2.13.0", "PyTorch 2.13.0")
    assert engine.label_of(CONFIG) == ""
    assert engine.label_of(TORCH.config(CONFIG)) == "PyTorch 2.13.0"


async def test_a_family_is_compared_until_it_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await Owner(monkeypatch).tested()
    config = engine.stage_config(TORCH, CONFIG, FAMILY)
    assert config == replace(CONFIG, engine="pytorch", library="/srv/torch")
    assert config.compared
    engine.opened(config, FAMILY, None)
    assert engine.stage_config(TORCH, CONFIG, FAMILY).compared
    engine.opened(config, FAMILY, 0.01)
    assert not engine.stage_config(TORCH, CONFIG, FAMILY).compared
    assert engine.stage_config(TORCH, CONFIG, "llama Q8_0").compared


async def test_a_family_that_it_computes_wrongly_is_left_to_llama_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    engine = await owner.tested()
    engine.failed(TORCH.config(CONFIG), FAMILY, UNFIT)
    assert engine.for_stage(FAMILY) is None
    assert engine.for_stage("qwen3 Q4_K_M") == TORCH
    assert [note.code for note in owner.notes] == ["log_node_engine_family"]
    assert engine.state is not None
    assert engine.state.refused == [FAMILY]


async def test_a_lack_of_memory_says_nothing_about_the_next_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    engine = await owner.tested()
    engine.failed(TORCH.config(CONFIG), FAMILY, DoesNotFit("engine_no_room", needed_bytes=2, free_bytes=1))
    assert engine.for_stage(FAMILY) == TORCH
    assert [note.code for note in owner.notes] == ["log_node_engine_failed"]


async def test_after_two_crashes_it_is_no_longer_used_until_it_is_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    engine = await owner.tested()
    for n_crashes in (1, 2):
        assert engine.for_stage(FAMILY) == TORCH, n_crashes
        engine.failed(
            TORCH.config(CONFIG), FAMILY, StageLost("worker_crashed", worker="attic", how="SIGSEGV", words="")
        )
    assert engine.for_stage(FAMILY) is None
    assert engine.state is not None
    assert engine.state.problem_facts == Reason("engine_crashes", {"count": 2})
    engine.test_again()  # the same one is chosen again
    assert (await owner.tested()).for_stage(FAMILY) == TORCH


async def test_llama_cpp_computes_again_once_it_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    engine = await owner.tested()
    owner.chosen = EngineSettings()
    assert engine.for_stage(FAMILY) is None, "at once"
    engine.test_again()
    assert (await owner.tested()).label == ""
    assert owner.tests == [CHOSEN], "llama.cpp needs no test"


async def test_a_choice_during_a_test_is_tested_next_and_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, other = Owner(monkeypatch), EngineSettings("apple", "/srv/mlx")
    owner.takes = asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(owner.engine.run(), name="test the engines")
        waits = group.create_task(owner.engine.tested(), name="wait for the first")
        await asyncio.sleep(0)
        owner.chosen = other
        owner.engine.test_again()
        group.create_task(owner.engine.tested(), name="wait for the second")
        await asyncio.sleep(0)
        owner.takes.set()
        state = await waits
        running.cancel()
    assert owner.tests == [CHOSEN, other]
    assert state is not None
    assert state.name == "apple"


async def test_a_load_waits_for_a_test_but_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    monkeypatch.setattr(added_engine, "WAIT_SECONDS", 0.05)
    owner.takes = asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(owner.engine.run(), name="test the engine")
        await owner.engine.wait()
        assert owner.engine.for_stage(FAMILY) is None
        owner.takes.set()
        await owner.engine.wait()
        assert owner.engine.for_stage(FAMILY) == TORCH
        running.cancel()


@pytest.mark.parametrize(
    "error", [DoesNotFit("speed_no_room", needed_bytes=2, free_bytes=1), UNFIT], ids=["room", "unfit"]
)
async def test_a_family_whose_speed_cannot_be_measured_is_left_to_llama_cpp(
    monkeypatch: pytest.MonkeyPatch, error: AppError
) -> None:
    engine = await Owner(monkeypatch).tested()
    assert not engine.not_measured(FAMILY, Busy("speed_busy"))
    assert engine.for_stage(FAMILY) == TORCH
    assert engine.not_measured(FAMILY, error)
    assert engine.for_stage(FAMILY) is None
    assert engine.for_stage("qwen3 Q4_K_M") == TORCH


async def test_a_failed_test_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await Owner(monkeypatch, Reason("engine_wrong", {"percent": 12.5})).tested()
    assert engine.for_stage(FAMILY) is None
    assert engine.label == ""
    assert engine.state is not None
    assert not engine.state.used
    assert "off by 12.5%" in (engine.state.problem or "")


def test_weights_take_four_bytes_on_a_processor_and_stay_packed_on_a_device() -> None:
    tensors = {"a": Tensor((256, 4), 2, 0, 576), "b": Tensor((8,), 0, 576, 32)}
    assert TORCH.more_bytes(tensors) == LIBRARY_BYTES + 4 * (256 * 4 + 8) - 608
    assert replace(TORCH, device="cuda:0").more_bytes(tensors) == LIBRARY_BYTES


async def test_it_computes_only_families_that_it_was_measured_to_compute_faster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    owner = Owner(monkeypatch, choices=tmp_path / "engine-speeds.json")
    owner.chosen = EngineSettings("pytorch", "/srv/torch", if_faster=True)
    engine = await owner.tested()
    assert engine.for_stage(FAMILY) is None
    assert engine.candidate(FAMILY) == TORCH
    assert engine.candidate("mamba Q4_K_M") is None
    assert engine.candidate(FAMILY, exact=True) is None
    engine.compared(FAMILY, faster=True)
    engine.compared("qwen3 Q8_0", faster=False)
    assert (engine.for_stage(FAMILY), engine.candidate(FAMILY)) == (TORCH, None)
    assert (engine.for_stage("qwen3 Q8_0"), engine.candidate("qwen3 Q8_0")) == (None, None)
    state = engine.state
    assert state is not None
    assert (state.if_faster, state.faster, state.slower) == (True, [FAMILY], ["qwen3 Q8_0"])


async def test_what_was_measured_outlives_a_restart_but_not_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "engine-speeds.json"
    for result, is_used in ((TORCH, True), (replace(TORCH, version="2.14.0"), False)):
        owner = Owner(monkeypatch, result, choices=file)
        owner.chosen = EngineSettings("pytorch", "/srv/torch", if_faster=True)
        engine = await owner.tested()
        if not file.exists():
            engine.compared(FAMILY, faster=True)
            again = Owner(monkeypatch, result, choices=file)
            again.chosen = owner.chosen
            engine = await again.tested()
        assert (engine.for_stage(FAMILY) is not None) == is_used
    file.write_text('{"format": 1, "faster": 3}')
    damaged = Owner(monkeypatch, choices=file)
    damaged.chosen = EngineSettings("pytorch", "/srv/torch", if_faster=True)
    assert (await damaged.tested()).candidate(FAMILY) == TORCH


async def test_measuring_again_by_hand_compares_again(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    owner.chosen = EngineSettings("pytorch", "/srv/torch", if_faster=True)
    engine = await owner.tested()
    engine.compared(FAMILY, faster=False)
    engine.compare_again(FAMILY)
    assert engine.candidate(FAMILY) == TORCH
    engine.compared(FAMILY, faster=False)
    engine.test_again()
    assert (await owner.tested()).candidate(FAMILY) == TORCH


async def test_the_person_who_loads_a_model_can_choose_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner(monkeypatch)
    owner.chosen = EngineSettings("pytorch", "/srv/torch", if_faster=True)
    engine = await owner.tested()
    engine.compared(FAMILY, faster=False)
    assert engine.for_stage(FAMILY, chosen="pytorch") == TORCH
    assert engine.for_stage(FAMILY, chosen="apple") is None
    assert engine.for_stage(FAMILY, chosen="pytorch", exact=True) is None
    engine.compared(FAMILY, faster=True)
    assert engine.for_stage(FAMILY, chosen="apple") == TORCH  # not here, so the owner's choice
    assert engine.for_stage(FAMILY, chosen=LLAMACPP) is None
