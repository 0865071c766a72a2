"""The set-up's pure parts: what it makes of output, and the sentences for what stops it."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from scripts import setup, setup_errors
from scripts.progress import LOG_EVERY_SECONDS, Share, Teller, View, clock_face, compiled, doing, end, run
from scripts.setup_errors import Trouble, check_disk, explained


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("  [12/210] Building CXX object src/llama.cpp.o\n", Share(12, 210)),
        ("[210/210] Linking CXX shared library", Share(210, 210)),
        ("[211/210] impossible", None),
        ("[0/0] nothing", None),
        ("  Collecting numpy==2.4.6", None),
        ("-- Found OpenMP [1/2]", None),
        ("", None),
    ],
)
def test_ninja_lines_are_read(line: str, share: Share | None) -> None:
    assert compiled(line) == share


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Collecting aiohttp==3.14.5 (from -r run.txt (line 5))", "collecting aiohttp"),
        ("  Downloading numpy-2.4.6-cp311.whl (16 MB)", "downloading numpy-2.4.6-cp311.whl"),
        ("Installing collected packages: a, b", "installing"),
        ("Requirement already satisfied: rich", None),
    ],
)
def test_pip_lines_are_read(line: str, said: str | None) -> None:
    assert doing(line) == said


@pytest.mark.parametrize(("seconds", "face"), [(0, "0:00"), (7.9, "0:07"), (271, "4:31"), (3723, "1:02:03")])
def test_clock_face(seconds: float, face: str) -> None:
    assert clock_face(seconds) == face


def test_a_view_tells_what_was_heard_last_and_never_runs_back() -> None:
    view = View("engine")
    assert view.line(0) == "engine: starting, 0:00"
    view.hear("Collecting llama-cpp-python==0.3.36")
    assert view.line(1) == "engine: collecting llama-cpp-python, 0:01"
    for line in ("[1/200] a", "[90/200] b", "[89/200] late"):
        view.hear(line)
    assert view.line(112) == "engine: 45 % (90 of 200 files), 1:52"


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_now_and_then() -> None:
    now, out = [0.0], io.StringIO()
    teller = Teller(out, lambda: now[0])
    for second in range(40):
        now[0] = float(second)
        teller.show(f"at {second}")
    assert out.getvalue().split("\n")[:-1] == ["    at 15", "    at 30"]
    assert LOG_EVERY_SECONDS == 15


def test_a_terminal_gets_one_line_written_over() -> None:
    out = Screen()
    teller = Teller(out, lambda: 0.0)
    teller.show("one")
    teller.show("two")
    teller.wipe()
    assert "\n" not in out.getvalue()
    assert out.getvalue().endswith("\r")
    assert out.getvalue().index("one") < out.getvalue().index("two")


def test_run_gives_the_exit_code_and_all_output(capsys: pytest.CaptureFixture[str]) -> None:
    log = io.StringIO()
    command = [sys.executable, "-c", "print('[1/2] a'); print('[2/2] b'); raise SystemExit(3)"]
    assert run(command, setup.clean_environment(), "engine", log) == (3, "[1/2] a\n[2/2] b\n")
    assert "[2/2] b" in log.getvalue()
    assert capsys.readouterr().out == ""  # quicker than a log's first line


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_what_a_command_started_ends_with_it() -> None:
    code = "import subprocess; c = subprocess.Popen(['sleep', '60']); print(c.pid, flush=True); c.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stdout
        grandchild = psutil.Process(int(child.stdout.readline()))
        end(child)
    psutil.wait_procs([grandchild], timeout=10)
    assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", setup_errors.DISK_FULL),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS", setup_errors.WRONG_HASH),
        (
            "Retrying after 'NewConnectionError(…)'\nERROR: No matching distribution found for rich",
            setup_errors.NO_NETWORK,
        ),
        ("ERROR: No matching distribution found for aiohttp==3.14.5", setup_errors.NOT_OFFERED),
        ("g++: fatal error: Killed signal terminated program cc1plus", setup_errors.NO_MEMORY),
        ("No CMAKE_CXX_COMPILER could be found.", explained("CMAKE_C_COMPILER")),
        ("something new", None),
    ],
)
def test_what_failed_is_explained(output: str, sentence: str | None) -> None:
    assert explained(output) == sentence


def test_every_sentence_names_a_cure() -> None:
    sentences = [sentence for _, sentence in setup_errors.SENTENCES]
    for sentence in [*sentences, setup_errors.NO_VENV, *setup_errors.NO_COMPILER.values()]:
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert "\n" not in sentence


def test_a_full_disk_is_seen_before_anything_is_done(tmp_path: Path) -> None:
    check_disk(tmp_path, needs_bytes=1)
    with pytest.raises(Trouble, match="Free some space and start again"):
        check_disk(tmp_path, needs_bytes=1 << 60)


def test_no_compiler_is_said_with_its_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(Trouble, match="sudo apt-get install build-essential"):
        setup_errors.check_compiler()


def test_an_incomplete_python_is_said_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Trouble, match="python3-venv"):
        setup_errors.check_python()


PLAIN, RELEASE = setup.Build(rpc=True), setup.Build(rpc=False)


@pytest.mark.parametrize(
    ("report", "build", "wrong"),
    [
        ("loaded cpu-haswell cpu-x64 rpc", PLAIN, ""),
        ("loaded cpu-apple_m1 metal", RELEASE, ""),
        ("loaded cpu-haswell", PLAIN, "built without RPC"),
        ("loaded cpu-haswell rpc", RELEASE, "built with RPC"),
        ("loaded cpu rpc", PLAIN, "built for one kind of processor"),
        ("", PLAIN, "built so that it does not load"),
    ],
)
def test_an_engine_of_other_flags_is_seen(report: str, build: setup.Build, wrong: str) -> None:
    assert setup.built_wrongly(report, build) == wrong


def test_the_engine_here_is_built_as_requested() -> None:
    assert "" in {setup.built_wrongly(setup.engine_says(), build) for build in (PLAIN, RELEASE)}


def test_stamps_change_with_what_they_depend_on() -> None:
    here = setup.wanted_stamps(dev=True, build=PLAIN, python="3.11")
    assert here == setup.wanted_stamps(dev=True, build=PLAIN, python="3.11")
    other_python = setup.wanted_stamps(dev=True, build=PLAIN, python="3.12")
    assert all(here[step] != other_python[step] for step in here)
    stamps = setup.wanted_stamps(dev=True, build=RELEASE, python="3.11")
    assert {step for step in here if here[step] != stamps[step]} == {"engine"}
    assert set(here) - set(setup.wanted_stamps(dev=False, build=PLAIN, python="3.11")) == {"tools"}


def test_an_unreadable_stamp_file_means_start_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "STAMPS", tmp_path / "stamps.json")
    assert setup.read_stamps() == {}
    setup.write_stamps({"engine": "1"})
    assert setup.read_stamps() == {"engine": "1"}
    setup.STAMPS.write_text("[", encoding="utf-8")
    assert setup.read_stamps() == {}


def test_an_empty_home_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    environment = setup.clean_environment()
    assert "HOME" not in environment
    assert "PYTHONPATH" not in environment


def test_the_last_line_that_says_something() -> None:
    assert setup.last_line("a\nERROR: no\n\n") == "ERROR: no."
    assert setup.last_line("") == "no reason was given."


def test_who_stops_it_is_told_what_begins_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(setup, "set_up", stopped)
    monkeypatch.setattr(setup, "STAMPS", tmp_path / "stamps.json")
    monkeypatch.setattr(sys, "argv", ["setup"])
    try:
        assert setup.main() == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "a half compiled engine begins anew" in capsys.readouterr().err


def test_an_old_python_is_told_so_in_one_sentence(project: Path) -> None:
    code = (
        "import sys; sys.version_info = (3, 9, 2); sys.argv = ['setup']\n"
        f"exec(compile(open({str(project / 'scripts' / 'setup.py')!r}).read(), 'setup.py', 'exec'))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("Poolhouse needs Python 3.11 or newer; this is 3.9.")
    assert result.stderr.count("\n") == 1
