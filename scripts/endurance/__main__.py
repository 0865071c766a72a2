"""`make endure`: runs nodes and a screen in one process, and the window in another. The exit code is the verdict."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path

from app.machine.paths import Home

MINUTES = 30.0
INTERRUPTED = 130  # the exit code of shells


async def run(minutes: float, table: Path) -> int:
    """Run both processes."""
    from scripts.endurance.household import household, used

    words = [sys.executable, "-m", "scripts.endurance", "--minutes", str(minutes)]
    async with household() as nodes:
        return await used(nodes[0], nodes[-1], [*words, "--to", str(table), "--of"])


async def until_ended(work: Coroutine[object, object, int]) -> int:
    """Run the coroutine to its end. SIGTERM is handled like Ctrl+C, so that no process is left behind."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def main() -> int:
    words = argparse.ArgumentParser(prog="scripts.endurance", description=__doc__)
    words.add_argument("--minutes", type=float, default=MINUTES, help="how long the window is used")
    words.add_argument("--to", type=Path, default=Path("build/endurance.md"), help="the table's file")
    words.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    options = words.parse_args()
    if options.of is None:
        try:
            return asyncio.run(until_ended(run(options.minutes, options.to.absolute())))
        except (KeyboardInterrupt, asyncio.CancelledError):
            return INTERRUPTED
    from scripts.endurance.driver import drive

    return drive(Home.at(options.of), options.minutes * 60, options.to)


if __name__ == "__main__":
    sys.exit(main())
