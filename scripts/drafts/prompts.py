"""Writes the questions whose answers a draft model learns from: code, lists and free text, in equal parts."""

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ("code", "lists", "text")


@dataclass(frozen=True, slots=True)
class Phrases:
    """Patterns for one kind of question, and the words that fill their slots."""

    patterns: tuple[str, ...]
    words: dict[str, tuple[str, ...]]

    def fill(self, rng: random.Random) -> str:
        """Return a question."""
        chosen = {slot: rng.choice(words) for slot, words in self.words.items()}
        return rng.choice(self.patterns).format(**chosen)


def load(path: Path = HERE / "prompts.toml") -> dict[str, Phrases]:
    """Read the phrases of each kind."""
    kinds = tomllib.loads(path.read_text("utf-8"))
    return {
        kind: Phrases(
            tuple(kinds[kind]["patterns"]), {slot: tuple(words) for slot, words in kinds[kind]["words"].items()}
        )
        for kind in KINDS
    }


def questions(seed: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of a kind and a question, none of them twice, for as long as there are new ones."""
    rng, phrases, seen = random.Random(seed), load(), set[str]()
    while True:
        for kind in KINDS:
            while (question := phrases[kind].fill(rng)) in seen:
                pass
            seen.add(question)
            yield kind, question
