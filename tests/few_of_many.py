"""Selection of the cases of a test marked `many(keep=N)` that stay in `make test`. The others are `long`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest


def leave_most(items: Iterable[pytest.Item]) -> None:
    """Keep two spread-out cases of a test marked `many(keep=2)`, always the same ones. The others are `long`."""
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("many"):
            cases.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for entries in cases.values():
        (mark,) = entries[0].iter_markers("many")
        stay = places(len(entries), mark.kwargs["keep"])
        for at, item in enumerate(entries):
            if at not in stay:
                item.add_marker(pytest.mark.long)


def places(n_cases: int, keep: int) -> set[int]:
    """The middles of `keep` parts of equal length."""
    return {(2 * part + 1) * n_cases // (2 * keep) for part in range(keep)}
