"""Guesses as a test wants them: right or wrong by chance, made and checked whether or not they pay."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

import pytest

from app.core.speculation.lookup import Lookup, TokenMatch
from app.core.speculation.overlap import SpeculationGain
from app.core.speculation.trip_costs import TripCosts

MOST_DEEP = 5


class Oracle:
    """Knows what will be said, tells the truth so often, and so often nothing."""

    def __init__(self, truth: float, seed: int = 1, silence: float = 0.0) -> None:
        self.truth, self.silence = truth, silence
        self._chance = random.Random(seed)
        self._texts: list[array[int]] = []

    def knows(self, prompt: Sequence[int], said: Sequence[int]) -> None:
        self._texts.append(array("i", [*prompt, *said]))

    def find(self, tokens: array[int], pending: Sequence[int] = ()) -> TokenMatch | None:
        """Return guesses, like Lookup.find."""
        place = len(tokens) + len(pending)
        for text in self._texts:
            if place < len(text) and text[: len(tokens)] == tokens:
                if self.silence and self._chance.random() < self.silence:
                    return None
                right = self._chance.random() < self.truth
                return TokenMatch(text[place] if right else text[place] ^ 1, 16)
        return None

    def speaks(self, patch: pytest.MonkeyPatch) -> None:
        """Replace every lookup, make every guess however unlikely, and check any number of them in one step."""
        patch.setattr(Lookup, "find", lambda _self, *known: self.find(*known))
        patch.setattr(SpeculationGain, "pays", lambda _self, _chance: True)
        patch.setattr(TripCosts, "depth", self._depth)
        patch.setattr(TripCosts, "most_rows", 1 + MOST_DEEP)

    def _depth(self, chances: Sequence[Sequence[float]], most: int, _overlap: object = None) -> int:
        return self._chance.randint(0, min(most, MOST_DEEP, *map(len, chances)))
