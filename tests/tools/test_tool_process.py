"""The process that runs the tool servers for the window: its lines, and that nothing outlives it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from app.api import tools
from app.api.tools import NumberedRequest, ServerEdit, ToolLine
from app.machine.paths import Home, python_command, python_environment

FAULTY = str(Path(__file__).parent / "faulty_server.py")


class Host:
    """The process as the window sees it."""

    def __init__(self, home: Path) -> None:
        environment = python_environment(POOLHOUSE_KEYSTORE="file")
        command = python_command("-m", "app.tools", str(home))
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)
        self._number = 0

    def send(self, request: tools.ToolRequest) -> int:
        self._number += 1
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(NumberedRequest(self._number, request)) + b"\n")
        self.process.stdin.flush()
        return self._number

    def line(self, number: int) -> ToolLine:
        assert self.process.stdout is not None
        while True:
            line = msgspec.json.decode(self.process.stdout.readline(), type=ToolLine)
            if line.number == number:
                return line

    def ask(self, request: tools.ToolRequest, kind: type[Any]) -> Any:
        line = self.line(self.send(request))
        assert line.error is None, line.error
        assert line.answer is not None
        return msgspec.convert(line.answer, kind)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    Home.at(tmp_path).create()
    made = Host(tmp_path)
    with made.process:
        yield made
        made.process.kill()


def opened(host: Host, kind: str) -> list[psutil.Process]:
    """Start a server, and return the processes below the host."""
    edit = ServerEdit(name=kind, command=sys.executable, arguments=[FAULTY, kind])
    host.ask(tools.SaveServer(edit), tools.Servers)
    host.ask(tools.SwitchServer(kind, True), tools.Servers)
    offered = host.ask(tools.OpenTools([kind]), tools.Offered)
    assert [tool.name for tool in offered.tools] == ["echo"]
    below = psutil.Process(host.process.pid).children(recursive=True)
    assert len(below) == 2  # its keeper, and the server
    return below


def test_a_call_is_answered_and_another_canceled(host: Host) -> None:
    opened(host, "good")
    result = host.ask(tools.CallTool("good", "echo", '{"text": "grüß dich"}'), tools.CallResult)
    assert result.text == "grüß dich"
    opened_below = psutil.Process(host.process.pid).children(recursive=True)
    edit = ServerEdit(name="slow", command=sys.executable, arguments=[FAULTY, "hangs_in_a_call"])
    host.ask(tools.SaveServer(edit), tools.Servers)
    host.ask(tools.SwitchServer("slow", True), tools.Servers)
    host.send(tools.CallTool("slow", "echo", '{"text": "a"}'))
    host.send(tools.CancelCall(host._number))
    assert host.ask(tools.CallTool("good", "echo", '{"text": "b"}'), tools.CallResult).text == "b"
    assert len(opened_below) == 2


def test_an_error_is_an_answer_and_the_host_stays(host: Host) -> None:
    line = host.line(host.send(tools.RemoveServer("nobody")))
    assert line.error is not None
    assert line.error.code == "tool_server_unknown"
    assert host.process.stdin is not None
    host.process.stdin.write(b"what is this\n{}\n")
    assert host.ask(tools.ListServers(), tools.Servers).servers == []


@pytest.mark.skipif(os.name != "posix", reason="job objects do this on Windows")
@pytest.mark.parametrize("kind", ["good", "ignores_its_end"])
@pytest.mark.parametrize("end", ["the window is gone", "the host is killed"])
def test_no_server_outlives_the_host(host: Host, kind: str, end: str) -> None:
    below = opened(host, kind)
    if end == "the host is killed":
        host.process.kill()
    else:
        assert host.process.stdin is not None
        host.process.stdin.close()
    _, left = psutil.wait_procs(below, timeout=15)
    assert not left
    begun = time.monotonic()
    host.process.wait(15)
    assert time.monotonic() - begun < 15
