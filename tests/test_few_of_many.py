"""`many(keep=N)`: so many cases of each such test stay in `make test`, the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.few_of_many import leave_most, places


@dataclass
class Case:
    """A case of a test as pytest represents it."""

    originalname: str
    name: str = "a case"
    path: Path = Path("test_a.py")
    marks: list[pytest.Mark] = field(default_factory=list)

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(self.iter_markers(name), None)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)


def cases(name: str, n: int, keep: int | None, file: str = "test_a.py") -> list[Any]:
    marks = [] if keep is None else [pytest.mark.many(keep=keep).mark]
    return [Case(name, path=Path(file), marks=list(marks)) for _ in range(n)]


def staying(results: list[Any]) -> list[int]:
    return [at for at, case in enumerate(results) if case.get_closest_marker("long") is None]


@pytest.mark.parametrize(
    ("n_cases", "keep", "expected"),
    [(6, 1, {3}), (6, 2, {1, 4}), (7, 2, {1, 5}), (6, 3, {1, 3, 5}), (3, 3, {0, 1, 2}), (2, 5, {0, 1})],
)
def test_they_are_from_all_over(n_cases: int, keep: int, expected: set[int]) -> None:
    assert places(n_cases, keep) == expected


def test_there_are_always_as_many_as_are_asked_for() -> None:
    for n_cases in range(1, 60):
        for keep in range(1, 60):
            results = places(n_cases, keep)
            assert len(results) == min(keep, n_cases), (n_cases, keep)
            assert results <= set(range(n_cases))


def test_each_test_keeps_its_own_and_one_without_the_mark_keeps_all() -> None:
    """Tests of one name in two files are two; those of one file stand between each other's cases."""
    a, b, c = cases("a", 6, 2), cases("b", 6, 1), cases("a", 4, 1, "test_b.py")
    plain = cases("plain", 3, None)
    mixed = [item for pair in zip(a, b, strict=True) for item in pair] + c + plain
    leave_most(mixed)
    assert (staying(a), staying(b), staying(c), staying(plain)) == ([1, 4], [3], [2], [0, 1, 2])
