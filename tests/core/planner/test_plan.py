"""The placement by memory: what fits, what is refused, and why."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import BadInput, DoesNotFit
from app.core.ids import MachineId
from app.core.model import Cuts, Model, Weights
from app.core.planner.placement import Candidate, Plan, Workload
from app.core.planner.plan import plan
from backends.contract import Layers, Role

MIB = 1 << 20


def model(n_layers: int = 8, layer_bytes: int = 100 * MIB, splits: bool = True) -> Model:
    return Model(
        id="0" * 64,
        name="tiny",
        architecture="llama",
        n_layers=n_layers,
        width=64,
        n_vocab=300,
        context_length=512,
        weights=Weights(
            layer_bytes=(layer_bytes,) * n_layers, embedding_bytes=MIB, head_bytes=MIB, tied=False, shared_bytes=1024
        ),
        cuts=Cuts(boundaries=tuple(range(1, n_layers)) if splits else ()),
        kv_bytes_per_token=(256,) * n_layers,
        file_bytes=n_layers * layer_bytes,
        quantization="Q8_0",
        license="",
        has_template=True,
    )


def machine(name: str, lends_mib: int) -> Candidate:
    return Candidate(MachineId(name * 8), name, lends_mib * MIB)


WORK = Workload(context=512)


def runs(placed: Plan) -> list[tuple[str, int, int]]:
    return [(stage.name, stage.layers.first, stage.layers.last) for stage in placed.stages]


def test_one_machine_when_the_model_fits_there() -> None:
    placed = plan(machine("host", 2000), [machine("attic", 9000)], model(), WORK)
    assert runs(placed) == [("host", 0, 8)]
    assert placed.stages[0].role is Role.WHOLE
    assert placed.topology == "one machine"


def test_the_fewest_lenders_and_the_host_first_and_last() -> None:
    lenders = [machine("small", 300), machine("large", 1000)]
    placed = plan(machine("host", 600), lenders, model(), WORK)
    names = [name for name, _, _ in runs(placed)]
    assert names == ["host", "large", "host"]
    assert placed.topology == "split"


def test_too_small_a_pool_says_what_is_needed_and_lent() -> None:
    with pytest.raises(DoesNotFit) as caught:
        plan(machine("host", 300), [machine("attic", 200)], model(), WORK)
    assert caught.value.reason.code == "pool_too_small"
    assert caught.value.reason.facts["lent_bytes"] == 500 * MIB


def test_a_family_that_does_not_split_is_placed_whole_or_refused() -> None:
    whole = model(splits=False)
    assert runs(plan(machine("host", 2000), [], whole, WORK)) == [("host", 0, 8)]
    with pytest.raises(DoesNotFit, match="whole_too_big"):
        plan(machine("host", 500), [machine("attic", 9000)], whole, WORK)
    with pytest.raises(BadInput, match="split_family"):
        plan(machine("host", 2000), [machine("attic", 9000)], whole, WORK, [4, 2, 2])


@pytest.mark.parametrize(
    ("split", "code"),
    [
        ([3, 3, 3], "split_sum"),
        ([8, 0], "split_sum"),
        ([9, -1], "split_sum"),
        ([2, 2, 2, 2], "split_lenders"),
        ([4, 4], "split_two"),
    ],
)
def test_a_split_that_cannot_be_is_refused(split: list[int], code: str) -> None:
    with pytest.raises(BadInput, match=code):
        plan(machine("host", 2000), [machine("attic", 2000)], model(), WORK, split)


def test_a_forced_split_is_taken_as_it_is() -> None:
    placed = plan(machine("host", 2000), [machine("attic", 2000)], model(), WORK, [1, 4, 3])
    assert runs(placed) == [("host", 0, 1), ("attic", 1, 5), ("host", 5, 8)]
    assert [stage.role for stage in placed.stages] == [Role.FIRST, Role.MIDDLE, Role.LAST]


def test_a_forced_split_beyond_a_lenders_memory_is_refused() -> None:
    with pytest.raises(DoesNotFit, match="machine_too_small"):
        plan(machine("host", 2000), [machine("attic", 300)], model(), WORK, [1, 4, 3])
    with pytest.raises(DoesNotFit, match="machine_lends_nothing"):
        plan(machine("host", 2000), [machine("attic", 0)], model(), WORK, [1, 4, 3])


@given(host=st.integers(100, 1500), lent=st.lists(st.integers(0, 1500), max_size=5), n_layers=st.integers(2, 12))
def test_a_plan_is_whole_and_never_over_memory(host: int, lent: list[int], n_layers: int) -> None:
    machines = [machine(f"m{n}", mib) for n, mib in enumerate(lent)]
    try:
        placed = plan(machine("host", host), machines, model(n_layers), WORK)
    except DoesNotFit:
        return
    edges = [stage.layers for stage in placed.stages]
    assert edges[0].first == 0
    assert edges[-1].last == n_layers
    assert all(a.last == b.first for a, b in pairwise(edges))
    assert placed.stages[0].name == placed.stages[-1].name == "host"
    for candidate in [machine("host", host), *machines]:
        held = sum(s.total_bytes for s in placed.stages if s.machine == candidate.id)
        assert held <= candidate.lends_bytes


@given(seed=st.permutations(range(4)))
def test_the_order_of_the_machines_does_not_matter(seed: list[int]) -> None:
    machines = [machine(f"m{n}", 200 + 50 * n) for n in range(4)]
    host = machine("host", 400)
    shuffled = plan(host, [machines[n] for n in seed], model(), WORK)
    assert shuffled == plan(host, machines, model(), WORK)


def test_layers_refuse_an_empty_run() -> None:
    with pytest.raises(ValueError, match="no run of layers"):
        Layers(3, 3)
