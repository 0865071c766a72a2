"""An event loop whose clock stands still while something happens, and jumps to the next moment when nothing does."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import inspect
import itertools
import selectors
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class Stuck(AssertionError):
    """Everybody waits, and nothing is due: nobody would ever go on."""


class _Selector(selectors.SelectSelector):
    """Waits by moving the loop's clock."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        self.loop.turned()
        ready = super().select(0)
        if not ready and timeout is None:
            raise Stuck(f"at {self.loop.now:.3f} s nothing is due")
        if not ready and timeout:
            self.loop.now += timeout
        return ready


class _Task(asyncio.Task[T]):
    """Sets of tasks are walked in the order of their making, in every run alike."""

    _numbers = itertools.count()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._number = next(_Task._numbers)
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time begins at 1000 s. `spawn` stands in for starting a program."""

    def __init__(self, spawn: Callable[[VirtualLoop, Any], Any]) -> None:
        self.now = 1000.0
        self.skew = 0.0  # of the wall clock, which nobody may trust
        self._turns, self._deeds = 0, list[tuple[int, Callable[[], None]]]()
        self._spawn = spawn
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)
        self.set_task_factory(_made)

    def time(self) -> float:
        return self.now

    def wall_clock(self) -> float:
        return 1.7e9 + self.now + self.skew

    def after_turns(self, n: int, deed: Callable[[], None]) -> None:
        """Do it between two turns of the loop, wherever the others are waiting then."""
        self._deeds.append((self._turns + n, deed))

    def turned(self) -> None:
        self._turns += 1
        due = [deed for turn, deed in self._deeds if turn <= self._turns]
        self._deeds = [deed for deed in self._deeds if deed[0] > self._turns]
        for deed in due:
            deed()

    async def subprocess_exec(  # type: ignore[override]
        self, factory: Callable[[], Any], *_: Any, **__: Any
    ) -> Any:
        protocol = factory()
        process = self._spawn(self, protocol)
        protocol.connection_made(process)
        return process, protocol


def _made(
    loop: asyncio.AbstractEventLoop, work: Any, *, name: str | None = None, context: contextvars.Context | None = None
) -> asyncio.Task[Any]:
    return _Task(work, loop=loop, name=name, context=context)


@cache
def _clocks_of_fields(_n_modules: int) -> list[Any]:
    """Return where dataclasses of the app hold the clock that gives a field its default."""
    kinds = [
        kind
        for name, module in list(sys.modules.items())
        if name.startswith("app.")
        for kind in vars(module).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == name
    ]
    cells = [cell for kind in kinds for cell in getattr(kind.__init__, "__closure__", None) or ()]
    return [cell for cell in cells if cell.cell_contents is time.monotonic]


@cache
def _with_clock_as_default(_n_modules: int) -> list[Any]:
    """Functions of the app that take a clock, and would take the real one."""
    functions = [
        var
        for name, module in list(sys.modules.items())
        if name.startswith("app.inference")
        for var in vars(module).values()
        if inspect.isfunction(var) and var.__module__ == name
    ]
    return [function for function in functions if time.monotonic in (function.__defaults__ or ())]


@contextmanager
def running(loop: VirtualLoop) -> Iterator[list[float]]:
    """Replace the process's monotonic clock by the loop's during the block. A sleep only adds its duration."""
    slept = [0.0]

    def sleep(seconds: float) -> None:
        slept[0] += seconds

    with pytest.MonkeyPatch.context() as patch:
        n_modules = len(sys.modules)  # looked at anew only when there are more
        for cell in _clocks_of_fields(n_modules):
            patch.setattr(cell, "cell_contents", loop.time)
        for function in _with_clock_as_default(n_modules):
            values = (loop.time if value is time.monotonic else value for value in function.__defaults__)
            patch.setattr(function, "__defaults__", tuple(values))
        patch.setattr(time, "monotonic", loop.time)
        patch.setattr(time, "time", loop.wall_clock)
        patch.setattr(time, "sleep", sleep)
        yield slept


def run(loop: VirtualLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Raises Stuck where nothing could ever happen again."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)
