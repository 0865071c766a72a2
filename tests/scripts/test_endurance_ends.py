"""A long run that is interrupted leaves no window and no screen behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

SCRIPT = """
import asyncio, subprocess, sys
from pathlib import Path
from app.cli.demo_nodes import DemoNode
from scripts.endurance.__main__ import until_ended
from scripts.endurance.household import used

WINDOW = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"
GUEST = "import sys; sys.stdin.read()"

async def run():
    guest = await asyncio.create_subprocess_exec(sys.executable, "-c", GUEST, stdin=subprocess.PIPE)
    node = DemoNode("den", Path(sys.argv[1]), guest, {})
    return await used(node, node, [sys.executable, "-c", WINDOW])

asyncio.run(until_ended(run()))
"""
ENDS_S = 60


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes without asking")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_run_that_is_interrupted(sign: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        assert int(run.stdout.readline())
        children = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(sign)
        run.wait(ENDS_S)
    _, alive = psutil.wait_procs(children, timeout=ENDS_S)
    for process in alive:
        process.kill()
    assert not alive
