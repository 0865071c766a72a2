"""A test that hangs is told by its name, also where it hears nothing, and the others are run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SWALLOWS = """
import asyncio
import pytest

@pytest.mark.timeout(1, func_only=True)
async def test_swallows():
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass

def test_after():
    pass
"""
DEAF = """
import ctypes
import pytest

@pytest.mark.timeout(1, func_only=True)
def test_deaf():
    list(map(ctypes.PyDLL(None).sleep, [50] * 9))  # a signal only ends one of them
"""
QUICK = """
def test_one():
    pass
"""
AS_HERE = """
import tests.conftest
import tests.hangs
from tests.conftest import *

tests.conftest.HANGS_AFTER_SECONDS = tests.hangs.LAST_WORD_SECONDS = 1.0
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="its timeouts end the process at once")
def test_what_hangs_is_told_and_not_tried_again(project: Path, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(AS_HERE)
    for number, text in enumerate((QUICK, SWALLOWS, DEAF, QUICK)):
        (tmp_path / f"test_{number}.py").write_text(text)
    config = ["-c", str(project / "pyproject.toml"), "--rootdir", str(tmp_path)]
    group = ["-n1", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *config, *group, str(tmp_path)],
        capture_output=True, text=True, timeout=200, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project)},
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "failed, 3 passed" in ended.stdout
    assert ended.stderr.count("test_1.py::test_swallows hung: it was ended after 2 s.") == 1
    assert "await asyncio.sleep(60)" in ended.stderr
    assert "in test_deaf" in ended.stderr
    assert "crashed while running 'test_2.py::test_deaf'" in ended.stdout
