"""The process that reads untrusted content: it ends when it takes too long, and the window goes on."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.chat.reading.reader_process import MAX_FAILURES, ReaderLimits, ReaderProcess
from backends.readers.messages import DrawFormula, Drawing, Refusal, Reply

WAIT_MS = 60_000
SIMPLE = DrawFormula("x", is_display=False)
# Much to draw at a depth that is still allowed: 16 seconds of processor time, of which the process allows itself 2
HEAVY = DrawFormula((r"\left(" * 8 + "x" + r"\right)" * 8) * 30, is_display=True)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stops processes by signals")


@pytest.fixture
def reader(qapp: QApplication) -> Iterator[ReaderProcess]:
    made = ReaderProcess("formulas", ReaderLimits(seconds=3.0, resident_bytes=1 << 30, idle_ms=60_000))
    yield made
    made.close()


def asked(qtbot: QtBot, reader: ReaderProcess, *requests: DrawFormula) -> list[Reply | None]:
    replies: list[Reply | None] = []
    for request in requests:
        reader.ask(request, replies.append)
    qtbot.waitUntil(lambda: len(replies) == len(requests), timeout=WAIT_MS)
    return replies


def test_replies_come_in_order(qtbot: QtBot, reader: ReaderProcess) -> None:
    replies = asked(qtbot, reader, SIMPLE, DrawFormula(r"\foo", is_display=False), SIMPLE)
    assert isinstance(replies[0], Drawing)
    assert replies[1] == Refusal("formula_unknown")
    assert replies[2] == replies[0]


def test_a_process_that_hangs_is_ended_and_the_next_request_is_answered(qtbot: QtBot, reader: ReaderProcess) -> None:
    asked(qtbot, reader, SIMPLE)
    first = reader.pid
    os.kill(first, signal.SIGSTOP)
    turns, began = [0], time.monotonic()
    replies: list[Reply | None] = []
    for _ in range(2):
        reader.ask(SIMPLE, replies.append)

    def answered() -> bool:
        turns[0] += 1
        return len(replies) == 2

    qtbot.waitUntil(answered, timeout=WAIT_MS)
    assert replies[0] is None
    assert isinstance(replies[1], Drawing)
    assert reader.pid != first
    assert not psutil.pid_exists(first)
    assert turns[0] > 20 * (time.monotonic() - began) / 10  # the window was never held up for long


def test_a_formula_that_takes_too_long_ends_its_process_alone(qtbot: QtBot, reader: ReaderProcess) -> None:
    """The process limits its own processor time, so that nothing runs for long if the window is gone."""
    patient = ReaderProcess("formulas", ReaderLimits(seconds=600.0, resident_bytes=1 << 30, idle_ms=60_000))
    try:
        [simple] = asked(qtbot, patient, SIMPLE)
        assert isinstance(simple, Drawing)
        first = patient.pid
        assert asked(qtbot, patient, HEAVY, SIMPLE) == [None, simple]
        assert patient.pid not in (0, first)
    finally:
        patient.close()


@pytest.mark.parametrize("module", ["msgspec", "struct", "ziamath", "backends/__init__"])
def test_code_in_the_current_folder_is_not_run(
    qtbot: QtBot, reader: ReaderProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    folder, seen = tmp_path / "downloads", tmp_path / "seen"
    spy = folder / f"{module}.py"
    spy.parent.mkdir(parents=True)
    spy.write_text(f"open({str(seen)!r}, 'w').close()", "utf-8")
    monkeypatch.chdir(folder)
    assert isinstance(asked(qtbot, reader, SIMPLE)[0], Drawing)
    assert not seen.exists()
    assert psutil.Process(reader.pid).cwd() != str(folder)


def test_a_request_is_kept_only_until_it_is_sent(qtbot: QtBot, reader: ReaderProcess) -> None:
    """A document can be 64 MiB. It is not sent again, so the window does not keep it."""
    replies: list[Reply | None] = []
    reader.ask(SIMPLE, replies.append, b" " * 5_000_000)
    assert reader._waiting[0].parts
    qtbot.waitUntil(lambda: bool(reader.pid), timeout=WAIT_MS)
    assert not reader._waiting[0].parts
    qtbot.waitUntil(lambda: bool(replies), timeout=WAIT_MS)
    assert isinstance(replies[0], Drawing)


def test_a_process_that_takes_too_much_memory_is_ended(qtbot: QtBot, qapp: QApplication) -> None:
    small = ReaderProcess("formulas", ReaderLimits(seconds=60.0, resident_bytes=1 << 20, idle_ms=60_000))
    try:
        assert asked(qtbot, small, HEAVY) == [None]
    finally:
        small.close()


def test_a_process_that_fails_again_and_again_is_left_alone(
    qtbot: QtBot, reader: ReaderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert asked(qtbot, reader, *[SIMPLE] * MAX_FAILURES) == [None] * MAX_FAILURES
    monkeypatch.undo()
    began = time.monotonic()
    assert asked(qtbot, reader, SIMPLE, SIMPLE) == [None, None]
    assert time.monotonic() - began < 5
    assert not reader.pid


def test_an_unused_process_ends(qtbot: QtBot, qapp: QApplication) -> None:
    brief = ReaderProcess("formulas", ReaderLimits(seconds=10.0, resident_bytes=1 << 30, idle_ms=50))
    asked(qtbot, brief, SIMPLE)
    pid = brief.pid
    qtbot.waitUntil(lambda: not brief.pid, timeout=WAIT_MS)
    assert not psutil.pid_exists(pid)
    assert isinstance(asked(qtbot, brief, SIMPLE)[0], Drawing)
    brief.close()


# A library that reads the file that a formula names, and says that there is not enough memory if it could
TAKEN_OVER = """
from types import SimpleNamespace

config = SimpleNamespace()
Math = None


def tex2mml(tex, inline):
    with open(tex, "rb") as file:
        file.read()
    raise MemoryError
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can confine a process")
def test_the_process_is_confined(
    qtbot: QtBot, reader: ReaderProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, folder = tmp_path / "library", tmp_path / "downloads"
    for module in ("__init__", "config", "tex", "zmath"):
        (library / "ziamath").mkdir(parents=True, exist_ok=True)
        (library / "ziamath" / f"{module}.py").write_text(TAKEN_OVER, "utf-8")
    secret = folder / "secret"
    folder.mkdir()
    secret.write_text("secret", "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(library))
    files = (library / "ziamath" / "tex.py", secret)
    replies = asked(qtbot, reader, *(DrawFormula(str(file), is_display=False) for file in files))
    assert replies == [Refusal("reader_heavy"), Refusal("formula_unknown")]  # read, and not allowed to
    lines = Path(f"/proc/{reader.pid}/status").read_text("ascii").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    assert psutil.Process(reader.pid).rlimit(psutil.RLIMIT_AS)[0] < 4 << 30
