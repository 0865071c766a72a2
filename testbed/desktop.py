"""A virtual screen for real programs: a window manager, a tray, a message bus and the accessibility bus (Linux)."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

BUS_LAUNCHER = Path("/usr/libexec/at-spi-bus-launcher")
SYSTEM_PYTHON = "/usr/bin/python3"
SCREEN_TRIES = 100  # a tenth of a second apart
SCREEN = "1280x860x24"
TRAY = ("--edge", "bottom", "--align", "right", "--widthtype", "pixel", "--width", "64",
        "--height", "32")  # fmt: skip


def can_be_used() -> str | None:
    """Return None if programs can be controlled from outside here, or the reason why not."""
    missing = [
        name for name in ("Xvfb", "openbox", "trayer", "dbus-daemon", "gdbus", "xdotool") if not shutil.which(name)
    ]
    if missing or not BUS_LAUNCHER.exists():
        return f"needs {', '.join(missing) or 'at-spi2-core'}"
    finished = subprocess.run([SYSTEM_PYTHON, "-c", "import pyatspi"], capture_output=True, check=False)
    return None if finished.returncode == 0 else "needs python3-pyatspi"


def desktop(stack: ExitStack, folder: Path, before: Sequence[str] = ()) -> dict[str, str]:
    """Start a virtual screen with all its services. Return the environment for programs that run on it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QT_")}

    def started(*words: str, **options: Any) -> subprocess.Popen[str]:
        made = subprocess.Popen([*before, *words], env=environment, stderr=subprocess.DEVNULL, text=True, **options)
        stack.callback(end, made)
        return made

    reading, writing = os.pipe()
    started("Xvfb", "-displayfd", str(writing), "-screen", "0", SCREEN, "-nolisten", "tcp",
            pass_fds=(writing,))  # fmt: skip
    os.close(writing)
    with os.fdopen(reading) as pipe:
        environment["DISPLAY"] = f":{pipe.readline().strip()}"
    bus = started("dbus-daemon", "--session", "--nofork", "--print-address=1", stdout=subprocess.PIPE)
    assert bus.stdout is not None
    environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
    environment |= {"QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "HOME": str(folder)}
    started("openbox", "--sm-disable")  # without a window manager, no window gets key presses
    started("trayer", *TRAY)
    started(str(BUS_LAUNCHER), "--launch-immediately")
    for _ in range(SCREEN_TRIES):
        done = subprocess.run(
            [*before, "gdbus", "call", "--session", "--dest", "org.a11y.Bus", "--object-path", "/org/a11y/bus",
             "--method", "org.freedesktop.DBus.Properties.Set", "org.a11y.Status", "IsEnabled",
             "<true>"], env=environment, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            break
        time.sleep(0.1)
    return environment


def end(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
