"""Keeping the computer awake: by a tool that ends with us, and only while it is asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from app.machine.power_events.keep_awake import LINUX, MACOS, WakeLock, start_tool

LIVES = (sys.executable, "-c", "import sys; sys.stdin.read()")
REFUSED = (sys.executable, "-c", "raise SystemExit(1)")


class Tools:
    """Starts another program in place of the system's."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command, self.asked = command, list[tuple[str, ...]]()
        self.made: list[subprocess.Popen[bytes]] = []

    def __call__(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        self.asked.append(tuple(command))
        self.made.append(start_tool(self.command))
        return self.made[-1]


def held(awake: WakeLock) -> bool:
    return awake.is_held


def test_it_is_held_once_and_released() -> None:
    tools = Tools(LIVES)
    awake = WakeLock("linux", tools)
    awake.hold()
    awake.hold()
    assert held(awake) is True
    assert tools.asked == [LINUX]
    awake.release()
    awake.release()
    assert held(awake) is False
    assert tools.made[0].poll() is not None
    awake.hold()
    assert len(tools.asked) == 2
    awake.release()


def test_the_tool_ends_with_its_pipe() -> None:
    tool = start_tool(LIVES)
    assert tool.stdin is not None
    tool.stdin.close()
    assert tool.wait(10) == 0


def test_who_is_refused_does_not_ask_again_and_again() -> None:
    tools = Tools(REFUSED)
    awake = WakeLock("darwin", tools)
    awake.hold()
    tools.made[0].wait(10)
    for _ in range(3):
        awake.hold()
    assert tools.asked == [MACOS]
    assert held(awake) is False
    awake.release()
    awake.hold()  # another time it may be allowed
    assert len(tools.asked) == 2
    awake.release()


def test_without_the_tool_nothing_happens() -> None:
    def missing(_: Sequence[str]) -> subprocess.Popen[bytes]:
        raise FileNotFoundError("systemd-inhibit")

    awake = WakeLock("linux", missing)
    awake.hold()
    assert held(awake) is False
    awake.release()


def test_without_a_desktop_the_system_is_told_who_asks_and_why() -> None:
    """systemd-inhibit asks the system's own bus, and a node as a service has no session's."""
    assert LINUX[0] == "systemd-inhibit"
    assert "--what=sleep:idle" in LINUX
    assert "--who=Poolhouse" in LINUX
    assert any(part.startswith("--why=") for part in LINUX)
