"""The lines of `poolhouse engine` about PyTorch and MLX."""

from __future__ import annotations

import msgspec

from app.api.engine_packs import AddedEngine, AvailableEngine
from app.cli.commands.engine.engine_install import _question, added_line, available_lines

MLX = AddedEngine("apple", "MLX 0.32.4", "/srv/mlx", used=True)
OFFERED = AvailableEngine("pytorch", "PyTorch 2.13.0", 2_740_000_000, 4_760_000_000, advice="It would be slow.")


def test_the_preferred_engine_has_a_line_for_each_state() -> None:
    assert added_line(MLX) == "MLX 0.32.4: preferred. llama.cpp computes the models that it cannot."
    testing = msgspec.structs.replace(MLX, used=False, testing=True)
    assert added_line(testing) == "MLX 0.32.4: being tested."
    failed = msgspec.structs.replace(MLX, used=False, problem="It crashed.")
    assert added_line(failed) == "MLX 0.32.4: not used. It crashed."
    measured = msgspec.structs.replace(MLX, if_faster=True, faster=["qwen3 Q4_K_M"], slower=["llama Q8_0"])
    assert added_line(measured) == (
        "MLX 0.32.4: used where it is faster than llama.cpp, as measured when a model is planned. "
        "It was faster for qwen3 Q4_K_M. It was slower for llama Q8_0."
    )


def test_each_available_engine_has_a_line() -> None:
    installed = msgspec.structs.replace(OFFERED, installed="2.13.0")
    preferred = msgspec.structs.replace(installed, preferred=True)
    assert available_lines([OFFERED, installed, preferred]) == [
        "PyTorch 2.13.0: not installed. `poolhouse engine add pytorch` downloads 2.6 GiB.",
        "PyTorch 2.13.0: installed, 4.4 GiB. `poolhouse engine prefer pytorch` uses it.",
        "PyTorch 2.13.0: installed and preferred, 4.4 GiB.",
    ]


def test_the_question_says_the_sizes_and_the_advice() -> None:
    assert _question(OFFERED, None) == (
        "It would be slow. PyTorch 2.13.0 is a download of 2.6 GiB and takes 4.4 GiB on the disk. "
        "Download it and use it?"
    )
