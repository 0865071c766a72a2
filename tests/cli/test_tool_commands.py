"""`poolhouse tools …` and `poolhouse ask --tools`, as processes, with a model that calls a tool by itself."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.machine.paths import python_command, python_environment
from tests.gateway.tool_cases import MODEL, hermes
from tests.node.pool import TestNode, node

CLOCK = str(Path(__file__).parents[1] / "tools" / "clock_server.py")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    folder = tmp_path_factory.mktemp("tools")
    with node(folder / "den", "den") as test_node:
        assert test_node.run("import", str(hermes(folder)), "--name", MODEL).returncode == 0
        yield test_node


@pytest.fixture
def made(house: TestNode, tmp_path: Path) -> Iterator[Path]:
    """A server named clock, which notes its calls in this file."""
    notes = tmp_path / "calls.txt"
    added = house.run("tools", "add", "clock", "--home", str(house.root), "--", sys.executable, CLOCK, str(notes))
    assert added.returncode == 0, added.stderr
    assert "is off" in added.stdout
    yield notes
    assert house.run("tools", "remove", "clock").returncode == 0


def test_a_server_is_added_tested_turned_on_and_removed(house: TestNode, made: Path) -> None:
    assert "clock is off" in house.run("tools", "list").stdout
    tested = json.loads(house.run("tools", "test", "clock", "--json").stdout)
    assert [(tool["name"], tool["permission"]) for tool in tested["tools"]] == [("clock", "ask")]
    off = house.run("ask", "hello", "--tools", "clock", "-m", MODEL)
    assert (off.returncode != 0, "is off" in off.stderr) == (True, True)
    assert house.run("tools", "on", "clock").returncode == 0
    assert "clock is on" in house.run("tools", "list").stdout
    unknown = house.run("tools", "test", "nothing")
    assert "no tool server named nothing" in unknown.stderr


def test_nobody_to_ask_means_that_a_call_is_not_made(house: TestNode, made: Path) -> None:
    house.run("tools", "on", "clock")
    process = house.run("ask", "What time is it!", "--tools", "clock", "-m", MODEL, "-n", "200")
    assert "The model wants to call clock of clock" in process.stderr
    assert "not allowed" in process.stderr
    assert not made.exists()


def test_a_tool_that_is_always_allowed_is_called(house: TestNode, made: Path) -> None:
    house.run("tools", "on", "clock")
    assert house.run("tools", "allow", "clock", "clock", "always").returncode == 0
    house.run("ask", "What time is it!", "--tools", "clock", "-m", MODEL, "-n", "200")
    assert made.read_text().split()[:2] == ["UTC", "CET"]


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of its own")
@pytest.mark.parametrize("ending", ["ctrl-c", "n"])
def test_a_question_takes_no_answer_typed_before_it_and_ends_at_ctrl_c(
    house: TestNode, made: Path, ending: str
) -> None:
    house.run("tools", "on", "clock")
    ours, theirs = pty.openpty()
    command = python_command(
        "-m", "app", "ask", "What time is it!", "--tools", "clock", "-m", MODEL, "-n", "200", "--home", str(house.root)
    )
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=python_environment(TERM="dumb"), start_new_session=True
    ) as process:
        os.write(ours, b"y\ny\n")
        os.close(theirs)
        text, n_questions = "", 0
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                piece = os.read(ours, 4096).decode(errors="replace")
            except OSError:  # the terminal is closed
                break
            text += piece
            if text.count("Allow this call?") > n_questions:
                n_questions += 1
                time.sleep(0.5)  # until it waits for a line
                if ending == "n":
                    os.write(ours, b"n\n")
                else:
                    process.send_signal(signal.SIGINT)
        try:
            code = process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    os.close(ours)
    assert not made.exists(), text
    assert "Fatal" not in text
    assert "zone: UTC" in text
    if ending == "ctrl-c":
        assert (code, n_questions) == (130, 1), text
    else:
        assert "The call was not allowed." in text


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of its own")
def test_each_call_is_asked_for_on_a_terminal(house: TestNode, made: Path) -> None:
    """The first call is allowed and the second is not."""
    house.run("tools", "on", "clock")
    ours, theirs = pty.openpty()
    home = str(house.root)
    command = python_command(
        "-m", "app", "ask", "What time is it!", "--tools", "clock", "-m", MODEL, "-n", "200", "--home", home
    )
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=python_environment(TERM="dumb"), close_fds=True
    ) as process:
        os.close(theirs)
        text, answers = "", ["y\n", "n\n"]
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                piece = os.read(ours, 4096).decode(errors="replace")
            except OSError:  # the terminal is closed
                break
            text += piece
            if text.count("Allow this call?") > 2 - len(answers) and answers:
                os.write(ours, answers.pop(0).encode())
            elif "Allow this call?" in piece and not answers:
                os.write(ours, b"n\n")
        process.wait(30)
    os.close(ours)
    assert made.read_text().split() == ["UTC"], text
    assert "The call was not allowed." in text
