"""A greedy answer that nobody else is answered beside goes on after a kill as if nothing had happened."""

from __future__ import annotations

import random
import sys

import pytest

from tests.faults.same_again import house, same

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.mark.long
async def test_what_was_interrupted_says_the_same_in_all() -> None:
    """`python -m tests.faults.same_again` does so 300 times."""
    chance = random.Random(3)
    async with house() as made:
        assert [await same(made, chance) for _ in range(3)] == [True] * 3
