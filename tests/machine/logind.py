"""A D-Bus of one's own, and what logind says and is asked on it: signals of sleep and shutdown, and inhibitors."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.machine.power_events.power_events import LOGIND, MANAGER, PATH

VARIABLE = "DBUS_SYSTEM_BUS_ADDRESS"
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "busconfig.dtd">
<busconfig><listen>unix:tmpdir=/tmp</listen><policy context="default"><allow send_destination="*"/>
<allow own="*"/><allow eavesdrop="false"/><allow user="*"/></policy></busconfig>"""


def has_bus() -> bool:
    return sys.platform == "linux" and shutil.which("dbus-daemon") is not None


def has_tool() -> bool:
    return has_bus() and shutil.which("systemd-inhibit") is not None


@contextmanager
def bus(folder: Path) -> Iterator[str]:
    """Its address, until the end of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "bus.conf"
    file.write_text(BUS, "utf-8")
    command = ["dbus-daemon", f"--config-file={file}", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        try:
            yield daemon.stdout.readline().strip()
        finally:
            daemon.kill()


@contextmanager
def system_bus(address: str) -> Iterator[None]:
    """Run a bus that programs started in the block take for the system's."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = address
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


@dataclass(frozen=True, slots=True)
class Inhibitor:
    """Somebody holds the system up, until the other end of this pipe is closed everywhere."""

    what: str
    mode: str
    pipe: int

    @property
    def is_held(self) -> bool:
        return not select.select([self.pipe], [], [], 0)[0]  # nobody writes: readable is over


class Logind:
    """A stand-in for logind on the current system bus. Without `named` it lacks the name, and nobody believes it."""

    def __init__(self, *, named: bool = True) -> None:
        from jeepney import message_bus
        from jeepney.io.threading import open_dbus_connection

        self._bus: Any = open_dbus_connection("SYSTEM", enable_fds=True)
        self.inhibitors: list[Inhibitor] = []
        self._over = False
        if named:
            self._bus.send(message_bus.RequestName(LOGIND))
        self._thread = threading.Thread(target=self._serve, name="logind", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._thread.join()
        self._bus.close()
        for inhibitor in self.inhibitors:
            os.close(inhibitor.pipe)

    @property
    def delayed(self) -> bool:
        """Return whether sleep and shutdown wait for an inhibitor."""
        return any(
            inhibitor.is_held
            for inhibitor in self.inhibitors
            if (inhibitor.what, inhibitor.mode) == ("sleep:shutdown", "delay")
        )

    def say(self, member: str, before: bool) -> None:
        """PrepareForSleep or PrepareForShutdown: it is about to, or it is over."""
        from jeepney import DBusAddress, new_signal

        self._bus.send(new_signal(DBusAddress(PATH, interface=MANAGER), member, "b", (before,)))

    def _serve(self) -> None:
        from jeepney import HeaderFields, MessageType

        while not self._over:
            with contextlib.suppress(TimeoutError):
                message = self._bus.receive(timeout=0.05)
                if message.header.message_type is not MessageType.method_call:
                    continue
                if message.header.fields.get(HeaderFields.member) == "Inhibit":
                    self._inhibit(message)

    def _inhibit(self, message: Any) -> None:
        from jeepney import new_method_return

        subject, _, _, mode = message.body
        ours, theirs = os.pipe()
        self.inhibitors.append(Inhibitor(subject, mode, ours))
        self._bus.send(new_method_return(message, "h", (theirs,)))
        os.close(theirs)
