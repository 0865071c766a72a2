"""The CPU time that the window's thread spends without returning to the event loop, and the functions that take it."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from PySide6.QtCore import QAbstractEventDispatcher, QObject

WINDOW = str(Path(__file__).resolve().parents[2] / "app" / "gui")
LONG_S = 0.050  # noticeable for a person
REAL_S = 0.001  # shorter passes, of which there are very many, did next to nothing
LOOK_S = 0.005
DEPTH = 3  # number of functions in a name


USUAL, FIRST, PALETTE = "usual", "first round", "palette"  # kinds of work


@dataclass(frozen=True, slots=True)
class Slow:
    """A long pass of the event loop."""

    cpu_s: float
    step: str
    where: str  # the window's own functions sampled most often; "" if only Qt's


@dataclass
class Passes:
    """The CPU times of the passes of the event loop that did some work."""

    count: int = 0
    cpu_s: list[float] = field(default_factory=list)
    slow: list[Slow] = field(default_factory=list)

    def add(self, cpu_s: float, step: str, where: str) -> None:
        self.count += 1
        if cpu_s >= REAL_S:
            self.cpu_s.append(cpu_s)
        if cpu_s > LONG_S:
            self.slow.append(Slow(cpu_s, step, where))

    def share(self, part: float) -> float:
        """Return the CPU time that the given fraction of all passes does not exceed."""
        times = sorted(self.cpu_s)
        return times[min(len(times) - 1, int(part * len(times)))] if times else 0.0

    def worst(self, most: int) -> list[tuple[Slow, int]]:
        """Return the longest pass of each step, the worst first, with the number of long passes of that step."""
        kinds: dict[str, Slow] = {}
        for slow in sorted(self.slow, key=lambda slow: slow.cpu_s):
            kinds[slow.step] = slow
        number = Counter(slow.step for slow in self.slow)
        worst = sorted(kinds.values(), key=lambda slow: -slow.cpu_s)[:most]
        return [(slow, number[slow.step]) for slow in worst]


class Watch(QObject):
    """A monitor that records the CPU time of each pass of the event loop, grouped by `kind` and `step`.

    A pass runs one or more slots, so no slot takes longer than its pass. Only CPU time counts, so waiting and other
    programs have little influence.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.kinds: dict[str, Passes] = {kind: Passes() for kind in (USUAL, FIRST, PALETTE)}
        self.kind, self.step = USUAL, ""
        self._seen: Counter[str] = Counter()
        self._thread, self._ends = threading.get_ident(), threading.Event()
        self._cpu = time.thread_time()
        turns = QAbstractEventDispatcher.instance()
        turns.awake.connect(self._cut)
        turns.aboutToBlock.connect(self._cut)
        self._looker = threading.Thread(target=self._look, name="watch", daemon=True)
        self._looker.start()

    def end(self) -> None:
        """Stop measuring."""
        self._ends.set()
        self._looker.join()
        turns = QAbstractEventDispatcher.instance()
        turns.awake.disconnect(self._cut)
        turns.aboutToBlock.disconnect(self._cut)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Exclude the computation within the block, which belongs to the test itself."""
        began = time.thread_time()
        yield
        self._cpu += time.thread_time() - began

    def _cut(self) -> None:
        now = time.thread_time()
        cpu_s, self._cpu = now - self._cpu, now
        seen, self._seen = self._seen, Counter()
        self.kinds[self.kind].add(cpu_s, self.step, max(seen, key=lambda name: seen[name], default=""))

    def _look(self) -> None:
        """Sample the stack of the window's thread from a separate thread."""
        while not self._ends.wait(LOOK_S):
            name = named(sys._current_frames().get(self._thread))
            if name:
                self._seen[name] += 1


def named(frame: FrameType | None) -> str:
    """Return the names of the innermost functions of the window on the stack."""
    names: list[str] = []
    while frame is not None and len(names) < DEPTH:
        code = frame.f_code
        if code.co_filename.startswith(WINDOW):
            names.append(f"{Path(code.co_filename).name}:{code.co_name}")
        frame = frame.f_back
    return " < ".join(names)
