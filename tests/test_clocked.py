"""A program whose clocks others set: it is told what they want, from the moment they want it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.clocked import has_time_namespaces

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")

ROOT = Path(__file__).parents[1]
TELLER = """
import asyncio, json, sys, time

for _ in sys.stdin:
    walls = [time.time(), time.time_ns() / 1e9, time.mktime(time.localtime())]
    since = [time.monotonic(), time.monotonic_ns() / 1e9, asyncio.new_event_loop().time()]
    print(json.dumps([sys.argv[1:], walls, since]), flush=True)
"""
NEAR_S = 10.0  # of a machine with much else to do


class Teller:
    """Says what time it is for it: of the clocks on the wall, and of those since the start."""

    def __init__(self, process: subprocess.Popen[str], file: Path) -> None:
        self._process, self._file = process, file

    def set(self, wall_s: float, since_s: float) -> None:
        self._file.write_text(json.dumps({"wall_s": wall_s, "since_s": since_s}))
        self._process.send_signal(signal.SIGUSR1)
        late = time.monotonic() + NEAR_S
        while self._file.exists():
            assert time.monotonic() < late
            time.sleep(0.001)

    def off(self) -> tuple[list[float], list[float]]:
        """Return the offsets of the clocks."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        words, walls, since = json.loads(self._process.stdout.readline())
        assert words == ["a word"]
        return [at - time.time() for at in walls], [at - time.monotonic() for at in since]


@contextmanager
def teller(folder: Path, ahead_s: int) -> Iterator[Teller]:
    (folder / "teller.py").write_text(TELLER, "utf-8")
    file = folder / "clock"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.clocked", str(file), str(ahead_s), "--",
         sys.executable, "-m", "teller", "a word"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(folder)))},
    ) as process:  # fmt: skip
        try:
            yield Teller(process, file)
        finally:
            process.kill()


def test_clocks_are_off_as_they_were_told(tmp_path: Path) -> None:
    with teller(tmp_path, 0) as item:
        assert [*map(sum, item.off())] == pytest.approx([0.0, 0.0], abs=3 * NEAR_S)
        item.set(-3.2e8, 3600.0)
        walls, since = item.off()
        assert walls == pytest.approx([-3.2e8] * 3, abs=NEAR_S)
        assert since == pytest.approx([3600.0] * 3, abs=NEAR_S)
        item.set(0.0, 3600.0)
        assert item.off()[0] == pytest.approx([0.0] * 3, abs=NEAR_S)


@pytest.mark.root
def test_a_machine_may_believe_that_it_was_started_long_ago(tmp_path: Path) -> None:
    if not has_time_namespaces():
        pytest.skip("a kernel without time namespaces")
    with teller(tmp_path, 320_000_000) as item:
        walls, since = item.off()
        assert walls == pytest.approx([0.0] * 3, abs=NEAR_S)
        assert since == pytest.approx([3.2e8] * 3, abs=NEAR_S)
