"""Tests of the effort of each family's layers as read from its files, and of the layer that represents them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from app.catalog.families.effort_reader import effort_of, kind_of, main_kind, stand_in_effort, stand_in_shape
from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.stages import synthetic_stage
from app.core.errors import BadInput
from app.core.planner.speed_estimates import Effort
from backends.contract import Role

FAMILIES = Path(__file__).parents[2] / "families"
UNFORECAST = {"deepseek-v32", "glm-moe-dsa"}


def effort(name: str) -> Effort:
    header = read_header(FAMILIES / f"{name}.gguf")
    return effort_of(header, model_of(header, "m", "0" * 64))


@pytest.mark.parametrize("path", sorted(FAMILIES.glob("*.gguf")), ids=lambda path: path.stem)
def test_every_family_but_those_that_choose_positions_is_known(path: Path) -> None:
    header = read_header(path)
    model = model_of(header, "m", "0" * 64)
    if path.stem in UNFORECAST:
        with pytest.raises(BadInput, match="unforecast_indexer"):
            effort_of(header, model)
        return
    result = effort_of(header, model)
    experts = result.experts.n_bytes if result.experts else 0
    assert result.n_bytes + experts == pytest.approx(sum(model.weights.layer_bytes) / model.n_layers)
    assert result.weights > 0
    assert (result.experts is not None) == ("expert_used_count" in str(list(header.entries)))
    assert (result.state_bytes > 0) == bool(model.state_bytes)


def test_windows_states_and_experts_are_told_apart() -> None:
    gemma, hybrid, experts = effort("gemma3"), effort("qwen3-5"), effort("qwen3-moe")
    assert gemma.window == 8
    assert gemma.window_position == 7 * gemma.position  # of eight layers one looks at all
    assert hybrid.position < effort("qwen3").position
    assert experts.experts is not None
    assert (experts.experts.n, experts.experts.used) == (4, 2)


W, FFN, VOCABULARY = 32, 32, 272  # of all models of tests/families
Q, KV = 4 * 16, 2 * 16  # heads times their length
ATTENTION = W * (Q + 2 * KV) + Q * W
GATED = 3 * W * FFN


@dataclass(frozen=True, slots=True)
class Counted:
    """Multiplications of a row in all layers together, counted by hand from the papers' formulas."""

    layers: int
    weights: int  # those that every row passes
    positions: int  # for each earlier position, in layers that look at all of them
    near_positions: int = 0
    expert_weights: int = 0  # of all experts
    states: int = 0  # values


DELTA_KEYS, DELTA_VALUES, KERNEL = 2 * 16, 4 * 16, 4
DELTA_CHANNELS = 2 * DELTA_KEYS + DELTA_VALUES
DELTA = (W + KERNEL) * DELTA_CHANNELS + 2 * W * DELTA_VALUES + 2 * W * 4  # alpha and beta: a head each
LATENT, TURNED, PLAIN, SPOKEN, ASKED = 16, 8, 16, 16, 24  # of MLA: one latent for all of 4 heads
MLA = W * ASKED + ASKED * 4 * (PLAIN + TURNED) + W * (LATENT + TURNED) + 4 * SPOKEN * W
MLA += 4 * LATENT * (PLAIN + SPOKEN)  # queries into the latent space, values out of it
SMALL_Q, SMALL_KV = 4 * 8, 2 * 8  # lfm2's heads
COUNTED = {
    "qwen3": Counted(4, 4 * (ATTENTION + GATED), 4 * 2 * Q),
    "gemma3": Counted(8, 8 * (ATTENTION + GATED), 2 * Q, 7 * 2 * Q),
    "qwen3-moe": Counted(4, 4 * (ATTENTION + W * 4), 4 * 2 * Q, 0, 4 * 4 * 3 * W * 16),
    "gpt-oss": Counted(5, 5 * (ATTENTION + W * 4), 2 * 2 * Q, 3 * 2 * Q, 5 * 4 * 3 * W * 32),
    "deepseek-v3": Counted(
        5, 5 * MLA + 2 * GATED + 3 * (W * 4 + 3 * W * 16), 5 * 4 * (LATENT + TURNED + LATENT), 0,
        3 * 4 * 3 * W * 16,
    ),
    "qwen3-5": Counted(
        8, 6 * DELTA + 2 * (ATTENTION + W * Q) + 8 * GATED, 2 * 2 * Q, 0, 0,
        6 * (4 * 16 * 16 + (KERNEL - 1) * DELTA_CHANNELS),
    ),
    "lfm2": Counted(
        6, 3 * (4 * W * W + 3 * W) + 3 * (W * (SMALL_Q + 2 * SMALL_KV) + SMALL_Q * W) + 6 * GATED,
        3 * 2 * SMALL_Q, 0, 0, 3 * 2 * W,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_multiplications_are_those_counted_by_hand(name: str) -> None:
    result, counted = effort(name), COUNTED[name]
    n, experts = counted.layers, result.experts.weights if result.experts else 0
    assert result.weights * n == pytest.approx(counted.weights)
    assert result.position * n == pytest.approx(counted.positions)
    assert result.window_position * n == pytest.approx(counted.near_positions)
    assert experts * n == pytest.approx(counted.expert_weights)
    assert result.state_values * n == pytest.approx(counted.states)
    assert result.head_weights == W * VOCABULARY


@pytest.mark.parametrize(
    ("quantization", "kind"),
    [("Q4_K_M", "Q4_K"), ("UD-Q4_K_XL", "Q4_K"), ("Q8_0", "Q8_0"), ("BF16", "BF16"), ("F16", "F16"),
     ("IQ4_XS", "IQ4_XS"), ("MXFP4_MOE", "MXFP4"), ("Q3_K_S", "Q3_K"), ("", "Q4_K")],
)  # fmt: skip
def test_the_number_type_behind_a_mix(quantization: str, kind: str) -> None:
    assert kind_of(quantization) == kind


@pytest.mark.parametrize("kind", ["Q4_K", "Q8_0", "F16", "MXFP4", "NVFP4", "I8"])
def test_the_layer_that_stands_for_others_can_be_measured(kind: str, tmp_path: Path) -> None:
    shape = stand_in_shape(kind)
    synthetic_stage.check(shape)
    if kind == "Q4_K":
        path = tmp_path / "one.gguf"
        made = synthetic_stage.write(path, shape, shape.runs[0], Role.MIDDLE)
        result, said = effort_of(read_header(path), made), stand_in_effort(shape)
        assert result.n_bytes == said.n_bytes
        assert (result.weights, result.position) == (said.weights, said.position)
        assert main_kind(read_header(path), made) == kind
