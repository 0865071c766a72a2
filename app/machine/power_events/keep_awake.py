"""A request to the operating system to keep this computer awake.

No system setting is changed. The request ends with this process, even if the process crashes.
"""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

LINUX = (
    "systemd-inhibit",
    "--what=sleep:idle",
    "--who=Poolhouse",
    "--mode=block",
    "--why=Other computers wait for an answer",
    "cat",
)
"""`cat` ends with the pipe to it, so with us."""
MACOS = ("caffeinate", "-i", "-w", str(os.getpid()))
ES_CONTINUOUS, ES_SYSTEM_REQUIRED = 0x80000000, 0x00000001  # winbase.h
END_SECONDS = 2.0

Start = Callable[[Sequence[str]], "subprocess.Popen[bytes]"]


def start_tool(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a tool that exits when its standard input is closed."""
    null = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=null, stderr=null)


def stop_tool(tool: subprocess.Popen[bytes]) -> None:
    """Terminate the tool, or kill it if it does not exit in time."""
    if tool.stdin is not None:
        tool.stdin.close()
    tool.terminate()
    try:
        tool.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        tool.kill()
        tool.wait()


class WakeLock:
    """A request to keep the computer awake.

    `hold` and `release` may be called repeatedly, but only from one thread, because Windows tracks the request per
    thread.
    """

    def __init__(self, platform: str = sys.platform, start: Start = start_tool) -> None:
        self._platform, self._start = platform, start
        self._tool: subprocess.Popen[bytes] | None = None
        self._on = self._refused = False

    @property
    def is_held(self) -> bool:
        """Return whether the request is in effect."""
        if self._platform == "win32":
            return self._on
        return self._tool is not None and self._tool.poll() is None

    def hold(self) -> None:
        """Keep the computer awake from now on."""
        if self._platform == "win32":
            self._tell_windows(ES_CONTINUOUS | ES_SYSTEM_REQUIRED)
            self._on = True
        elif not self._refused and not self.is_held:
            self._refused = self._tool is not None  # the tool exited by itself, and would do so again
            if not self._refused:
                self._begin()

    def release(self) -> None:
        """Allow the computer to sleep again."""
        if self._on:
            self._tell_windows(ES_CONTINUOUS)
            self._on = False
        tool, self._tool, self._refused = self._tool, None, False
        if tool is not None:
            stop_tool(tool)

    def _begin(self) -> None:
        command = MACOS if self._platform == "darwin" else LINUX
        try:
            self._tool = self._start(command)
        except OSError as error:  # without the tool, the system sleeps as usual
            self._refused = True
            log.info("this computer cannot be kept awake: %s", error)

    def _tell_windows(self, state: int) -> None:
        if sys.platform == "win32":
            ctypes.windll.kernel32.SetThreadExecutionState(state)
