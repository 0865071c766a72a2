"""The public models of `make real` in PyTorch and MLX: the next tokens that llama.cpp finds likely."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.contract import APPLE, PYTORCH
from scripts.real_models import MODELS, folder, missing
from tests.engines.real_parity import real_parity

FOLDER, MISSING = folder(), missing()  # now: each test has a home of its own
MOST_KL, LEAST_TOP = 2e-3, 0.98
MOST_TOKENS = 40  # of each text; `python -m tests.engines.report` compares all


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", [PYTORCH, APPLE])
@pytest.mark.parametrize("file", [model.file for model in MODELS])
def test_the_next_tokens_are_those_of_llama_cpp(file: str, engine: str, tmp_path: Path) -> None:
    if file in MISSING:
        pytest.skip(f"needs {file}: `make real` fetches it")
    result = real_parity(FOLDER / file, tmp_path, MOST_TOKENS, engine)
    assert result.n_positions == 48
    assert result.exact.mean_kl <= MOST_KL, result
    assert result.exact.top >= LEAST_TOP, result
    # llama.cpp's own rounding: the engine adds nothing to it that counts
    assert result.working.mean_kl <= 1.2 * result.rounding.mean_kl + MOST_KL, result
