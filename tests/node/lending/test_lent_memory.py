"""Tests of how much memory is lent or left to own models, by free memory and the owner's choices."""

from __future__ import annotations

import pytest

from app.core.errors import BadInput
from app.core.reasons import said
from app.machine.hardware.devices import Memory
from app.node.lending.lending_policy import MemoryRules

GIB = 1 << 30

# chosen to lend, limit of all, free, used by others, of that not loaded, own model; lent, own (GiB)
CASES = [
    (None, 0, 16, 0, 0, 0, 8, 12.8),  # half of what was free at start
    (4, 0, 16, 0, 0, 0, 4, 12.8),  # what others may use is no limit of the owner's own models
    (0.5, 0, 16, 0, 0, 0, 0.5, 12.8),
    (0, 0, 16, 0, 0, 0, 0, 12.8),  # lending nothing does not keep the owner from own models
    (0, 0, 10, 0, 0, 6, 0, 12.8),  # its own model gives back what it holds
    (4, 0, 16, 0, 0, 3, 4, 15.2),  # what the own model takes is not lent, and takes nothing from what is
    (4, 0, 3, 0, 0, 12, 2, 12),  # but for what is no longer free
    (4, 8, 16, 0, 0, 6, 2, 8),  # or what a limit for all leaves
    (None, 0, 10, 4, 1, 0, 8, 7.2),  # free memory is what others left: not subtracted again
    (None, 4, 16, 0, 0, 0, 4, 4),
    (2, 4, 16, 0, 0, 0, 2, 4),
    (4, 4, 3, 0, 0, 0, 2, 4),  # never more than is free now, less the reserve
    (4, 4, 0.5, 0, 0, 0, 0, 4),
    (4, 4, 2, 3, 0, 0, 4, 1),  # what others have, and what is free
    (4, 4, 1.5, 3, 0, 0, 3.5, 1),
    (4, 4, 3, 3, 3, 0, 3, 1),  # promised and not loaded: it is not free
    (4, 4, 16, 0, 0, 5, 0, 4),
]


@pytest.mark.parametrize(("chosen", "limit", "free", "used", "unloaded", "held", "lent", "own"), CASES)
def test_what_is_lent(
    chosen: float | None, limit: float, free: float, used: float, unloaded: float, held: float,
    lent: float, own: float,
) -> None:  # fmt: skip
    total = 32 * GIB
    memory = [Memory(total, 16 * GIB)]
    lends = None if chosen is None else int(chosen * GIB)
    rules = MemoryRules(lends, lambda: memory[0], int(limit * GIB))
    memory[0] = Memory(total, int(free * GIB))
    uses = (int(used * GIB), int(unloaded * GIB), int(held * GIB))
    assert rules.room(*uses).lent_bytes == int(lent * GIB)
    assert rules.own_bytes(*uses) == pytest.approx(own * GIB, abs=2)


def test_what_a_check_holds_is_as_good_as_free_and_what_is_promised_is_not_spare() -> None:
    rules = MemoryRules(None, lambda: Memory(32 * GIB, 10 * GIB))
    before = rules.own_bytes(0, 0, 0), rules.room(0, 0, 0).lent_bytes
    assert rules.spare_bytes(0, 0, 0) == 8 * GIB
    rules.reclaimable_bytes = lambda: 2 * GIB  # of what the system calls taken
    free = MemoryRules(None, lambda: Memory(32 * GIB, 12 * GIB))
    free._default_bytes = rules._default_bytes
    assert rules.own_bytes(0, 0, 0) == free.own_bytes(0, 0, 0) > before[0]
    assert rules.room(0, 0, 0).lent_bytes == free.room(0, 0, 0).lent_bytes
    promised = free.spare_bytes(4 * GIB, 4 * GIB, 0)
    assert promised == pytest.approx(0.8 * 8 * GIB, abs=2)
    assert free.spare_bytes(0, 0, 5 * GIB) < free.spare_bytes(0, 0, 0)
    chosen = MemoryRules(6 * GIB, lambda: Memory(32 * GIB, 4 * GIB), 6 * GIB)
    assert chosen.spare_bytes(1 * GIB, 0, 3 * GIB) == 2 * GIB
    assert chosen.spare_bytes(0, 0, 0) == 4 * GIB, "no more than is free"


@pytest.mark.parametrize(
    ("limit", "free", "held", "past"),
    [
        (0, 16, 0, None),  # its memory alone bounds it
        (32, 16, 0, None),
        (4, 16, 0, 8.8),
        (4, 10, 6, 8.8),  # what its own model holds would be free for another one
        (4, 2, 0, 0),  # a higher limit would bring nothing
    ],
)
def test_what_a_limit_keeps_from_own_models(limit: int, free: float, held: float, past: float | None) -> None:
    rules = MemoryRules(0, lambda: Memory(32 * GIB, int(free * GIB)), limit * GIB)
    past_limit_bytes = rules.past_limit_bytes(0, 0, int(held * GIB))
    assert past_limit_bytes is None if past is None else past_limit_bytes == pytest.approx(past * GIB, abs=2)


def test_a_small_machine_keeps_a_tenth() -> None:
    rules = MemoryRules(1 << 40, lambda: Memory(2 * GIB, GIB), 1 << 40)
    assert rules.own_bytes(0, 0, 0) == 2 * GIB, "no machine has more than it has"
    assert rules.room(0, 0, 0).lent_bytes == (GIB - 2 * GIB // 10) // (64 << 20) * (64 << 20)


def test_next_to_nothing_is_refused_and_nothing_is_not() -> None:
    rules = MemoryRules(None, lambda: Memory(16 * GIB, 8 * GIB))
    rules.check(0)
    rules.check(16 << 20)
    with pytest.raises(BadInput) as refused:
        rules.check(1)
    assert said(refused.value) == (
        "1 byte is too little for any part of a model. Choose 16.0 MiB or more, or turn lending off."
    )


def test_more_than_there_is_is_refused_with_what_there_is() -> None:
    rules = MemoryRules(None, lambda: Memory(16 * GIB, 8 * GIB))
    rules.check(16 * GIB)
    with pytest.raises(BadInput) as refused:
        rules.check(10 << 40)
    sentence = said(refused.value)
    assert sentence.startswith("This machine has 16.0 GiB of memory in total, so it cannot lend 10")
