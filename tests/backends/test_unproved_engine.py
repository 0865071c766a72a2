"""A worker whose engine is one with which no cut was proved computes whole models, and no part of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.reasons import said
from app.inference.worker.worker_errors import refusal_error
from backends import worker_orders
from backends.contract import PROVED_ENGINES, Layers, NumberFormat, Role, StageConfig
from backends.llamacpp import binding
from backends.worker.service import Service, told
from testbed import tiny
from tests.backends.cutting import config

WIDTH = 256
RUNS = [(Role.FIRST, Layers(0, 1)), (Role.MIDDLE, Layers(1, 2)), (Role.LAST, Layers(2, 3)), (Role.WHOLE, Layers(0, 3))]


@contextmanager
def answer(stage_config: StageConfig) -> Iterator[worker_orders.WorkerAnswer]:
    """Return a worker's answer to the request to open this."""
    order = worker_orders.OpenStage(
        request=1, pipeline="0" * 32, epoch=1, number=int(NumberFormat.F32), context=64,
        memory_limit_bytes=0, config=stage_config,
    )  # fmt: skip
    with closing(Service()) as service:
        (frame,) = service.answer(told(order))  # type: ignore[arg-type]
        yield worker_orders.decode_answer(frame.payload)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tiny.llama(tmp_path / "m.gguf", layers=3, width=WIDTH)


@pytest.mark.parametrize(("role", "layers"), RUNS, ids=str)
@pytest.mark.parametrize("version", [*PROVED_ENGINES, "0.3.35"])
def test_a_part_of_a_model_is_for_a_proved_engine(
    model: Path, role: Role, layers: Layers, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, "version", lambda: version)
    stage_config = config(model, layers, role, WIDTH)
    with answer(stage_config) as said_so:
        if role is Role.WHOLE or version in PROVED_ENGINES:
            assert isinstance(said_so, worker_orders.StageOpened)
            return
        assert isinstance(said_so, worker_orders.Failed)
        assert said_so.code == "engine_unproved"
        sentence = said(refusal_error(said_so, "this computer"))
        assert f"llama-cpp-python {version}" in sentence
        assert "make setup" in sentence
    with answer(replace(stage_config, any_engine=True)) as said_so:  # the proof of another engine
        assert isinstance(said_so, worker_orders.StageOpened)


def test_what_is_proved_is_what_is_installed() -> None:
    assert binding.version() in PROVED_ENGINES
