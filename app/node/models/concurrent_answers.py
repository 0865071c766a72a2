"""Whether an answer had the pool to itself: only then its speed says what its forecast was worth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Guest:
    """One answer, while it is made."""

    alone: bool  # so far


class Company:
    """All answers that are made now."""

    def __init__(self) -> None:
        self._guests: list[Guest] = []

    @contextmanager
    def joined(self) -> Iterator[Guest]:
        """An answer is made inside."""
        guest = Guest(alone=not self._guests)
        for other in self._guests:
            other.alone = False
        self._guests.append(guest)
        try:
            yield guest
        finally:
            self._guests.remove(guest)
