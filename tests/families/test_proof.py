"""Every family: all its legal cuts say what the whole says, and an illegal one is not to be had."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from random import Random

import pytest

from app.catalog.families.family_table import FAMILIES
from app.core.errors import AppError, BadInput
from app.core.model import Model
from app.core.planner.placement import Workload
from app.core.planner.plan import plan
from app.core.reasons import said
from backends.contract import Layers, Role
from testbed.households import MIB, machine, some_link, some_speed
from tests.families import proof
from tests.families.driven import Workers
from tests.families.fixtures import families

PLENTY_MIB = 1 << 20


@pytest.mark.many(keep=24)
@pytest.mark.timeout(300)  # one has 29 cuts
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", families())
async def test_every_legal_cut_says_what_the_whole_says(name: str, workers: Workers, tmp_path: Path) -> None:
    """Worker processes run through the driver, with two concurrent answers."""
    home = proof.home(tmp_path)
    tasks = proof.tasks(home, families()[name].path, tmp_path)
    assert [len(cuts) for task in tasks for cuts in task.cuts].count(2) >= proof.N_THREES
    verdict = await proof.prove_all(workers, home, tasks)
    print(f"cuts into three by seed {proof.SEED}; {verdict}")
    assert verdict.holds, verdict


@pytest.mark.parametrize("name", families())
def test_an_illegal_cut_is_refused_and_never_offered(name: str, tmp_path: Path) -> None:
    home = proof.home(tmp_path)
    entry = home.shelf.import_file(families()[name].path)
    model, n = entry.model, entry.model.n_layers
    legal = {run for cuts in proof.twos(model) for run in proof.runs(n, cuts)}
    for first, role in [(0, Role.FIRST), (n, Role.LAST)]:
        for cut in range(1, n):
            layers = Layers(*sorted((first, cut)))
            if (layers, role) not in legal and not model.cuts.rules.allow(layers):
                with pytest.raises(BadInput):
                    home.shelf.cut(entry, layers, role)
    _check_planner(model, Random(n))


def _check_planner(model: Model, chance: Random) -> None:
    host = machine("m0", PLENTY_MIB, some_speed(chance))
    lenders = [machine(f"m{n}", PLENTY_MIB, some_speed(chance), some_link(chance)) for n in (1, 2)]
    for a, b in combinations(range(1, model.n_layers), 2):
        split = [end - first for first, end in pairwise((0, a, b, model.n_layers))]
        runs = tuple(Layers(*pair) for pair in pairwise((0, a, b, model.n_layers)))
        if model.may_cut(runs):
            stages = plan(host, lenders, model, Workload(64), split).stages
            assert tuple(stage.layers for stage in stages) == runs
            continue
        with pytest.raises(BadInput) as error:
            plan(host, lenders, model, Workload(64), split)
        assert error.value.reason.code in ("split_boundary", "split_family")
        assert said(error.value)
    for _ in range(10):
        _check_offer(model, chance)


def _check_offer(model: Model, chance: Random) -> None:
    """Whatever the household, and however little of it was measured."""
    layers_mib = sum(model.weights.layer_bytes) / MIB
    known = chance.random() < 0.5
    room = [70 * 2 + layers_mib * chance.random(), *(70 + layers_mib * chance.random() for _ in "ab")]
    host = machine("m0", room[0], some_speed(chance) if known else None)
    lenders = [machine(f"m{n}", room[n], some_speed(chance), some_link(chance)) for n in (1, 2)]
    try:
        stages = plan(host, lenders, model, Workload(64)).stages
    except AppError:
        return
    assert model.may_cut(tuple(stage.layers for stage in stages))


def test_every_row_of_the_table_has_a_file_that_proves_it() -> None:
    proved = {family.architecture for family in families().values()}
    assert not set(FAMILIES) - proved
