"""The command as its own process: Ctrl-C, standard input, closed pipes, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.cli.entry_point import NOT_UTF8
from tests.cli.answers import LOADED, PLAN, SNAPSHOT, progress, streamed
from tests.cli.fake_node import Lines
from tests.cli.test_pairing import PAIRED, WAITING, WINDOW

POOLHOUSE = [sys.executable, "-m", "app"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="Ctrl-C cannot be sent to one process there")


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, **more}


def started(*arguments: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*POOLHOUSE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment(),
        **how,
    )


@POSIX
def test_ctrl_c_in_an_answer_cancels_it(answering: Any, home: Path) -> None:
    lines = Lines([{"delta": {"text": "Open Pool", "token_ids": [1]}}], "hang")
    node = answering({("POST", "/ask"): lines})
    with started("ask", "How?", "--home", str(home)) as process:
        assert process.stdout is not None
        assert process.stdout.read(9) == "Open Pool"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "\n", "Stopped.\n")
    assert node.cancelled.wait(30)


@pytest.mark.long
@POSIX
def test_ctrl_c_says_what_stays_of_a_load_and_of_a_download(answering: Any, home: Path) -> None:
    running = {"id": "d1", "state": "running", "done_bytes": 1, "total_bytes": 9, "held_up": None}
    answers = {
        ("POST", "/load"): Lines([progress("loading", 1, 2)], "hang"),
        ("POST", "/copies"): {"machines": []},
        ("POST", "/downloads"): {"download": running},
        ("GET", "/downloads"): {"downloads": [running]},
        ("POST", "/downloads/d1/pause"): {},
    }
    node = answering(answers)
    for command, first, last in (
        (("load", "guide"), "Loading layers…\n", "Stopped before guide finished loading. `poolhouse status"),
        (("pull", "maker/Tiny/t.gguf"), "Downloading…\n", "Paused. The part already downloaded is kept."),
    ):  # fmt: skip
        with started(*command, "--home", str(home)) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == first
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert err.startswith(last)
        assert err.count("\n") == 1
    assert node.asked[-1][:2] == ("POST", "/downloads/d1/pause")


@pytest.mark.long
@POSIX
def test_ctrl_c_with_json_is_one_object(answering: Any, home: Path) -> None:
    node = answering({("POST", "/ask"): Lines([progress("loading", 1, 2)], "hang")})
    with started("ask", "How?", "--json", "--home", str(home)) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "Loading layers…\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.count("\n") == 1
    assert '"code": "stopped"' in out
    assert node.cancelled.wait(30)


@pytest.mark.long
@POSIX
def test_ctrl_c_after_a_benchmark_leaves_its_figures(answering: Any, home: Path) -> None:
    """One object still, and a sentence for what is not as it was."""
    loads = [Lines([{"done": {"loaded": LOADED}}]), Lines([progress("loading", 1, 2)], "hang")]
    looks = [LOADED, {**LOADED, "context": 8}]
    answers = {
        ("GET", "/models"): {"models": []},
        ("GET", "/status"): lambda body: {**SNAPSHOT, "loaded": looks.pop()},
        ("POST", "/plan"): Lines([{"done": PLAN}]),
        ("POST", "/load"): lambda body: loads.pop(0),
        ("POST", "/ask"): lambda body: streamed(*"abcd"),
    }
    node = answering(answers)
    short = ("--prompt", "32", "--output", "4", "--streams", "1", "--runs", "1")
    with started("bench", "guide", *short, "--json", "--home", str(home)) as process:
        assert process.stderr is not None
        while process.stderr.readline() != "Loading layers…\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(json.loads(out)["results"]) == 1
    assert err == "The model that was loaded before the benchmark was not loaded again.\n"
    assert node.cancelled.wait(30)


@POSIX
def test_ctrl_c_closes_the_pairing_window(answering: Any, home: Path) -> None:
    answers = {
        ("POST", "/pairing"): WINDOW,
        ("GET", "/pairing/wait"): Lines([WAITING], "hang"),
        ("DELETE", "/pairing"): {},
    }
    node = answering(answers)
    with started("pair", "--open", "--home", str(home)) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Code 042137")
        while len(node.asked) < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert node.asked[-1][:2] == ("DELETE", "/pairing")


def test_a_prompt_from_standard_input(answering: Any, home: Path) -> None:
    node = answering({("POST", "/ask"): streamed("Yes.")})
    run = subprocess.run(
        [*POOLHOUSE, "ask", "-", "--home", str(home)],
        input="\ufeffGrüße\r\nzwei".encode(), capture_output=True, env=environment(), check=True,
    )  # fmt: skip
    assert run.stdout.splitlines() == [b"Yes."]
    assert node.asked[0][2]["prompt"] == "Grüße\nzwei"
    wrong = subprocess.run(
        [*POOLHOUSE, "ask", "-", "--home", str(home)],
        input=b"\xff\xfe\x00", capture_output=True, env=environment(), check=False,
    )  # fmt: skip
    assert wrong.returncode == 1
    assert b"not UTF-8" in wrong.stderr


def test_an_old_code_page_shows_plain_signs(answering: Any, home: Path) -> None:
    answering({("GET", "/status"): SNAPSHOT})
    shown = subprocess.run(
        [*POOLHOUSE, "status", "--home", str(home)],
        capture_output=True, env=environment(PYTHONIOENCODING="ascii"), check=True,
    )  # fmt: skip
    assert b"####....####  1-4, 9-12" in shown.stdout


@POSIX
def test_a_reader_that_has_enough_is_no_error(answering: Any, home: Path) -> None:
    answering({("POST", "/ask"): streamed(*["words and more words " * 100] * 200)})
    with started("ask", "How?", "--home", str(home)) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 1


def by_a_shell(words: str, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """`poolhouse` with these words and redirections, as /bin/sh reads them."""
    line = f'exec "$@" {words}'
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", *POOLHOUSE, "--home", str(home)],
        capture_output=True, text=True, check=False, env=environment(**more),
    )  # fmt: skip


@POSIX
def test_a_message_amid_an_answer_has_a_line_of_its_own_where_both_come_out(answering: Any, home: Path) -> None:
    result = {"recovery": {"state": "rebuilding", "machine": "attic", "text": "Rebuilding.", "code": "x"}}
    answering({("POST", "/ask"): Lines([streamed("One ").lines[0], result, *streamed("two.").lines])})
    assert by_a_shell("ask How? 2>&1", home).stdout == "One \nRebuilding.\ntwo.\n"
    apart = by_a_shell("ask How?", home)
    assert (apart.stdout, apart.stderr) == ("One two.\n", "Rebuilding.\n")


@POSIX
@pytest.mark.parametrize("command", ["ask", "load", "rm", "remove"])
def test_bytes_that_are_no_text_are_said_so(poolhouse: Any, answering: Any, command: str) -> None:
    """The shell passes bytes that are not UTF-8 as lone surrogates."""
    node = answering({})
    said = poolhouse(command, "\udcff", *(["--yes"] if command.startswith("r") else []))
    assert (said.code, said.out, said.err) == (2, "", f"{NOT_UTF8}\n")
    assert not node.asked


@POSIX
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_leads_nowhere(answering: Any, home: Path, closed: str) -> None:
    answering({("POST", "/ask"): streamed("Yes.")})
    done = by_a_shell(f"ask How? {closed}", home)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if ">&-" in closed.split() else "Yes.\n")
    if "<&-" in closed:
        nothing = by_a_shell(f"ask - {closed}", home)
        assert nothing.returncode == 1
        assert nothing.stderr.startswith("No prompt was given.") or "2>&-" in closed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_takes_nothing_is_one_sentence(answering: Any, home: Path, unbuffered: str) -> None:
    answering({("GET", "/status"): SNAPSHOT})
    how = {"PYTHONUNBUFFERED": unbuffered}
    for command in ("status", "status --json"):
        done = by_a_shell(f"{command} >/dev/full", home, **how)
        assert done.returncode == 1
        assert done.stderr.startswith("The disk is full (No space left on device). Free some ")
        assert done.stderr.count("\n") == 1
    assert by_a_shell("status >/dev/full 2>/dev/full", home, **how).returncode == 1


def test_a_terminal_without_columns_shows_all(answering: Any, home: Path) -> None:
    answering({("GET", "/status"): SNAPSHOT})
    shown = subprocess.run(
        [*POOLHOUSE, "status", "--home", str(home)],
        capture_output=True, text=True, encoding="utf-8", env=environment(COLUMNS="0"), check=True,
    )  # fmt: skip
    assert "den-pc (this)" in shown.stdout


def in_terminal(arguments: list[str], **more: str) -> str:
    """Return the output of a command on a terminal of 80 columns."""
    import pty

    outer, inner = pty.openpty()
    with subprocess.Popen(
        [*POOLHOUSE, *arguments],
        stdin=inner, stdout=inner, stderr=inner,
        env=environment(TERM="xterm-256color", COLUMNS="80", LINES="24", **more),
    ) as process:  # fmt: skip
        os.close(inner)
        drawn = b""
        while True:
            try:
                piece = os.read(outer, 1 << 16)
            except OSError:  # Linux says so when the last writer is gone
                break
            if not piece:
                break
            drawn += piece
    os.close(outer)
    assert process.returncode == 0, drawn
    return drawn.decode()


@POSIX
def test_a_terminal_gets_color_bars_and_figures(answering: Any, home: Path) -> None:
    steps = [progress("sending", n << 20, 4 << 20, "attic-pc") for n in range(5)]
    steps.insert(2, progress("sending", 0, 4 << 20, "den-pc"))
    answering(
        {
            ("GET", "/status"): SNAPSHOT,
            ("POST", "/load"): Lines([*steps, {"done": {"loaded": LOADED}}], pause=0.06),
            ("POST", "/ask"): streamed("Open \x1b[31mPool."),
        }
    )
    status = in_terminal(["status", "--home", str(home)])
    assert "\x1b[34m██" in status
    load = in_terminal(["load", "guide", "--home", str(home)])
    assert "Sending layers to attic-pc" in load
    assert "of 4.0 MiB" in load
    assert "Sending layers to all machines" in load
    assert "of 8.0 MiB" in load
    assert "Loaded in 1.42 s; 3.0 MiB was sent to the lenders." in load
    ask = in_terminal(["ask", "How?", "--home", str(home)])
    assert ask.startswith("Open [31mPool.\r\n")
    assert "4 tokens · first token after 0.42 s · 11.8 tok/s · 2 machines" in ask


@POSIX
def test_a_terminal_shows_the_code_and_counts_down(answering: Any, home: Path) -> None:
    last_try = {"progress": {**WAITING["progress"], "tries_left": 2}}
    wait = Lines([WAITING, last_try, last_try, {"done": PAIRED}], pause=0.4)
    answering({("POST", "/pairing"): WINDOW, ("GET", "/pairing/wait"): wait})
    shown = in_terminal(["pair", "--open", "--home", str(home)])
    assert "0  4  2     1  3  7" in shown
    assert "poolhouse pair 192.168.1.20:4243" in shown
    assert "120 s left; tries left: 3." in shown
    assert "119 s left; tries left: 2." in shown
    assert "Paired with attic-pc." in shown


@POSIX
def test_no_color_is_heard(answering: Any, home: Path) -> None:
    answering({("GET", "/status"): SNAPSHOT})
    plain = in_terminal(["status", "--home", str(home)], NO_COLOR="1")
    assert "\x1b[34m" not in plain
    assert "\x1b[32m" not in plain


def test_ctrl_c_is_quiet_while_the_command_is_still_being_read() -> None:
    code = (
        "import sys; from app.cli import main\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'app.cli.entry_point': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "sys.exit(main(['status']))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment())
    assert (shown.returncode, shown.stdout, shown.stderr) == (130, "", "")


def test_nothing_is_read_before_an_interrupt_is_quiet() -> None:
    """Ctrl-C amid that would show a trace: `main` catches it only around what it reads itself."""
    code = "import sys, app.cli; print(sorted(one for one in sys.modules if one.startswith('app')))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert shown.stdout.strip() == "['app', 'app.cli']"


def test_help_loads_no_network_and_no_engine() -> None:
    code = (
        "import sys; from app.cli import main; main(['--help']);"
        "print(sorted({'aiohttp', 'numpy', 'psutil', 'msgspec', 'app.node'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert shown.stdout.splitlines()[-1] == "[]"
