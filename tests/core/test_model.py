"""Tests of the weight of a model's parts in each role, and of which cuts make the whole model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from app.core.model import PLACEHOLDER_BYTES, PLACEHOLDER_ROWS, Cuts, Model, Weights
from backends.contract import MAX_CHECKPOINTS, KvType, Layers, Role


def model(tied: bool = False) -> Model:
    return Model(
        id="0" * 64, name="m", architecture="llama", n_layers=4, width=8, n_vocab=100,
        context_length=512, kv_bytes_per_token=(1, 2, 3, 4), file_bytes=9999, cuts=Cuts((1, 3)),
        weights=Weights((10, 20, 30, 40), embedding_bytes=1000, head_bytes=2000, tied=tied, shared_bytes=5),
        quantization="F16", license="", has_template=True,
    )  # fmt: skip


PLACEHOLDER = PLACEHOLDER_ROWS * PLACEHOLDER_BYTES * 8


@pytest.mark.parametrize(
    ("layers", "role", "tied", "n_bytes"),
    [
        (Layers(0, 1), Role.FIRST, False, 10 + 5 + PLACEHOLDER),
        (Layers(1, 3), Role.MIDDLE, False, 20 + 30 + 5 + PLACEHOLDER),
        (Layers(3, 4), Role.LAST, False, 40 + 5 + 2000),
        (Layers(0, 4), Role.WHOLE, False, 100 + 5 + 1000 + 2000),
        (Layers(0, 4), Role.WHOLE, True, 100 + 5 + 1000),
    ],
)
def test_bytes_of_a_stage(layers: Layers, role: Role, tied: bool, n_bytes: int) -> None:
    assert model(tied).stage_bytes(layers, role) == n_bytes


def test_bytes_of_a_kv_cache() -> None:
    assert model().kv_bytes(Layers(1, 3), cells=100) == 500
    assert model().kv_bytes(model().layers, cells=1) == 10
    assert model().kv_bytes(model().layers, cells=640, kind=KvType.Q8_0) == 10 * 34 * 10


def test_bytes_of_states_are_those_of_each_slot() -> None:
    """The running one and the kept ones, whatever the length of the context."""
    hybrid = replace(model(), kv_bytes_per_token=(0, 2, 0, 2), state_bytes=(100, 0, 100, 0))
    assert hybrid.kv_bytes(hybrid.layers, 10, slots=3) == 40 + 2 * 3 * (1 + MAX_CHECKPOINTS) * 100
    assert hybrid.kv_bytes(Layers(1, 2), 10, slots=3) == 20


@pytest.mark.parametrize(
    ("ends", "legal"),
    [
        ((0, 4), True),
        ((0, 1, 4), True),
        ((0, 1, 3, 4), True),
        ((0, 2, 4), False),
        ((0, 1, 3), False),
        ((1, 3, 4), False),
        ((0, 1, 3, 5), False),
    ],
)
def test_runs_that_are_the_whole_model(ends: tuple[int, ...], legal: bool) -> None:
    runs = tuple(Layers(*pair) for pair in pairwise(ends))
    assert model().may_cut(runs) is legal


def test_runs_with_a_gap_or_none_are_not_the_model() -> None:
    assert not model().may_cut((Layers(0, 1), Layers(3, 4)))
    assert not model().may_cut(())
