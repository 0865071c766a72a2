"""The model to begin with: the best for a chat that a household holds with room to spare and reads along with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.planner.verdict import Word

READING_TOK_S = 6.0  # slower ones are waited for
READ_BYTES = 6 << 30  # for a token, where no speed is measured: more is slow without a graphics card


@dataclass(frozen=True, slots=True)
class Option:
    """A model that could be the first."""

    key: str
    word: Word
    read_bytes: int  # of weights, for each token
    tok_s: float | None  # None: not measured on these machines

    @property
    def is_brisk(self) -> bool:
        """Whether its answers come as fast as they are read."""
        if self.tok_s is not None:
            return self.tok_s >= READING_TOK_S
        return self.read_bytes <= READ_BYTES

    @property
    def suits(self) -> bool:
        """Tell whether it fits with room to spare, and is brisk."""
        return self.word is Word.FITS and self.is_brisk


def choose(options: Sequence[Option]) -> Option | None:
    """Of these, the best first: the first that fits and is brisk, else the lightest that fits."""
    fitting = [one for one in options if one.word is Word.FITS]
    brisk = next((one for one in fitting if one.suits), None)
    return brisk or min(fitting, key=lambda one: one.read_bytes, default=None)
