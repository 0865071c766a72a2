"""AMD's and Intel's graphics cards, as reported by files on Linux. Not yet tested with a real card."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.machine.hardware.graphics import AMD, INTEL, PCI, cards_of, is_asleep, is_discrete_card
from app.machine.sensors.card_use import DriverReport

PROC = Path("/proc")
DEVICES = "/dev/dri/"
COMPUTING = ("gfx", "compute", "render", "rcs", "ccs")  # the engines of amdgpu, i915 and xe that no movie uses
MOST_MILLIDEGREES = 150_000


@dataclass(frozen=True, slots=True)
class Client:
    """The use of a card by one client, which is a process that has opened the device, since it opened the device.

    used: the time or cycles used on each engine. passed: the total time or cycles of each engine's clock.
    """

    used: dict[str, int]
    passed: dict[str, int]
    held_bytes: int


Key = tuple[str, int, str]  # the card, the process, and the client within it


class LinuxCards:
    """A reader for all of AMD's and Intel's cards.

    The use by each process is known from the second reading on, and only for processes of the same user. AMD's cards
    also report their total use and temperature, and Intel's discrete cards their temperature.
    """

    def __init__(self, bus: Path = PCI, proc: Path = PROC, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._bus, self._proc, self._clock_ns = bus, proc, clock_ns
        self._before: dict[Key, Client] = {}

    def read(self) -> list[DriverReport]:
        """Return the report of each card."""
        places = [device for device in cards_of((AMD, INTEL), self._bus) if not is_asleep(device)]
        if not places:
            return []
        before, self._before = self._before, dict(self._clients())
        return [self._card(device, before) for device in places]

    def _card(self, device: Path, before: dict[Key, Client]) -> DriverReport:
        held: dict[int, int | None] = {}
        percents: dict[int, float] | None = {} if any(key[0] == device.name for key in before) else None
        for key, client in self._before.items():
            pci, pid, _ = key
            if pci != device.name:
                continue
            held[pid] = (held.get(pid) or 0) + client.held_bytes
            if percents is not None:
                percents[pid] = percents.get(pid, 0.0) + _percent(before.get(key), client)
        return DriverReport(
            device.name,
            is_discrete=is_discrete_card(device),
            celsius=_celsius(device),
            busy_percent=_number(device / "gpu_busy_percent"),
            used_bytes=_whole(_number(device / "mem_info_vram_used")),
            holders=frozenset(held),
            percents=percents,
            held_bytes=held,
        )

    def _clients(self) -> Iterator[tuple[Key, Client]]:
        """Yield the use of each card by each process that this user may inspect."""
        for process in self._proc.iterdir():
            if not process.name.isdecimal():
                continue
            try:
                opened = [name for name in os.listdir(process / "fd") if _is_device(process / "fd" / name)]
                texts = [(process / "fdinfo" / name).read_text(encoding="ascii", errors="replace") for name in opened]
            except OSError:  # another user's, or it has ended
                continue
            for text in texts:
                if (known := parse_fdinfo(text, self._clock_ns())) is not None:
                    pci, client_id, client = known
                    yield (pci, int(process.name), client_id), client


def parse_fdinfo(text: str, now_ns: int) -> tuple[str, str, Client] | None:
    """Return the card, the client's ID and its use, or None if the driver does not report them.

    text: the content of a client's fdinfo file, with the keys in the kernel's documentation of DRM client usage.
    now_ns: the current time, for engines that report nanoseconds.
    """
    values = {key.strip(): value.split() for key, _, value in (line.partition(":") for line in text.splitlines())}
    numbers = {key: int(value[0]) for key, value in values.items() if value and value[0].isdecimal()}
    pci, client_id = values.get("drm-pdev"), values.get("drm-client-id")
    if not pci or not client_id:
        return None
    used: dict[str, int] = defaultdict(int)
    passed: dict[str, int] = {}
    for name in COMPUTING:
        if (time_ns := numbers.get(f"drm-engine-{name}")) is not None:
            used[name], passed[name] = time_ns, now_ns
        elif (cycles := numbers.get(f"drm-cycles-{name}")) is not None:
            used[name], passed[name] = cycles, numbers.get(f"drm-total-cycles-{name}", 0)
    own = [key for key in numbers if key.startswith("drm-resident-vram")] or ["drm-memory-vram"]
    held_bytes = sum(numbers.get(key, 0) * _unit(values.get(key, [])) for key in own)
    return pci[0], client_id[0], Client(dict(used), passed, held_bytes)


def _unit(value: list[str]) -> int:
    return {"KiB": 1 << 10, "MiB": 1 << 20}.get(value[1] if len(value) > 1 else "", 1)


def _percent(before: Client | None, now: Client) -> float:
    """Return the use of the busiest engine since the last reading.

    A client that was just opened counts as idle.
    """
    if before is None:
        return 0.0
    shares = []
    for name, used in now.used.items():
        passed = now.passed[name] - before.passed.get(name, 0)
        if name in before.used and passed > 0:
            shares.append(max(0, used - before.used[name]) / passed)
    return 100 * max(shares, default=0.0)


def _is_device(link: Path) -> bool:
    try:
        return os.readlink(link).startswith(DEVICES)
    except OSError:
        return False


def _celsius(device: Path) -> float | None:
    """Return the first temperature, which is the chip's edge temperature that desktops also show, or None."""
    for file in sorted(device.glob("hwmon/hwmon*/temp*_input")):
        reading = _number(file)
        if reading is not None and 0 < reading < MOST_MILLIDEGREES:
            return reading / 1000
    return None


def _number(file: Path) -> float | None:
    try:
        return float(_text(file))
    except ValueError:
        return None


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # also a file whose driver has gone to sleep
        return ""
