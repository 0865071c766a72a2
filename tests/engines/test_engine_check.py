"""The comparison of a stage on PyTorch or MLX with llama.cpp, before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.catalog.shelf import Entry
from backends.apple.stage import MlxStage
from backends.contract import APPLE, PYTORCH, FamilyUnfit, Hidden, Layers, Role, StageConfig
from backends.engine_check import compare_stage
from backends.pytorch.stage import TorchStage
from backends.worker.stage_runner import open_engine
from tests.engines.parity import configs
from tests.families import proof
from tests.families.fixtures import families
from tests.families.home import Home

STAGES: dict[str, Any] = {PYTORCH: TorchStage, APPLE: MlxStage}
SOUND = 0.02
WRONG = 1.5


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return proof.home(tmp_path)


def cut(home: Home, name: str, engine: str) -> list[StageConfig]:
    """Return the stages of a model that is cut twice: the first, the middle and the last one."""
    entry: Entry = home.shelf.import_file(families()[name].path)
    return configs(home, entry, (1, entry.model.n_layers - 1), [engine] * 3)


@pytest.mark.parametrize("engine", STAGES)
@pytest.mark.parametrize("name", ["llama", "gemma3", "qwen3-moe", "phi3"])
def test_a_sound_stage_agrees_with_llama_cpp(home: Home, name: str, engine: str) -> None:
    first, middle, last = cut(home, name, engine)
    for config in (middle, last):
        with closing(open_engine(replace(config, compared=True))) as stage:
            assert stage.check is not None
            assert 0 <= stage.check.apart <= SOUND
    with closing(open_engine(replace(first, compared=True))) as stage:
        assert stage.check is None, "it takes only tokens"


@pytest.mark.parametrize("engine", STAGES)
def test_a_whole_model_is_compared_by_its_logits(home: Home, engine: str) -> None:
    entry = home.shelf.import_file(families()["llama"].path)
    config = home.config(entry, Layers(0, entry.model.n_layers), Role.WHOLE, apart=False)
    with closing(open_engine(replace(config, engine=engine, compared=True))) as stage:
        assert stage.check is not None
        assert stage.check.apart <= SOUND


@pytest.mark.parametrize("engine", STAGES)
def test_a_stage_with_wrong_results_is_refused(home: Home, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, middle, _ = cut(home, "llama", engine)
    honest = STAGES[engine].forward

    def wrong(self: Any, batch: Any, due: Sequence[int], n_scored: Sequence[int] = ()) -> Any:
        out = honest(self, batch, due, n_scored)
        rows = np.frombuffer(out.rows, np.float32) * WRONG
        return Hidden(out.segments, rows.view(np.uint8).data)

    monkeypatch.setattr(STAGES[engine], "forward", wrong)
    with pytest.raises(FamilyUnfit, match="off by"):
        open_engine(replace(middle, compared=True))


def test_a_stage_is_empty_after_the_comparison(home: Home) -> None:
    _, middle, _ = cut(home, "llama", PYTORCH)
    with closing(TorchStage(middle)) as stage:
        first, again = compare_stage(stage, middle), compare_stage(stage, middle)
    assert first == again
