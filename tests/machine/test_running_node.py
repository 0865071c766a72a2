"""One holder for each home, and none once it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.machine import running_node
from app.machine.running_node import HomeLock


def test_one_holds_it_at_a_time(tmp_path: Path) -> None:
    first, second = HomeLock(tmp_path / "node.lock"), HomeLock(tmp_path / "node.lock")
    assert first.acquire()
    assert first.acquire()  # its own already
    assert not second.acquire()
    first.release()
    first.release()
    assert second.acquire()
    second.release()


def test_a_process_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from app.machine.running_node import HomeLock\n"
        f"lock = HomeLock(Path({str(tmp_path / 'node.lock')!r}))\n"
        "print(lock.acquire(), flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert not HomeLock(tmp_path / "node.lock").acquire()
        holder.kill()
    own = HomeLock(tmp_path / "node.lock")
    assert own.acquire()
    own.release()


@pytest.mark.skipif(sys.platform == "win32", reason="there no open file can be deleted")
def test_a_lock_whose_file_is_gone_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two processes hold one each: of the old file and of the new one."""
    path = tmp_path / "node.lock"
    first, second, third = (HomeLock(path) for _ in range(3))
    assert first.acquire()
    plain = running_node._lock

    def late(file: int) -> None:  # it opened the file before that was taken away
        monkeypatch.setattr(running_node, "_lock", plain)
        first.remove()
        plain(file)

    monkeypatch.setattr(running_node, "_lock", late)
    assert not second.acquire()
    assert third.acquire()
    assert not second.acquire()
    third.remove()
    assert not path.exists()


def test_a_file_system_without_locks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(file: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("app.machine.running_node._lock", none)
    own = HomeLock(tmp_path / "node.lock")
    assert own.acquire()
    own.release()


def test_a_number_that_another_process_has_by_now_is_no_node(tmp_path: Path) -> None:
    """Removal would otherwise refuse after a crash, for as long as that process runs."""
    path = tmp_path / "runtime.json"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        running_node.write(path, running_node.Runtime(other.pid, 1, "", "1"))
        assert running_node.read(path) is not None
        an_hour_ago = path.stat().st_mtime - 3600
        os.utime(path, (an_hour_ago, an_hour_ago))
        assert running_node.read(path) is None
    assert running_node.read(path) is None


def test_a_clock_that_was_set_hides_no_node(tmp_path: Path) -> None:
    """Its process then seems to have begun after the file was written."""
    path = tmp_path / "runtime.json"
    with subprocess.Popen([sys.executable, "-c", "input()", "-m", "app", "node"], stdin=subprocess.PIPE) as node:
        running_node.write(path, running_node.Runtime(node.pid, 1, "", "1"))
        os.utime(path, (1e9, 1e9))
        assert running_node.read(path) is not None
