"""The engine that the owner prefers: when it computes, what it takes, and when it is given up."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from app.catalog.gguf.gguf_file import Tensor
from app.core.errors import AppError, DoesNotFit, Reason, StageLost
from app.machine.settings import EngineSettings
from app.node import added_engine
from app.node.added_engine import LIBRARY_BYTES, AddedEngine, UsableEngine
from backends.contract import LLAMACPP, Layers, Role, StageConfig

TORCH = UsableEngine("pytorch", "/srv/torch", "2.13.0+cpu", "", "", frozenset({"llama", "qwen3"}))
CONFIG = StageConfig(LLAMACPP, "stage.gguf", "", Role.MIDDLE, Layers(2, 6), 64, 2, 512, 64, 1, compared=True)
CHOSEN = EngineSettings("pytorch", "/srv/torch")
FAMILY = "llama Q4_K_M"


class Owner:
    """An owner whose choice is tested by a stand-in for the process that tests engines."""

    def __init__(self, patch: pytest.MonkeyPatch, result: UsableEngine | Reason = TORCH) -> None:
        self.chosen, self.notes, self.n_tests, self.result = CHOSEN, list[Reason](), 0, result
        patch.setattr(added_engine, "_tried", self._tried)
        self.engine = AddedEngine(lambda: self.chosen, note=self.notes.append)

    async def _tried(self, chosen: EngineSettings) -> tuple[UsableEngine | None, Reason | None]:
        self.n_tests += 1
        assert chosen == self.chosen
        return (self.result, None) if isinstance(self.result, UsableEngine) else (None, self.result)

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
    why = Reason("device_apart", {"percent": "40.0"})
    engine.failed(TORCH.config(CONFIG), FAMILY, AppError("device_unfit", worker="attic", cause=why))
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
    owner.chosen = EngineSettings()
    engine.settings_changed()
    assert (await owner.tested()).label == ""
    owner.chosen = CHOSEN
    engine.settings_changed()
    assert (await owner.tested()).for_stage(FAMILY) == TORCH


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
