"""A test that hangs ends the run with a trace, also where it hears no signal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

DEAF = """
import signal, time

def test_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(50)
"""


@pytest.fixture(scope="module")
def options(project: Path) -> dict[str, Any]:
    told = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    return dict(told["tool"]["pytest"]["ini_options"])


def test_no_test_may_take_longer_than_the_last_word(project: Path, options: dict[str, Any]) -> None:
    files = (project / "tests").rglob("test_*.py")
    found = re.compile(r"mark\.timeout\(([\d_]+)\)")
    marks = [int(one) for file in files for one in found.findall(file.read_text("utf-8"))]
    assert len(marks) > 10
    assert max(*marks, options["timeout"]) < options["faulthandler_timeout"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX; timeouts are threads there")
def test_what_hears_no_signal_is_ended_with_a_trace(project: Path, tmp_path: Path) -> None:
    deaf = tmp_path / "test_deaf.py"
    deaf.write_text(DEAF)
    config = ["-c", str(project / "pyproject.toml"), "--rootdir", str(tmp_path)]
    quick = ["-o", "faulthandler_timeout=1", "--timeout=1", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *config, *quick, str(deaf)],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert "in test_deaf" in ended.stderr


SWALLOWS = """
import asyncio

async def test_swallows():
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass

def test_after():
    pass
"""
AS_HERE = """
import tests.conftest
from tests.conftest import *

tests.conftest.HANGS_AFTER_SECONDS = 1.0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="its timeouts end the process at once")
def test_what_swallows_its_end_is_told_and_not_tried_again(project: Path, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(AS_HERE)
    (tmp_path / "test_swallows.py").write_text(SWALLOWS)
    config = ["-c", str(project / "pyproject.toml"), "--rootdir", str(tmp_path)]
    quick = ["--timeout=1", "-p", "no:cacheprovider", "-n1", "--dist", "loadfile"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *config, *quick, str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project)},
    )  # fmt: skip
    assert ended.returncode == 1
    assert "2 failed, 1 passed" in ended.stdout, "its call, its end, and the test after it"
    assert ended.stderr.count("test_swallows.py::test_swallows hung: it was ended after 2 s.") == 1
    assert "await asyncio.sleep(60)" in ended.stderr
