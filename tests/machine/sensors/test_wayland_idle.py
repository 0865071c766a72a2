"""Tests of a Wayland desktop's idle time. libwayland-server understood the same bytes."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from app.machine.sensors import wayland_idle
from app.machine.sensors.wayland_idle import SILENT_SECONDS, WaylandIdleWatch

pytestmark = [
    pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs sockets that are files"),
    pytest.mark.skipif(sys.byteorder != "little", reason="these bytes are in that order"),
]

ASKS = "0100000001000c00020000000100000000000c0003000000"
SEAT = "02000000000020000100000008000000776c5f73656174000100000004000000"
NOTIFIER = "020000000000300002000000150000006578745f69646c655f6e6f7469666965725f763100000000"
LISTENS = {
    1: f"{SEAT}{NOTIFIER}010000000500000005000000010014000600000088130000" + "04000000",
    2: f"{SEAT}{NOTIFIER}020000000500000005000000020014000600000088130000" + "04000000",
}
DONE, CUT = struct.pack("=III", 3, 12 << 16, 7), struct.pack("=II", 1, 8 << 16)
IDLED, RESUMED = struct.pack("=II", 6, 8 << 16), struct.pack("=II", 6, 8 << 16 | 1)


def there_is(number: int, kind: str, version: int) -> bytes:
    text = kind.encode() + b"\0"
    body = struct.pack("=II", number, len(text)) + text + b"\0" * (-len(text) % 4)
    body += struct.pack("=I", version)
    return struct.pack("=II", 2, (8 + len(body)) << 16) + body


def all_there(version: int) -> bytes:
    data = there_is(9, "wl_output", 4) + there_is(1, "wl_seat", 5)
    return data + there_is(2, "ext_idle_notifier_v1", version) + DONE


class Desktop:
    """Takes one that connects after another, and says the same to each at first."""

    def __init__(self, folder: Path, first: bytes) -> None:
        self.environment = {"WAYLAND_DISPLAY": "wayland-7", "XDG_RUNTIME_DIR": str(folder)}
        self._first, self.lines = first, list[socket.socket]()
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / "wayland-7"))
        self._door.listen()
        self._thread = Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while True:
            try:
                line, _ = self._door.accept()
            except OSError:  # closed
                return
            line.settimeout(10)
            self.lines.append(line)
            line.sendall(self._first)

    def heard(self, n_bytes: int) -> str:
        data = b""
        while len(data) < n_bytes:
            data += self.lines[-1].recv(n_bytes - len(data))
        return data.hex()

    def say(self, data: bytes) -> None:
        self.lines[-1].sendall(data)

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._thread.join()
        for line in self.lines:
            line.close()


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def watch(clock: list[float]) -> Iterator[WaylandIdleWatch]:
    made = WaylandIdleWatch(lambda: clock[0])
    yield made
    made.close()


@pytest.fixture
def desktop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desktop]:
    made = Desktop(tmp_path, request.param)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("desktop", "version"), [(all_there(1), 1), (all_there(2), 2), (all_there(3), 2)],
    indirect=["desktop"],
)  # fmt: skip
def test_it_asks_to_be_told_and_reckons_from_there(
    desktop: Desktop, watch: WaylandIdleWatch, clock: list[float], version: int
) -> None:
    assert watch.idle_seconds(desktop.environment) == 0.0
    assert desktop.heard(len(ASKS + LISTENS[version]) // 2) == ASKS + LISTENS[version]
    clock[0] += 300
    assert watch.idle_seconds(desktop.environment) == 0.0, "nothing was said: somebody is there"
    desktop.say(IDLED[:5])
    assert watch.idle_seconds(desktop.environment) == 0.0
    desktop.say(IDLED[5:])
    assert watch.idle_seconds(desktop.environment) == SILENT_SECONDS
    clock[0] += 60
    assert watch.idle_seconds(desktop.environment) == SILENT_SECONDS + 60
    desktop.say(RESUMED + IDLED + RESUMED)
    assert watch.idle_seconds(desktop.environment) == 0.0
    assert len(desktop.lines) == 1


@pytest.mark.parametrize("desktop", [all_there(2)], indirect=True)
def test_a_desktop_that_ends_or_complains_is_asked_anew(
    desktop: Desktop, watch: WaylandIdleWatch, clock: list[float]
) -> None:
    for complains in (True, False):
        assert watch.idle_seconds(desktop.environment) == 0.0
        desktop.say(IDLED)
        assert watch.idle_seconds(desktop.environment) == SILENT_SECONDS
        if complains:
            desktop.say(CUT)
        else:
            desktop.lines[-1].close()
        assert watch.idle_seconds(desktop.environment) is None
    assert watch.idle_seconds(desktop.environment) == 0.0
    assert len(desktop.lines) == 3


@pytest.mark.parametrize(
    "desktop",
    [
        there_is(1, "wl_seat", 5) + DONE,
        there_is(2, "ext_idle_notifier_v1", 2) + DONE,
        CUT,
        b"\0" * 8,
        struct.pack("=II", 2, 12 << 16) + b"\xff" * 4,
        struct.pack("=III", 2, 16 << 16, 1) + b"\xff" * 4,
    ],
    indirect=True,
)
def test_one_that_has_nothing_for_it_or_talks_nonsense_tells_nothing(desktop: Desktop, watch: WaylandIdleWatch) -> None:
    assert watch.idle_seconds(desktop.environment) is None


@pytest.mark.parametrize("desktop", [b""], indirect=True)
def test_one_that_is_silent_is_not_waited_for_long(
    desktop: Desktop, watch: WaylandIdleWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wayland_idle, "ANSWER_SECONDS", 0.05)
    assert watch.idle_seconds(desktop.environment) is None


@pytest.mark.parametrize(
    "environment", [{}, {"WAYLAND_DISPLAY": "wayland-0"}, {"WAYLAND_DISPLAY": "/nowhere/wayland-0"}]
)
def test_without_a_desktop_nothing_is_told(watch: WaylandIdleWatch, environment: dict[str, str]) -> None:
    assert watch.idle_seconds(environment) is None
