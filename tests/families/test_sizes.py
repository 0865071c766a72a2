"""Numbers of layers by which the engine takes a model for another one: such a model runs whole, no run has so many."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from app.catalog.shelf import Entry
from app.core.errors import BadInput
from app.core.model import Model
from app.core.planner.placement import Workload
from app.core.planner.plan import plan
from app.core.reasons import said
from backends.contract import Layers, Role
from testbed.households import machine
from tests.families import proof
from tests.families.changed import rewritten
from tests.families.fixtures import families
from tests.families.home import Home

PLENTY_MIB = 1 << 20


# name of the published model it is like: family, its layers
WHOLE = {"Gemma 2 27B": ("gemma2", 46), "EXAONE 4 32B": ("exaone4", 64)}
# family, layers of a model, the length of a run that is taken for another model's
NOT_LONG = [
    ("gemma2", 50, 46), ("exaone4", 68, 64), ("gemma3", 66, 62), ("deepseek-v2", 30, 26),
    ("deepseek-v3", 30, 27), ("glm4-moe-lite", 30, 27),
]  # fmt: skip


def model_of(name: str, n_layers: int, folder: Path) -> tuple[Home, Entry]:
    """The family's model with so many layers."""
    path = rewritten(families()[name].path, folder / "m.gguf", n_layers=n_layers, lead=1)
    home = proof.home(folder)
    return home, home.shelf.import_file(path)


@pytest.mark.parametrize("known", WHOLE)
def test_a_model_of_that_size_runs_whole(known: str, tmp_path: Path) -> None:
    name, n_layers = WHOLE[known]
    _, entry = model_of(name, n_layers, tmp_path)
    assert entry.model.cuts.boundaries == ()
    assert entry.model.cuts.whole_reason
    assert entry.model.cuts.whole_reason.code == "whole_variant"
    assert model_of(name, n_layers - 2, tmp_path)[1].model.cuts.boundaries


@pytest.mark.parametrize(("name", "n_layers", "long"), NOT_LONG)
def test_no_run_of_that_length_is_cut(name: str, n_layers: int, long: int, tmp_path: Path) -> None:
    """Neither is it cut, nor may a person ask for it; the neighbors are."""
    home, entry = model_of(name, n_layers, tmp_path)
    model = entry.model
    runs = {layers for cuts in proof.twos(model) for layers, _ in proof.runs(n_layers, cuts)}
    assert long not in {len(run) for run in runs}
    assert {long - 2, long + 2} <= {len(run) for run in runs}
    with pytest.raises(BadInput) as error:
        home.shelf.cut(entry, Layers(0, long), Role.FIRST)
    assert said(error.value)
    refused(model, (long, long + 1))
    refused(model, (1, long + 1))


def refused(model: Model, cuts: proof.Cuts) -> None:
    host, lenders = machine("m0", PLENTY_MIB, None), [machine("m1", PLENTY_MIB, None, None)]
    split = [last - first for first, last in pairwise((0, *cuts, model.n_layers))]
    with pytest.raises(BadInput) as error:
        plan(host, lenders, model, Workload(64), split)
    assert error.value.reason.code == "split_boundary"
    assert said(error.value)
