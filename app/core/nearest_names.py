"""Suggestions for a mistyped name of a model, a command or an option."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

MODEL_UNKNOWN = frozenset({"model_unknown", "model_unknown_near"})  # the codes for a model that is not on the shelf
MIN_SIMILARITY = 0.8
MIN_SIMILARITY_SAME_START = 0.66  # the first letter is seldom mistyped
MAX_BELOW_BEST = 0.1
MIN_PREFIX_CHARACTERS = 2
MIN_SIMILAR_PREFIX_CHARACTERS = 6
MAX_TYPED_CHARACTERS = 100  # the comparison takes time, and a program may send a name of any length


def nearest_names(typed: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that may have been meant, closest first.

    Case and punctuation are ignored, so `llama3.1` matches the beginning of `llama-3.1-8b`. A mistyped beginning of a
    long name also matches.
    """
    plain = _plain(typed[:MAX_TYPED_CHARACTERS])
    similarity = {name: _similarity(plain, _plain(name)) for name in names}
    least = max(similarity.values(), default=0.0) - MAX_BELOW_BEST
    near = [name for name, value in similarity.items() if value >= max(least, _min_similarity(plain, _plain(name)))]
    return sorted(near, key=lambda name: -similarity[name])[:most]


def _min_similarity(typed: str, name: str) -> float:
    return MIN_SIMILARITY_SAME_START if typed[:1] == name[:1] else MIN_SIMILARITY


def _plain(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def _similarity(typed: str, name: str) -> float:
    """Return 1 if the name begins with the typed text, otherwise their similarity from 0 to 1."""
    if len(typed) >= MIN_PREFIX_CHARACTERS and name.startswith(typed):
        return 1.0
    parts = [name]
    if len(typed) >= MIN_SIMILAR_PREFIX_CHARACTERS:
        parts += [name[: len(typed)], name[: len(typed) + 1]]
    return max(SequenceMatcher(None, typed, part).ratio() for part in parts)
