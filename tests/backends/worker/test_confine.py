"""Tests of what a confined worker can still reach: each way out is tried in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from backends import worker_orders
from backends.contract import Layers, Role
from backends.worker import confine
from testbed import tiny
from tests.backends import cutting
from tests.backends.worker_pipe import opened, worker

ROOT = Path(__file__).resolve().parents[3]
TRIED = """
told = {}

def tried(name, deed):
    try:
        deed()
        told[name] = "done"
    except OSError:
        told[name] = "refused"
"""
TRY = """
import json, os, socket, subprocess, sys
from backends.worker import confine, process_resources
own, others, home, parent = sys.argv[1:]
before = process_resources.resident_bytes()
told["level"] = confine.confine([own]).level

tried("read its own", lambda: open(own, "rb").read())
tried("write its own", lambda: open(own, "r+b"))
tried("read another", lambda: open(others, "rb"))
tried("list a home", lambda: os.listdir(home))
tried("write beside", lambda: open(own + ".new", "wb"))
tried("delete", lambda: os.remove(own))
tried("start a program", lambda: subprocess.run(["/bin/true"]))
for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        tried(f"{family} {kind}", lambda: socket.socket(getattr(socket, family), kind))
tried("signal its parent", lambda: os.kill(int(parent), 0))
tried("look into its parent", lambda: open(f"/proc/{parent}/environ", "rb").read())
import decimal, sqlite3, numpy  # code of Python's own and of libraries comes in as before
assert process_resources.resident_bytes() > before
print(json.dumps(told))
"""
has_all = pytest.mark.skipif(
    confine.supported_mechanisms().walls.level != confine.FULL, reason="needs Landlock and seccomp, as Linux has them"
)


def in_a_process(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`script`, which says last what came of all that it has `tried`, as JSON."""
    return subprocess.run(
        [sys.executable, "-P", "-c", TRIED + script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


@has_all
def test_it_reads_its_own_files_and_does_nothing_else(tmp_path: Path) -> None:
    own, other = tmp_path / "own.gguf", tmp_path / "other.gguf"
    for path in (own, other):
        path.write_bytes(b"GGUF")
    run = in_a_process(TRY, str(own), str(other), str(tmp_path), str(os.getpid()))
    assert run.returncode == 0, run.stderr
    data = json.loads(run.stdout)
    assert data.pop("level") == confine.FULL
    assert data.pop("read its own") == "done"
    assert len(data) == 16
    if confine.supported_mechanisms().landlock < 6:  # before, signals were not its business
        data.pop("signal its parent")
    assert set(data.values()) == {"refused"}, data
    assert own.read_bytes() == b"GGUF"
    assert not (tmp_path / "own.gguf.new").exists()


def test_what_a_system_lacks_is_told() -> None:
    means = [
        confine.Mechanisms(7, seccomp=True),
        confine.Mechanisms(0, seccomp=True),
        confine.Mechanisms(7, seccomp=False),
    ]
    assert [item.walls.level for item in means] == [confine.FULL, confine.PARTIAL, confine.PARTIAL]
    assert confine.Mechanisms(0, seccomp=False).walls.level == confine.NONE


@has_all
def test_a_rule_that_cannot_be_added_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its files cannot be read then, and nobody would know why."""
    link = tmp_path / "link"
    link.symlink_to(link)
    confine._allow(-1, str(tmp_path), 4)
    confine._allow(-1, str(link), 4)
    confine._allow(-1, str(tmp_path / "missing"), 4)  # needs none
    lines = capfd.readouterr().err.splitlines()
    assert lines == [
        f"this worker cannot be allowed to read {tmp_path}: Bad file descriptor",
        f"this worker cannot be allowed to read {link}: Too many levels of symbolic links",
    ]


@has_all
def test_a_worker_that_is_less_confined_than_it_could_be_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(confine.READS, "[]")
    monkeypatch.setattr(confine, "confine", lambda *_: confine.Restrictions(network=True))
    confine.confine_as_told()
    assert "files=False, network=True" in capfd.readouterr().err
    monkeypatch.setattr(confine, "confine", lambda *_: confine.supported_mechanisms().walls)
    confine.confine_as_told()
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has such a limit")
def test_the_system_itself_says_no_far_beyond_a_limit(tmp_path: Path) -> None:
    """The node looks four times a second; memory can be gone sooner."""
    path = tiny.llama(tmp_path / "whole.gguf", layers=2)
    config = cutting.config(path, Layers(0, 2), Role.WHOLE, 64)
    with worker() as pipe:
        held = psutil.Process(pipe.process.pid)
        assert held.rlimit(psutil.RLIMIT_DATA)[0] == psutil.RLIM_INFINITY
        assert isinstance(pipe.tell(opened(config, limit=64 << 20)), worker_orders.StageOpened)
        most = held.rlimit(psutil.RLIMIT_DATA)[0]
        requested = int(64 * 1.1) + 512 + config.threads * 16
        assert requested << 20 < most < (requested + 512) << 20


BESIDE = """
import ctypes, json, os, signal, sys, threading
from backends.worker import confine, process_resources
parent = int(sys.argv[1])
assert confine.start_nothing()

def fork():
    if os.fork() == 0:
        os._exit(0)

def by_number(number, *arguments):
    def call():
        if ctypes.CDLL(None, use_errno=True).syscall(number, *arguments) < 0:
            raise OSError(ctypes.get_errno(), "")
    return call

tried("fork", fork)
tried("posix_spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))
tried("signal", lambda: os.kill(parent, 0))
tried("signal a group", lambda: os.killpg(os.getpgid(parent), 0))
tried("open by its number", by_number(434, parent, 0))
tried("limit", lambda: __import__("resource").prlimit(parent, 7, (64, 64)))
if os.uname().machine == "x86_64":
    tried("vfork", by_number(58))
    tried("clone3", by_number(435, 0, 0))
    tried("trace", by_number(101, 16, parent, 0, 0))
    tried("signal a thread", by_number(234, parent, parent, 0))
    tried("read memory", by_number(310, parent, 0, 0, 0, 0, 0))
ran = []
thread = threading.Thread(target=lambda: ran.append(1))
thread.start()
thread.join()
with process_resources.limited_growth(1 << 30, mapped=True):
    import numpy
assert ran and numpy.ones((300, 300)).dot(numpy.ones((300, 300)))[0, 0] == 300
print(json.dumps(told), flush=True)
os.abort()
"""


@pytest.mark.skipif(not confine.supported_mechanisms().seccomp, reason="needs seccomp, as Linux has it")
def test_it_starts_no_process_and_reaches_into_none() -> None:
    """Nor does a kernel whose Landlock knows no signals let it; threads it has, and may end itself."""
    run = in_a_process(BESIDE, str(os.getpid()))
    assert run.stdout, run.stderr
    data = json.loads(run.stdout)
    assert len(data) >= 6
    assert set(data.values()) == {"refused"}, data
    assert run.returncode == -signal.SIGABRT, run.stderr
