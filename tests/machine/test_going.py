"""What the system says of sleep and shutdown, over a bus of the test's own."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence

import pytest

from app.machine.awake import started
from app.machine.going import DELAY, LOGIND, MANAGER, PATH, Delay, Going, listen

LIVES = (sys.executable, "-c", "import sys; sys.stdin.read()")
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "busconfig.dtd">
<busconfig><listen>unix:tmpdir=/tmp</listen><policy context="default"><allow send_destination="*"/>
<allow own="*"/><allow eavesdrop="false"/><allow user="*"/></policy></busconfig>"""
linux = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("dbus-daemon") is None,
    reason="needs a D-Bus daemon",
)


class Tools:
    """Starts another program in place of the system's."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.made: list[subprocess.Popen[bytes]] = []

    def __call__(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        self.asked.append(tuple(command))
        self.made.append(started(LIVES))
        return self.made[-1]

    @property
    def n_alive(self) -> int:
        return sum(tool.poll() is None for tool in self.made)


def test_sleep_is_held_up_by_one_tool_until_it_is_released() -> None:
    tools = Tools()
    delay = Delay(tools)
    delay.hold()
    delay.hold()
    assert tools.asked == [DELAY]
    delay.release()
    delay.release()
    assert tools.n_alive == 0


def test_where_there_is_no_such_tool_nothing_is_held_up() -> None:
    def none(_: Sequence[str]) -> subprocess.Popen[bytes]:
        raise FileNotFoundError("systemd-inhibit")

    delay = Delay(none)
    delay.hold()
    delay.release()


@pytest.fixture
def bus(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    file = tmp_path_factory.mktemp("bus") / "bus.conf"
    file.write_text(BUS, "utf-8")
    command = ["dbus-daemon", f"--config-file={file}", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        address = daemon.stdout.readline().strip()
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        yield address
        daemon.kill()


class Logind:
    """Says what a test wants said, under logind's name or under none."""

    def __init__(self, named: bool) -> None:
        self._named = named

    async def __aenter__(self) -> Logind:
        from jeepney import message_bus
        from jeepney.io.asyncio import open_dbus_connection

        self._connection = await open_dbus_connection("SYSTEM")
        if self._named:
            await self._connection.send(message_bus.RequestName(LOGIND))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def say(self, member: str, before: bool) -> None:
        from jeepney import DBusAddress, new_signal

        emitter = DBusAddress(PATH, interface=MANAGER)
        await self._connection.send(new_signal(emitter, member, "b", (before,)))


@pytest.fixture
async def heard() -> AsyncGenerator[tuple[list[Going], Tools]]:
    told: list[Going] = []
    tools = Tools()

    async def tell(going: Going) -> None:
        assert tools.n_alive == 1  # the system waits until it was said
        told.append(going)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(listen(tell, Delay(tools)), name="listen")
        yield told, tools
        task.cancel()
    assert tools.n_alive == 0


@linux
async def test_sleep_and_its_end_and_a_shutdown_are_told(
    bus: str, heard: tuple[list[Going], Tools]
) -> None:
    told, tools = heard
    async with asyncio.timeout(20), Logind(named=True) as logind:
        await until(lambda: tools.n_alive == 1)
        await logind.say("PrepareForSleep", True)
        await until(lambda: told == [Going.SLEEPS])
        await until(lambda: tools.n_alive == 0)  # now it may sleep
        await logind.say("PrepareForSleep", False)
        await until(lambda: told == [Going.SLEEPS, Going.STAYS])
        await logind.say("SessionNew", True)
        await logind.say("PrepareForShutdown", True)
        await until(lambda: told[2:] == [Going.ENDS])


@linux
async def test_others_than_the_system_are_not_believed(
    bus: str, heard: tuple[list[Going], Tools]
) -> None:
    told, tools = heard
    async with asyncio.timeout(20), Logind(named=True) as logind, Logind(named=False) as other:
        await until(lambda: tools.n_alive == 1)
        await other.say("PrepareForSleep", True)
        await logind.say("PrepareForShutdown", True)
        await until(lambda: bool(told))
    assert told == [Going.ENDS]


async def test_without_a_bus_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, heard: tuple[list[Going], Tools]
) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere")
    await asyncio.sleep(0.1)
    assert heard[0] == []
    assert heard[1].asked == []


async def until(holds: object) -> None:
    while not holds():  # type: ignore[operator]  # noqa: ASYNC110  seen from outside
        await asyncio.sleep(0.01)
