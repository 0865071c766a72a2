"""Tests of main memory beside a graphics card, for the families that the card does not compute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from app.core.household.household import Described, Household, Machine, SelfDescription, apply
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, processor_reasons
from app.machine.hardware.devices import Memory
from app.network.messages import PartlyRefused, Status, decode, encode
from app.node.lending.lending_policy import OWN_MODELS_SHARE, MemoryRules
from app.node.lending.main_memory import MainMemory
from app.node.models.loaded_models import LoadedModels
from app.node.planning.planner_inputs import connected_lenders
from app.node.status_broadcaster import self_description

ME, OTHER = MachineId("a" * 64), MachineId("b" * 64)
GIB = 1 << 30
FALCON, LLAMA = "falcon-h1 Q4_K_M", "llama Q4_K_M"
FREE = 8 * GIB
ON_CARD, ON_PROCESSOR = (3 * GIB, 1 * GIB), (2 * GIB, 0)  # promised to others, and not loaded yet


class Placement:
    """A loaded model."""

    def __init__(self, family: str, n_bytes: int) -> None:
        self.entry = SimpleNamespace(model=SimpleNamespace(family=family))
        self._n_bytes = n_bytes

    def local_bytes(self, me: MachineId) -> tuple[int, int]:
        return self._n_bytes, 0


class Bench:
    """A machine with a card that lacks an operation of falcon-h1."""

    def __init__(self) -> None:
        self.loaded = LoadedModels()
        self.graphics: Any = SimpleNamespace(
            card="A card", card_for=lambda family: None if family == FALCON else self.graphics.card
        )
        self.may_lend = True
        rules = MemoryRules(None, lambda: Memory(16 * GIB, FREE))
        policy: Any = SimpleNamespace(
            memory=MemoryRules(None, lambda: Memory(24 * GIB, 20 * GIB)),
            main_memory=rules,
            lends_processor=lambda: self.may_lend,
        )
        stage_host = SimpleNamespace(reserved=lambda *, on_device: ON_CARD if on_device else ON_PROCESSOR)
        service: Any = SimpleNamespace(stage_host=stage_host, used_bytes=5 * GIB, unloaded_bytes=1 * GIB)
        models: Any = SimpleNamespace(loaded=self.loaded, embeddings=SimpleNamespace(uses=lambda: (GIB // 2, GIB // 4)))
        self.memory = MainMemory(ME, self.graphics, policy, service, models)

    def load(self, family: str, n_bytes: int) -> None:
        placement: Any = Placement(family, n_bytes)
        self.loaded.add(placement)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_is_on_the_card_takes_no_main_memory_and_the_other_way_round(bench: Bench) -> None:
    bench.load(LLAMA, 4 * GIB)
    bench.load(FALCON, 3 * GIB)
    assert bench.memory.uses() == (*ON_CARD, 4 * GIB)
    bench.graphics.card = None  # everything is in main memory, embeddings too
    assert bench.memory.uses() == (5 * GIB, 1 * GIB + GIB // 4, 7 * GIB + GIB // 2)


def test_a_model_that_is_loaded_again_may_use_its_own_main_memory(bench: Bench) -> None:
    before = bench.memory.own_bytes_beside({})
    bench.load(FALCON, 3 * GIB)
    again = bench.memory.own_bytes_beside({ME: 3 * GIB})
    assert again - before == pytest.approx(OWN_MODELS_SHARE * 3 * GIB, abs=1)
    assert bench.memory.own_bytes_beside({}) == again - 3 * GIB


def test_lent_main_memory_obeys_the_owner(bench: Bench) -> None:
    lent = bench.memory.lent_bytes_beside()
    assert lent is not None
    assert 0 < lent <= FREE // 2
    assert bench.memory.free_bytes_beside() == max(0, lent - ON_PROCESSOR[0])
    bench.may_lend = False  # paused, or only the card is lent
    assert bench.memory.lent_bytes_beside() == 0
    bench.graphics.card = None
    assert bench.memory.lent_bytes_beside() is None


def test_the_owners_limits_hold_over_both_memories_together(bench: Bench) -> None:
    policy = bench.memory.policy
    policy.memory.elsewhere = lambda: bench.memory.elsewhere(beside=False)
    policy.main_memory.elsewhere = lambda: bench.memory.elsewhere(beside=True)
    for rules in (policy.memory, policy.main_memory):
        rules.chosen_bytes = 4 * GIB
    assert bench.memory.lent_bytes_beside() == 4 * GIB - ON_CARD[0]
    assert policy.memory.room(*bench.memory.uses()).most_bytes == 4 * GIB - ON_PROCESSOR[0]
    bench.load(FALCON, 1 * GIB)
    for rules in (policy.memory, policy.main_memory):
        rules.limit_bytes = 8 * GIB  # of which 2 GiB and the embeddings and falcon-h1 are in main memory
    taken = ON_PROCESSOR[0] + GIB + GIB // 2
    assert policy.memory.own_bytes(*bench.memory.uses()) == 8 * GIB - taken - ON_CARD[0]
    bench.graphics.card = None
    assert bench.memory.elsewhere(beside=False) == (0, 0)


def test_what_is_freed_may_be_of_either_memory(bench: Bench) -> None:
    bench.load(LLAMA, 10 * GIB)
    bench.load(FALCON, 3 * GIB)
    kept = bench.memory.own_bytes_beside({})
    assert bench.memory.own_bytes_beside({ME: 10 * GIB}) == kept  # the model on the card
    assert bench.memory.own_bytes_beside({ME: 13 * GIB}) == kept + 3 * GIB


def test_a_plan_counts_on_the_memory_of_what_computes_the_family() -> None:
    about = SelfDescription(refused_families=(FALCON,), processor_bytes=2 * GIB)
    household = Household({OTHER: Machine(OTHER, "attic", online=True, roles=("lender",))})
    news = Described(OTHER, "attic", "A card", 24 * GIB, 12 * GIB, GIB, about=about)
    (lender,) = connected_lenders(ME, apply(household, news), {})
    assert lender.for_family(LLAMA).lends_bytes == 12 * GIB
    assert lender.for_family(FALCON).lends_bytes == 2 * GIB
    (releasing,) = connected_lenders(ME, apply(household, news), {OTHER: 5 * GIB})
    assert releasing.for_family(FALCON).lends_bytes == 3 * GIB  # no more than it has in use
    den = Candidate(ME, "den", 4 * GIB)
    assert [reason.facts for reason in processor_reasons([den, lender.for_family(FALCON)], {ME, OTHER})] == [
        {"machine": "attic", "family": FALCON}
    ]
    assert processor_reasons([den, lender.for_family(FALCON)], {ME}) == []
    assert processor_reasons([den, lender.for_family(LLAMA)], {ME, OTHER}) == []


def test_a_plan_leaves_out_the_cards_that_do_not_compute_the_family() -> None:
    """A machine with two cards reports how much memory is on the one that refuses the family."""
    status = Status(
        name="attic",
        device="Two cards",
        total_bytes=24 * GIB,
        lendable_bytes=14 * GIB,
        used_bytes=0,
        state="ready",
        main_bytes=2 * GIB,
        partly_refused=[PartlyRefused(FALCON, 5 * GIB)],
    )
    sent = decode(encode(status))
    assert isinstance(sent, Status)
    about = self_description(sent)
    household = Household({OTHER: Machine(OTHER, "attic", online=True, roles=("lender",))})
    news = Described(OTHER, "attic", "Two cards", 24 * GIB, 14 * GIB, 0, about=about)
    (lender,) = connected_lenders(ME, apply(household, news), {})
    for family, lends_bytes, card_bytes in ((LLAMA, 14 * GIB, 12 * GIB), (FALCON, 9 * GIB, 7 * GIB)):
        able = lender.for_family(family)
        assert (able.lends_bytes, able.card_bytes, able.processor_family) == (lends_bytes, card_bytes, "")
