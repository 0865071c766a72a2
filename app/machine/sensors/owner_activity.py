"""Sensor readings for the lending rules: idle time, battery, programs, temperature, graphics load and network."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import psutil

from app.core.household.link import LinkKind
from app.core.lending.policy import Battery, Network, Readings, Rules, executable
from app.machine import interfaces
from app.machine.sensors import wayland_idle
from app.machine.sensors.card_use import CardReading
from app.machine.sensors.desktop_activity import full_screen, idle_seconds
from app.machine.sensors.power_draw import PowerMeter

Run = Callable[[Sequence[str]], str | None]

UNROUTED_ADDRESS = ("192.0.2.1", 9)  # from RFC 5737; only its route is looked up, and nothing is sent
# NMMetered in NetworkManager's D-Bus interface: 1 yes, 2 no, 3 probably yes, 4 probably no
NETWORK_MANAGER = (
    "gdbus", "call", "--system", "--timeout", "2", "--dest", "org.freedesktop.NetworkManager",
    "--object-path", "/org/freedesktop/NetworkManager",
    "--method", "org.freedesktop.DBus.Properties.Get", "org.freedesktop.NetworkManager", "Metered",
)  # fmt: skip
# NetworkCostType of Windows.Networking.Connectivity. Written from the documentation; not yet tested on Windows.
WINRT = "Windows.Networking.Connectivity.NetworkInformation"
COST = (
    f"[void][{WINRT},Windows,ContentType=WindowsRuntime];"
    f"[{WINRT}]::GetInternetConnectionProfile().GetConnectionCost().NetworkCostType"
)
POWERSHELL = ("powershell", "-NoProfile", "-NonInteractive", "-Command", COST)
WINDOWS_COSTS = {"unrestricted": False, "fixed": True, "variable": True}


def network(run: Run) -> Network | None:
    """Return the kind of network that the default route uses, or None if there is no route.

    A network whose cost is unknown is considered free. This includes all networks on macOS except VPNs, because Python
    programs cannot find out on macOS whether a network is metered.
    """
    route = _default_route_kind()
    if route is LinkKind.VPN:
        return "vpn"
    metered = _metered(run)
    if metered is None:
        return "free" if route is not None else None
    return "metered" if metered else "free"


def parse_network_manager(text: str) -> bool | None:
    """Return whether NetworkManager's answer, such as `(<uint32 4>,)`, means a metered network, or None if unknown."""
    match = re.fullmatch(r"\(<uint32 ([0-4])>,\)", text.strip())
    return {"1": True, "3": True, "2": False, "4": False}.get(match[1]) if match else None


def parse_network_cost(text: str) -> bool | None:
    """Return whether the name of a NetworkCostType means a metered network, or None if unknown."""
    return WINDOWS_COSTS.get(text.strip().casefold())


def _metered(run: Run) -> bool | None:
    if sys.platform == "win32":
        return parse_network_cost(run(POWERSHELL) or "")
    return parse_network_manager(run(NETWORK_MANAGER) or "") if sys.platform == "linux" else None


def _default_route_kind() -> LinkKind | None:
    """Return the kind of the interface that packets to the internet would use."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route_socket:
            route_socket.connect(UNROUTED_ADDRESS)
            local = route_socket.getsockname()[0]
    except OSError:
        return None
    carrying = interfaces.interface_of_connection(interfaces.interfaces(), local)
    return carrying.kind if carrying else None


PROGRAMS_SECONDS = 10.0  # listing all processes takes about 10 ms
IDLE_SECONDS = 5.0
HEAT_SECONDS = 10.0
SCREEN_SECONDS = 10.0
NETWORK_SECONDS = 30.0  # on Windows this starts PowerShell
PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal")  # names on Linux
POSSIBLE_CELSIUS = (1.0, 150.0)  # outside this range a sensor is broken
TOOL_SECONDS = 2.0  # some tools hang if their service does (UX.md TC4)

log = logging.getLogger(__name__)

T = TypeVar("T")


class OwnerSensors:
    """The sensors for the lending rules.

    Each sensor is read only if a rule needs it, and most readings are cached for a few seconds. `read` can block for
    some seconds if a system tool hangs, so call it in a thread.

    card: returns the reading of the graphics card that computes.
    """

    def __init__(
        self,
        run: Run | None = None,
        clock: Callable[[], float] = time.monotonic,
        card: Callable[[], CardReading] = CardReading,
    ) -> None:
        self._run, self._clock, self._card = run or tool_output, clock, card
        self._wayland = wayland_idle.WaylandIdleWatch()
        self._idle = _CachedReading(IDLE_SECONDS, lambda: idle_seconds(self._run, self._wayland))
        self._power = PowerMeter(self._run, clock=clock)
        self._heat = _CachedReading(HEAT_SECONDS, hottest_celsius)
        self._screen = _CachedReading(SCREEN_SECONDS, lambda: full_screen(self._run))
        self._network = _CachedReading(NETWORK_SECONDS, lambda: network(self._run))
        self._programs: _CachedReading[frozenset[str]] = _CachedReading(PROGRAMS_SECONDS, frozenset)
        self._watched: frozenset[str] = frozenset()

    def read(self, rules: Rules) -> Readings:
        """Return the current readings of the sensors that these rules need."""
        now_s, local = self._clock(), time.localtime()
        programs = frozenset(map(executable, rules.programs))
        if programs != self._watched:
            self._watched = programs
            self._programs = _CachedReading(PROGRAMS_SECONDS, lambda: running_among(programs))
        card = self._card()  # always read, since the owner also sees it
        return Readings(
            now_s=now_s,
            weekday=local.tm_wday,
            minute=local.tm_hour * 60 + local.tm_min,
            idle_s=self._idle.at(now_s) if rules.idle_s else None,
            battery=battery() if rules.battery_percent else None,
            programs=self._programs.at(now_s) if programs else frozenset(),
            gpu_percent=card.others_percent if rules.gpu else None,
            hottest_c=self._heat.at(now_s),  # always read, since the household also displays it
            watts=self._power.watts(),
            full_screen=self._screen.at(now_s) if rules.screen else None,
            network=self._network.at(now_s) if rules.network else None,
            card_c=card.celsius,
        )


class _CachedReading(Generic[T]):
    """A reading that is taken at most once per interval."""

    def __init__(self, every_s: float, read: Callable[[], T]) -> None:
        self._every_s, self._read = every_s, read
        self._read_at = -every_s
        self._value: T

    def at(self, now_s: float) -> T:
        if now_s - self._read_at >= self._every_s:
            self._value, self._read_at = self._read(), now_s
        return self._value


def battery() -> Battery | None:
    """Return the battery's state, or None if there is no battery or the system does not report it."""
    try:
        reading = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError, ValueError):  # not supported on this system
        return None
    if reading is None:
        return None
    unplugged = getattr(reading, "power_plugged", None) is False  # None means unknown
    return Battery(float(reading.percent), not unplugged)


def hottest_celsius() -> float | None:
    """Return the highest processor temperature, or None if the system reports none, as on Windows and macOS."""
    try:
        sensors: dict[str, list[Any]] = getattr(psutil, "sensors_temperatures", dict)()
    except (OSError, RuntimeError, ValueError):
        return None
    least, most = POSSIBLE_CELSIUS
    readings = [
        float(sensor.current)
        for name in PROCESSOR_SENSORS
        for sensor in sensors.get(name, ())
        if sensor.current is not None and least <= sensor.current <= most
    ]
    return max(readings, default=None)


def running_among(programs: frozenset[str]) -> frozenset[str]:
    """Return which of the `programs` are running. Names have the form that `policy.executable` returns."""
    matches = set()
    for process in psutil.process_iter(["name"]):
        name = executable(process.info["name"] or "")
        if name in programs:
            matches.add(name)
        elif sys.platform == "linux" and len(name) == 15:  # the kernel truncates names to 15 characters
            matches |= {program for program in programs if program.startswith(name)}
    return frozenset(matches)


def tool_output(command: Sequence[str]) -> str | None:
    """Run a system tool and return its output, or None if it is missing, fails, or takes too long."""
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        finished = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=TOOL_SECONDS,
            check=False,
            creationflags=flags,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.debug("%s: %s", command[0], error)
        return None
    return finished.stdout if finished.returncode == 0 else None
