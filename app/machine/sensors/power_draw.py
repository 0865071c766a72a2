"""The power that this computer draws, as reported by the system without special privileges."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

Run = Callable[[Sequence[str]], str | None]

POWERCAP = Path("/sys/class/powercap")  # Linux: the processor's energy counters, which often only root can read
SUPPLIES = Path("/sys/class/power_supply")
TOOL = "nvidia-smi"
CARDS = (TOOL, "--query-gpu=power.draw", "--format=csv,noheader,nounits")
CARDS_SECONDS = 10.0  # between two calls of the tool, each of which takes up to 100 ms
MAX_WATTS = 5_000.0  # a higher reading means that a sensor is broken


class PowerMeter:
    """A meter of the power drawn by the whole computer on battery, or otherwise by the processor and graphics cards.

    The processor's power is measured between two calls, so the first call does not include it.
    """

    def __init__(
        self,
        run: Run,
        powercap: Path = POWERCAP,
        supplies: Path = SUPPLIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run, self._clock = run, clock
        self._powercap, self._supplies = powercap, supplies
        self._before: tuple[float, dict[Path, int]] = (0.0, {})
        self._cards_at = -CARDS_SECONDS
        self._cards_drew: float | None = None

    def watts(self) -> float | None:
        """Return the power in watts, or None if it is unknown."""
        battery = battery_watts(self._supplies)
        parts = [battery] if battery else [self._processor(), self._cards()]
        known = [part for part in parts if part is not None and 0 < part <= MAX_WATTS]
        return sum(known) if known else None

    def _processor(self) -> float | None:
        now_s, counters = self._clock(), _counters(self._powercap)
        (before_s, old_counters), self._before = self._before, (now_s, counters)
        increases = [counters[zone] - old_counters[zone] for zone in counters.keys() & old_counters.keys()]
        if not increases or min(increases) < 0 or now_s <= before_s:  # a counter was reset
            return None
        return sum(increases) / 1e6 / (now_s - before_s)

    def _cards(self) -> float | None:
        now_s = self._clock()
        if now_s - self._cards_at >= CARDS_SECONDS:
            self._cards_at, self._cards_drew = now_s, cards_watts(self._run)
        return self._cards_drew


def battery_watts(supplies: Path) -> float | None:
    """Return the power that the batteries supply, or None if no battery is discharging or reports its power."""
    watts = []
    for supply in sorted(supplies.glob("*")):
        if _text(supply / "status") != "Discharging":
            continue
        microwatts = _number(supply / "power_now")
        if microwatts is None:
            volts, amperes = _number(supply / "voltage_now"), _number(supply / "current_now")
            microwatts = volts * amperes // 10**6 if volts and amperes else None
        if microwatts:
            watts.append(microwatts / 1e6)
    return sum(watts) if watts else None


def cards_watts(run: Run) -> float | None:
    """Return the total power of the NVIDIA cards according to nvidia-smi, or None if it is unknown."""
    if shutil.which(TOOL) is None:
        return None
    watts = []
    for line in (run(CARDS) or "").splitlines():
        try:
            watts.append(float(line))
        except ValueError:  # `[N/A]`
            continue
    return sum(watts) if watts else None


def _counters(powercap: Path) -> dict[Path, int]:
    """Return the energy counter of each processor package in microjoules, without the counters of its subzones."""
    zones = (zone for zone in powercap.glob("intel-rapl:*") if zone.name.count(":") == 1)
    read = {zone: _number(zone / "energy_uj") for zone in zones}
    return {zone: joules for zone, joules in read.items() if joules is not None}


def _number(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.lstrip("-").isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii", errors="replace").strip()
    except OSError:
        return ""
