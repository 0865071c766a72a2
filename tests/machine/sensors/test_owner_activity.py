"""Tests of the sensors: each system's own output is parsed, slow sources are asked rarely, and hangs are survived."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from app.core.household.link import LinkKind
from app.core.lending.policy import Battery, Rules
from app.machine.sensors import desktop_activity, owner_activity, x11_probe
from app.machine.sensors.card_use import CardReading
from app.machine.sensors.owner_activity import OwnerSensors
from tests.private_bus import Answer, needs_a_bus, private_bus, service

SEAT_ACTIVE = "ActiveSession=2 \nIdleHint=no\nIdleSinceHintMonotonic=0\n"
SEAT_IDLE = "ActiveSession=2\nIdleHint=yes\nIdleSinceHintMonotonic=940000000\n"
SEAT_EMPTY = "ActiveSession=\nIdleHint=yes\nIdleSinceHintMonotonic=12000000\n"

IOREG = """\
+-o IOHIDSystem  <class IOHIDSystem, id 0x1000003d2, registered, matched, active, busy 0 (1 ms)>
    {
      "IOClass" = "IOHIDSystem"
      "HIDIdleTime" = 7258330208
      "HIDParameters" = {"HIDClickTime"=500000000,"HIDIdleTimeoutInterval"=0}
    }
"""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(SEAT_ACTIVE, 0.0), (SEAT_IDLE, 60.0), (SEAT_EMPTY, None), ("", None), ("garbage", None),
     ("ActiveSession=2\nIdleHint=yes\nIdleSinceHintMonotonic=soon", 0.0)],
)  # fmt: skip
def test_the_login_manager_of_linux(text: str, seconds: float | None) -> None:
    assert desktop_activity.seat_seconds(text, now_s=1000.0) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("(uint64 12345,)\n", 12.345), ("(uint64 -1,)", None), ("", None), ("(uint32 1,)", None)]
)
def test_gnome(text: str, seconds: float | None) -> None:
    assert desktop_activity.mutter_seconds(text) == seconds


@pytest.mark.parametrize(("text", "seconds"), [("948\n", 0.948), ("no display", None), ("", None)])
def test_x11(text: str, seconds: float | None) -> None:
    assert desktop_activity.x11_seconds(text) == seconds


@pytest.mark.parametrize(("text", "seconds"), [(IOREG, 7.258330208), ("", None), ("{}", None)])
def test_ioreg_of_macos(text: str, seconds: float | None) -> None:
    assert desktop_activity.hid_seconds(text) == seconds
    assert desktop_activity.macos_idle_seconds(lambda command: text) == seconds


@pytest.mark.parametrize(("now", "last", "seconds"), [(5000, 2000, 3.0), (500, (1 << 32) - 500, 1.0), (100, 101, 0.0)])
def test_the_tick_counter_of_windows_begins_anew(now: int, last: int, seconds: float) -> None:
    assert desktop_activity.seconds_between(now, last) == seconds


ANSWERS: dict[str, Answer] = {"GetSessionIdleTime": ("u", (61500,))}


class Tools:
    """Stands for the tools of the system: what each prints, and which were asked."""

    def __init__(self, **printed: str) -> None:
        self.printed, self.asked = printed, list[str]()

    def __call__(self, command: Sequence[str]) -> str | None:
        own: dict[tuple[str, ...], str] = {desktop_activity.X11_IDLE: "x11", desktop_activity.X11_FULL_SCREEN: "screen"}
        own[desktop_activity.SAVER] = "saver"
        name = own.get(tuple(command)) or os.path.basename(command[0])
        self.asked.append(name)
        return self.printed.get(name)

    def wayland(self) -> float | None:
        self.asked.append("wayland")
        return float(self.printed["wayland"]) if "wayland" in self.printed else None


X11 = {"DISPLAY": ":0"}
KDE = {"WAYLAND_DISPLAY": "wayland-0", "XDG_CURRENT_DESKTOP": "KDE"}
GNOME = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0", "XDG_CURRENT_DESKTOP": "ubuntu:GNOME"}


@pytest.mark.parametrize(
    ("environment", "printed", "seconds", "requests"),
    [
        (GNOME, {"gdbus": "(uint64 4000,)"}, 4.0, ["gdbus"]),
        (GNOME, {"loginctl": SEAT_ACTIVE}, 0.0, ["gdbus", "wayland", "saver", "loginctl"]),  # never X11 on Wayland
        (X11, {"x11": "7000"}, 7.0, ["x11"]),
        (X11, {"loginctl": SEAT_ACTIVE}, 0.0, ["x11", "saver", "loginctl"]),
        (X11, {"saver": "(uint32 90,)"}, 90.0, ["x11", "saver"]),
        (KDE, {"wayland": "70"}, 70.0, ["wayland"]),
        (KDE, {"wayland": "0"}, 0.0, ["wayland"]),  # somebody is there
        (KDE, {"saver": "(uint32 90000,)"}, 90.0, ["wayland", "saver"]),
        (KDE, {"saver": "(uint32 0,)", "loginctl": SEAT_EMPTY}, None, ["wayland", "saver", "loginctl"]),
        (KDE, {"saver": "()"}, None, ["wayland", "saver", "loginctl"]),
        ({}, {}, None, ["loginctl"]),
    ],
)
def test_the_first_source_that_answers(
    environment: dict[str, str], printed: dict[str, str], seconds: float | None, requests: list[str]
) -> None:
    tools = Tools(**printed)
    assert desktop_activity.linux_idle_seconds(tools, environment, lambda _: tools.wayland()) == seconds
    assert tools.asked == requests


@needs_a_bus
@pytest.mark.skipif(shutil.which("gdbus") is None, reason="needs gdbus")
def test_the_screen_saver_is_asked_over_the_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with private_bus(tmp_path) as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        assert owner_activity.tool_output(desktop_activity.SAVER) is None, "nobody is there"
        with service(address, "org.freedesktop.ScreenSaver", lambda member, _: ANSWERS.get(member)):
            result = owner_activity.tool_output(desktop_activity.SAVER)
    assert desktop_activity.saver_seconds(result or "", in_milliseconds=True) == 61.5


def test_without_a_display_the_x11_program_fails_and_says_why() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", x11_probe.__file__, "idle"],
        capture_output=True, text=True, env=environment, timeout=20, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr


@pytest.mark.parametrize(
    ("reading", "battery"),
    [
        (None, None),
        (SimpleNamespace(percent=48.2, power_plugged=False), Battery(48.2, False)),
        (SimpleNamespace(percent=48, power_plugged=True), Battery(48.0, True)),
        (SimpleNamespace(percent=48, power_plugged=None), Battery(48.0, True)),
    ],
)
def test_the_battery(monkeypatch: pytest.MonkeyPatch, reading: Any, battery: Battery | None) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", lambda: reading, raising=False)
    assert owner_activity.battery() == battery


def test_a_battery_that_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise FileNotFoundError

    monkeypatch.setattr(psutil, "sensors_battery", fails, raising=False)
    assert owner_activity.battery() is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs a `sleep` to copy")
def test_a_program_that_runs_is_found_and_gone_when_it_ends(tmp_path: Any) -> None:
    """A real process under a name of its own, longer than the kernel keeps."""
    program = tmp_path / "a-game-with-a-long-name"
    shutil.copy(shutil.which("sleep") or "", program)
    requests = frozenset({program.name, "nothing-like-it"})
    process = subprocess.Popen([str(program), "30"])
    try:
        assert owner_activity.running_among(requests) == {program.name}
    finally:
        process.kill()
        process.wait()
    assert owner_activity.running_among(requests) == frozenset()


def test_slow_sources_are_asked_rarely_and_only_if_a_rule_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    def says(name: str, value: Any) -> Callable[..., Any]:
        def say(*_: Any) -> Any:
            requests.append(name)
            return value

        return say

    monkeypatch.setattr(owner_activity, "running_among", says("programs", frozenset({"game"})))
    monkeypatch.setattr(owner_activity, "idle_seconds", says("idle", 1.0))
    monkeypatch.setattr(owner_activity, "full_screen", says("screen", False))
    monkeypatch.setattr(owner_activity, "network", says("network", "vpn"))
    now = [100.0]
    senser = OwnerSensors(clock=lambda: now[0], card=lambda: CardReading(others_percent=5.0, celsius=61.0))
    seen = senser.read(Rules(gpu=False, screen=False))
    assert (seen.gpu_percent, seen.card_c) == (None, 61.0)
    assert requests == []
    rules = Rules(idle_s=60, programs=("Game.exe",), network=True)
    for now[0] in (100.0, 101.0, 104.9):
        seen = senser.read(rules)
        assert (seen.idle_s, seen.programs, seen.gpu_percent) == (1.0, frozenset({"game"}), 5.0)
        assert (seen.full_screen, seen.network) == (False, "vpn")
    assert sorted(requests) == ["idle", "network", "programs", "screen"]
    for now[0] in (105.0, 110.0, 129.9):
        senser.read(rules)
    assert (requests.count("idle"), requests.count("programs")) == (4, 3)
    senser.read(Rules(programs=("other",)))  # changed: asked at once
    assert requests.count("programs") == 4


@pytest.mark.parametrize(
    ("environment", "printed", "filled", "requests"),
    [
        (X11, {"screen": "1\n"}, True, ["screen"]),
        (X11, {"screen": "0\n"}, False, ["screen"]),
        (X11, {"screen": ""}, None, ["screen"]),
        (GNOME, {"screen": "1\n"}, None, []),  # Wayland hides other programs' windows
        ({}, {}, None, []),
    ],
)
def test_a_filled_screen_of_linux(
    environment: dict[str, str], printed: dict[str, str], filled: bool | None, requests: list[str]
) -> None:
    tools = Tools(**printed)
    assert desktop_activity.linux_full_screen(tools, environment) is filled
    assert tools.asked == requests


def test_without_a_display_nothing_tells_of_the_screen() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", x11_probe.__file__, "fullscreen"],
        capture_output=True, text=True, env=environment, timeout=20, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr


PMSET = """\
Assertion status system-wide:
   PreventUserIdleDisplaySleep    {}
   PreventUserIdleSystemSleep     1
"""


@pytest.mark.parametrize(("text", "filled"), [(PMSET.format(1), True), (PMSET.format(0), False), ("", None)])
def test_a_kept_display_of_macos(text: str, filled: bool | None) -> None:
    assert desktop_activity.macos_full_screen(lambda command: text) is filled
    assert desktop_activity.macos_full_screen(lambda command: None) is None


@pytest.mark.parametrize(
    ("text", "metered"),
    [("(<uint32 1>,)\n", True), ("(<uint32 3>,)", True), ("(<uint32 2>,)", False),
     ("(<uint32 4>,)", False), ("(<uint32 0>,)", None), ("Error: no such name", None), ("", None)],
)  # fmt: skip
def test_what_network_manager_says(text: str, metered: bool | None) -> None:
    assert owner_activity.parse_network_manager(text) is metered


@pytest.mark.parametrize(
    ("text", "metered"), [("Unrestricted\r\n", False), ("Fixed", True), ("Variable", True), ("Unknown", None)]
)
def test_what_windows_says_of_the_network(text: str, metered: bool | None) -> None:
    assert owner_activity.parse_network_cost(text) is metered


@pytest.mark.skipif(sys.platform != "linux", reason="asks NetworkManager")
@pytest.mark.parametrize(
    ("way", "manager", "expected"),
    [
        (LinkKind.VPN, "(<uint32 2>,)", "vpn"),
        (LinkKind.WIFI, "(<uint32 1>,)", "metered"),
        (LinkKind.WIFI, "(<uint32 4>,)", "free"),
        (LinkKind.ETHERNET, "", "free"),
        (None, "", None),
    ],
)
def test_the_way_out(monkeypatch: pytest.MonkeyPatch, way: LinkKind | None, manager: str, expected: str | None) -> None:
    monkeypatch.setattr(owner_activity, "_default_route_kind", lambda: way)
    assert owner_activity.network(lambda command: manager) == expected


class Heat:
    """A temperature as psutil reports it."""

    def __init__(self, current: float | None) -> None:
        self.current = current


@pytest.mark.parametrize(
    ("sensors", "hottest"),
    [
        ({"coretemp": [Heat(61.0), Heat(67.5)], "nvme": [Heat(80.0)]}, 67.5),
        ({"k10temp": [Heat(None), Heat(55.0)]}, 55.0),
        ({"cpu_thermal": [Heat(-273.0), Heat(1000.0)]}, None),  # broken ones
        ({"nvme": [Heat(80.0)]}, None),  # no processor's
        ({}, None),
    ],
)
def test_the_heat_of_the_processor(
    monkeypatch: pytest.MonkeyPatch, sensors: dict[str, list[Heat]], hottest: float | None
) -> None:
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: sensors, raising=False)
    assert owner_activity.hottest_celsius() == hottest


def test_a_system_that_tells_no_heat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
    assert owner_activity.hottest_celsius() is None


def test_a_tool_that_hangs_fails_or_is_missing_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_activity, "TOOL_SECONDS", 0.2)
    began = time.monotonic()
    assert owner_activity.tool_output([sys.executable, "-c", "import time; time.sleep(30)"]) is None
    assert time.monotonic() - began < 20
    assert owner_activity.tool_output([sys.executable, "-c", "print(1); raise SystemExit(3)"]) is None
    assert owner_activity.tool_output(["no-such-tool-anywhere"]) is None
    monkeypatch.setattr(owner_activity, "TOOL_SECONDS", 20.0)
    assert owner_activity.tool_output([sys.executable, "-c", "print('x')"]) == "x\n"


def test_a_look_on_this_very_machine() -> None:
    seen = OwnerSensors().read(Rules(idle_s=1.0, programs=("no-such-program",)))
    assert seen.programs == frozenset()
    assert 0 <= seen.weekday <= 6
    assert 0 <= seen.minute < 1440
    assert seen.idle_s is None or seen.idle_s >= 0
