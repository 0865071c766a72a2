"""NVIDIA's graphics cards, as reported by their driver's library (NVML). Not yet tested with a real card."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from app.machine.hardware.graphics import NVIDIA, PCI, cards_of, is_asleep
from app.machine.sensors.card_use import DriverReport

T = TypeVar("T")
POSSIBLE_CELSIUS = range(1, 151)  # outside this range a sensor is broken


def _nvml() -> Any:
    import pynvml  # takes 30 ms

    return pynvml


class NvidiaCards:
    """A reader for all of NVIDIA's cards.

    It opens the driver's library only for each reading, because an open library keeps a laptop's card awake. On Linux,
    it does not open the library at all while every card is asleep.

    load: returns the module `pynvml`.
    """

    def __init__(self, load: Callable[[], Any] = _nvml, bus: Path = PCI) -> None:
        self._load, self._bus = load, bus
        self._seen_us: dict[str, int] = {}  # the time of the last sample of each card

    def read(self) -> list[DriverReport]:
        """Return the report of each card, or an empty list if there is no driver."""
        places = cards_of((NVIDIA,), self._bus)
        if places and all(map(is_asleep, places)):
            return []
        nvml = self._load()
        try:
            nvml.nvmlInit()
        except (nvml.NVMLError, OSError):
            return []
        try:
            return [self._card(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:  # a card was lost
            return []
        finally:
            with suppress(nvml.NVMLError):
                nvml.nvmlShutdown()

    def _card(self, nvml: Any, card: Any) -> DriverReport:
        pci = bus_place(nvml.nvmlDeviceGetPciInfo(card).busId)

        def ask(read: Callable[[], T]) -> T | None:
            """Return the result of `read`, or None if this card or system does not support it."""
            try:
                return read()
            except nvml.NVMLError:
                return None

        celsius = ask(lambda: float(nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU)))
        users = [
            *(ask(lambda: list(nvml.nvmlDeviceGetComputeRunningProcesses(card))) or ()),
            *(ask(lambda: list(nvml.nvmlDeviceGetGraphicsRunningProcesses(card))) or ()),
        ]
        return DriverReport(
            pci,
            is_discrete=True,
            celsius=celsius if celsius is not None and round(celsius) in POSSIBLE_CELSIUS else None,
            busy_percent=ask(lambda: float(nvml.nvmlDeviceGetUtilizationRates(card).gpu)),
            used_bytes=ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(card).used)),
            holders=frozenset(process.pid for process in users),
            percents=ask(lambda: self._percents(nvml, card, pci)),
            held_bytes={process.pid: process.usedGpuMemory for process in users},  # None on Windows' desktops
        )

    def _percents(self, nvml: Any, card: Any, pci: str) -> dict[int, float]:
        """Return each process's share of computing time in percent, from its latest sample since the last call."""
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(card, self._seen_us.get(pci, 0))
        except nvml.NVMLError_NotFound:  # nothing has computed since
            return {}
        percents = {}
        for sample in sorted(samples, key=lambda sample: sample.timeStamp):
            percents[int(sample.pid)] = float(sample.smUtil)
            self._seen_us[pci] = int(sample.timeStamp)
        return percents


def bus_place(text: str | bytes) -> str:
    """Convert a PCI address from NVML's form `00000000:01:00.0` to the form that Linux and the engine use."""
    plain = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    domain, _, rest = plain.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
