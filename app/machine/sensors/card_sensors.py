"""The temperature of graphics cards, and how much other programs use them."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence, Set

import psutil

from app.machine.sensors.card_use import CardReading, DriverReport, attributed
from app.machine.sensors.linux_cards import LinuxCards
from app.machine.sensors.nvidia_cards import NvidiaCards

log = logging.getLogger(__name__)

READ_SECONDS = 10.0  # between readings
HANGS_SECONDS = 2.0  # a driver that takes longer hangs


class CardSensors:
    """The sensors of all graphics cards.

    Values that cannot be read are unknown, and a hanging driver causes no wait.

    NVIDIA's cards are read through the driver's library on Linux and Windows, and AMD's and Intel's cards through
    files on Linux. Nothing is known about other cards: AMD's and Intel's on Windows, and Apple's.

    sources: functions that return the drivers' reports.
    """

    def __init__(
        self,
        sources: Sequence[Callable[[], Sequence[DriverReport]]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = _sources() if sources is None else sources
        self._clock = clock
        self._turn = threading.Lock()
        self._reading: threading.Thread | None = None
        self._read_at_s = -READ_SECONDS
        self._reports: tuple[DriverReport, ...] = ()
        # Our processes at the last report and the one before: a report tells of the time since the earlier one, and a
        # worker that has ended since is still in it.
        self._latest_pids: frozenset[int] = frozenset()
        self._reported_pids: frozenset[int] = frozenset()
        self._failed: set[int] = set()  # the sources whose failure was logged

    def read(self, computing: Set[str] = frozenset()) -> tuple[CardReading, ...]:
        """Return the reading of each card. Blocks for up to two seconds, so call this in a thread.

        computing: the PCI bus addresses of the cards that have layers of this node.
        """
        with self._turn:
            now_s = self._clock()
            if now_s - self._read_at_s >= READ_SECONDS:
                self._read_at_s, earlier = now_s, self._latest_pids
                self._latest_pids = own_pids()
                self._reported_pids = self._latest_pids | earlier
                self._reports = self._in_time()
            own = self._reported_pids | own_pids() if self._reports else frozenset()
            return tuple(attributed(r, own, computes=r.pci in computing) for r in self._reports)

    def _in_time(self) -> tuple[DriverReport, ...]:
        """Read all sources in a separate thread, and give up after a time limit in case a driver hangs."""
        if self._reading is not None and self._reading.is_alive():
            return ()
        done: list[DriverReport] = []
        self._reading = threading.Thread(target=self._read_all, args=(done,), name="read the graphics cards")
        self._reading.daemon = True
        self._reading.start()
        self._reading.join(HANGS_SECONDS)
        if self._reading.is_alive():
            log.warning("a driver does not say how graphics cards are used; they count as unknown")
            return ()
        return tuple(done)

    def _read_all(self, done: list[DriverReport]) -> None:
        for number, source in enumerate(self._sources):
            try:
                done.extend(source())
            except Exception:  # whatever a driver answers, the owner's other rules still hold
                if number not in self._failed:  # it is asked every ten seconds
                    log.warning("graphics cards could not be read; their use is unknown", exc_info=True)
                self._failed.add(number)


def _sources() -> list[Callable[[], Sequence[DriverReport]]]:
    if sys.platform == "darwin":
        return []
    return [NvidiaCards().read, *([LinuxCards().read] if sys.platform == "linux" else [])]


def own_pids() -> frozenset[int]:
    """Return the process ids of this node and its workers."""
    try:
        children = psutil.Process().children(recursive=True)
    except psutil.Error:
        children = []
    return frozenset((os.getpid(), *(child.pid for child in children)))
