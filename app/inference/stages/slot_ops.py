"""Every run of a pipeline is told the same in the same order, though a step reaches the later runs later.

A FORGET that overtook steps under way would leave the KV cells of that run in another order than the others': with
several answers in shared cells, the last bits of what it computes would depend on the moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class SlotOpLog:
    """Of one pipeline."""

    entered: int = 0  # steps that its first run was sent: each has its number


@dataclass(slots=True)
class SlotOpCursor:
    """Of one run: what it shall forget, each after the steps that came before it in the first run."""

    course: SlotOpLog = field(default_factory=SlotOpLog)
    is_first: bool = True
    line: asyncio.Lock = field(default_factory=asyncio.Lock)  # one thing is sent at a time
    _reached: int = 0  # the last step that this run was sent
    _later: deque[tuple[int, int, int]] = field(default_factory=deque)

    def enter(self, number: int) -> int:
        """A step is sent now: its number, which it has from the first run."""
        if self.is_first:
            self.course.entered += 1
            return self.course.entered
        self._reached = number
        return number

    def put_off(self, slot: int, keep: int) -> None:
        """The first run is told to forget this now."""
        self._later.append((self.course.entered, slot, keep))

    @property
    def is_behind(self) -> bool:
        return bool(self._later)

    def due(self, number: int | None = None) -> Iterator[tuple[int, int]]:
        """What comes before the step of this number, or now; each is taken from the queue as it is given."""
        while self._later and self._later[0][0] < (self._reached + 1 if number is None else number):
            _, slot, keep = self._later.popleft()
            yield slot, keep


class SlotOp(Protocol):
    """A run as this file needs it; app/inference/stages/stage_client.py has it."""

    def follow(self, course: SlotOpLog, *, is_first: bool) -> None: ...
    def forget_later(self, slot: int, keep: int) -> None: ...
    async def forget(self, slot: int, keep: int = 0, others: Sequence[SlotOp] = ()) -> None: ...
    async def catch_up(self, number: int | None = None) -> bool: ...


async def forget(runs: Sequence[SlotOp], slot: int, keep: int) -> bool:
    """On each of these, the first of a pipeline and some after it, at the same place among its steps.

    Whether some of them are told later: steps are under way to them that come first.
    """
    first, *others = runs
    await first.forget(slot, keep, others)
    return not all([await run.catch_up() for run in others])


class Order:
    """Of the runs that make one pipeline now."""

    def __init__(self, runs: Sequence[SlotOp]) -> None:
        self._runs, self._course = runs, SlotOpLog()
        self.is_behind = False  # something is still to be said to some run; at the latest before its next step
        for place, run in enumerate(runs):
            run.follow(self._course, is_first=place == 0)

    async def forget(self, slot: int, keep: int) -> None:
        self.is_behind = await forget(self._runs, slot, keep) or self.is_behind

    async def settle(self) -> None:
        """Nothing is under way at this moment: say what was put off."""
        self.is_behind, number = False, self._course.entered
        for run in self._runs:
            await run.catch_up(number + 1)
