"""Layers of random weights open and compute in the engine for each family that is measured so, as its own layers do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.catalog import synthetic
from app.catalog.families import FAMILIES
from app.catalog.gguf import model_of
from app.catalog.gguf_check import read_header
from app.catalog.shape import has_window, shape_of
from app.core.errors import BadInput
from app.core.model_shape import ModelShape
from backends.contract import Hidden, Layers, Role, Segment, StageConfig
from backends.llamacpp.stage import LlamaStage
from backends.numbers import VALUE, bytes_of
from tests.families.fixtures import families

MEASURED = sorted(
    name for name, one in families().items()
    if one.architecture in FAMILIES and FAMILIES[one.architecture].measurable
)  # fmt: skip


def shape(name: str) -> ModelShape:
    header = read_header(families()[name].path)
    model = model_of(header, name, "")
    if model.whole_reason is not None and model.whole_reason.code != "whole_one_layer":
        pytest.skip(f"{name} is not cut")
    return shape_of(header, model)


@pytest.mark.parametrize("name", MEASURED)
def test_each_mix_of_its_layers_computes(tmp_path: Path, name: str) -> None:
    made = shape(name)
    synthetic.check(made)
    several = synthetic.mixed(made, max(3, len(made.layers)))
    for role, layers in (
        (Role.MIDDLE, several), (Role.MIDDLE, made.layers[:1]), (Role.LAST, made.layers[:1])
    ):  # fmt: skip
        path = tmp_path / f"{role}-{len(layers)}.gguf"
        model = synthetic.write(path, made, layers, role)
        stage = LlamaStage(
            StageConfig(
                "llamacpp", str(path), "", role, Layers(0, len(layers)), made.width, 2, 512, 64,
                threads=1, traits=model.traits(role), any_engine=True,
            )
        )  # fmt: skip
        segment = Segment(0, 3, 0)
        rows = np.full(3 * made.width, 0.5, dtype=VALUE)
        found = stage.forward(Hidden((segment,), bytes_of(rows)), [0])
        assert np.isfinite(np.frombuffer(found.rows, VALUE)).all()
        stage.close()


def test_windows_are_counted_as_in_the_model() -> None:
    """Gemma 3: all but each sixth; what is measured has the same shares of both."""
    made = shape("gemma3")
    header = read_header(families()["gemma3"].path)
    n = model_of(header, "gemma3", "").n_layers
    near = sum(kind.count for kind in made.layers if has_window(kind))
    assert near == n - n // 6
    assert has_window(made.layers[0])


def test_families_whose_layers_need_their_place_are_estimated() -> None:
    with pytest.raises(BadInput) as caught:
        shape("falcon-h1")
    assert caught.value.reason.code == "speed_family"
