"""A message bus of its own and small services on it, for what desktops tell over D-Bus."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "busconfig.dtd">
<busconfig><listen>unix:tmpdir=/tmp</listen><policy context="default"><allow send_destination="*"/>
<allow own="*"/><allow eavesdrop="false"/><allow user="*"/></policy></busconfig>"""
WHOLE_PATIENCE_S = 20
Answer = tuple[str, tuple[Any, ...]]  # the signature, the values
Answers = Callable[[str, tuple[Any, ...]], Answer | None]  # by member and arguments; None: an error

needs_a_bus = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("dbus-daemon") is None, reason="needs dbus-daemon"
)


@contextmanager
def private_bus(folder: Path) -> Iterator[str]:
    """Its address."""
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
def service(address: str, name: str, answers: Answers) -> Iterator[None]:
    """A program that has this name on the bus, and answers every call."""
    from jeepney import message_bus
    from jeepney.io.blocking import open_dbus_connection

    connection = open_dbus_connection(address)
    connection.send_and_get_reply(message_bus.RequestName(name), timeout=WHOLE_PATIENCE_S)
    stop = threading.Event()
    thread = threading.Thread(target=_serve, args=(connection, answers, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(WHOLE_PATIENCE_S)
        connection.close()


def _serve(connection: Any, answers: Answers, stop: threading.Event) -> None:
    from jeepney import HeaderFields, MessageType, new_error, new_method_return

    while not stop.is_set():
        try:
            message = connection.receive(timeout=0.05)
        except TimeoutError:
            continue
        except ConnectionError:
            return
        if message.header.message_type is not MessageType.method_call:
            continue
        results = answers(message.header.fields[HeaderFields.member], message.body)
        if results is None:
            connection.send(new_error(message, "org.freedesktop.DBus.Error.Failed"))
        else:
            connection.send(new_method_return(message, *results))
