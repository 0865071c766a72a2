"""Overlap: while machines wait for each other, an idle one computes positions whose tokens are only guessed.

The pipeline measures the time that right and wrong guesses take. It thereby learns how likely a guess must be to pay.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto


class TokenOrigin(Enum):
    """The part that overlap played in producing the token or tokens of a trip through the pipeline."""

    PLAIN = auto()  # nothing was guessed
    OPENED = auto()  # the token after it was guessed while it was computed
    RIGHT = auto()  # it was guessed correctly, so its position was in flight before the token was known
    WRONG = auto()  # it was guessed wrongly, so its position was computed for another token and rolled back


KEEP = 0.9  # the weight of the known time of plain tokens, compared with a new measurement
KEEP_SHARE = 0.8  # the same for the cost of guesses, which may be far off at first
OUTLIER = 2.0  # a slower token counts as this many times a plain one
# per plain token, shares return this slowly to their first values, so that guesses are tried again after a bad
# measurement
RELAX = 0.995
LEAST_PLAIN = 4  # the number of plain tokens to measure before the first guess
FIRST_SHARES = {TokenOrigin.OPENED: 1.0, TokenOrigin.RIGHT: 0.65, TokenOrigin.WRONG: 1.15}
LEAST_CHANCE = 0.1  # a wrong guess costs power even if it costs no time
LEAST_GAIN = 0.01  # the minimum expected gain of a guess, as a fraction of a plain token's time


@dataclass(frozen=True, slots=True)
class SpeculationGain:
    """The measured time per token in a pipeline with one answer. `shares` compare other tokens with plain ones.

    A trip that checks several guesses counts like one of a plain token, once its time is divided by what its rows cost
    (TripCosts.share). The shares start with values for two equal machines and are updated by measurements. Only the
    time of a plain token includes computing the next position on the first run, in one trip with the last run.
    `first_s`, the time to compute a guessed position on the first run, makes the times comparable.
    """

    first_s: float = 0.0
    plain_s: float = 0.0
    n_plain: int = 0
    shares: dict[TokenOrigin, float] = field(default_factory=lambda: FIRST_SHARES)

    def after(self, origin: TokenOrigin, seconds: float) -> SpeculationGain:
        """Return the measurements after a token of this origin took this many seconds."""
        if origin is TokenOrigin.PLAIN:
            known = self.n_plain > 0
            counted = min(seconds, OUTLIER * self.plain_s) if known else seconds
            usual = KEEP * self.plain_s + (1 - KEEP) * counted if known else counted
            eased = {w: RELAX * s + (1 - RELAX) * FIRST_SHARES[w] for w, s in self.shares.items()}
            return SpeculationGain(self.first_s, usual, self.n_plain + 1, eased)
        if self.plain_s <= 0:
            return self
        share = min(OUTLIER, seconds / self.plain_s)
        before = self.shares[origin]
        return replace(self, shares=self.shares | {origin: KEEP_SHARE * before + (1 - KEEP_SHARE) * share})

    def after_first_run(self, seconds: float) -> SpeculationGain:
        """Return the measurements after the first run took this many seconds to compute a guessed position."""
        counted = min(seconds, OUTLIER * self.first_s) if self.first_s else seconds
        first_s = KEEP * self.first_s + (1 - KEEP) * counted if self.first_s else counted
        return replace(self, first_s=first_s)

    def speedup(self, chance: float) -> float:
        """Return how many times as fast an answer is if the next trip overlaps with a guess, or 1 if it should not.

        chance: the probability that the guess is right.
        """
        if not self.pays(chance):
            return 1.0
        right, wrong = self.shares[TokenOrigin.RIGHT], max(1.0, self.shares[TokenOrigin.WRONG])
        return 1 / (chance * right + (1 - chance) * wrong)

    def pays(self, chance: float) -> bool:
        """Return whether a guess that is right with probability `chance` is likely to speed up the answer."""
        if self.n_plain < LEAST_PLAIN or chance < LEAST_CHANCE:
            return False
        gain = 1 - self.shares[TokenOrigin.RIGHT]
        loss = max(0.0, self.shares[TokenOrigin.WRONG] - 1)
        opening = max(0.0, self.shares[TokenOrigin.OPENED] - 1)
        return chance * gain - (1 - chance) * loss - opening > LEAST_GAIN
