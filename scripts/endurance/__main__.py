"""`make endure`: nodes and a screen in one process, the window on it in another; its verdict is the exit status."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from app.machine.paths import Home

MINUTES = 30.0


async def run(minutes: float, table: Path) -> int:
    """Both halves."""
    from scripts.endurance.household import household, used

    words = [sys.executable, "-m", "scripts.endurance", "--minutes", str(minutes)]
    async with household() as nodes:
        return await used(nodes[0], nodes[-1], [*words, "--to", str(table), "--of"])


def main() -> int:
    words = argparse.ArgumentParser(prog="scripts.endurance", description=__doc__)
    words.add_argument("--minutes", type=float, default=MINUTES, help="how long the window is used")
    words.add_argument(
        "--to", type=Path, default=Path("build/endurance.md"), help="the table's file"
    )
    words.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    told = words.parse_args()
    if told.of is None:
        return asyncio.run(run(told.minutes, told.to.absolute()))
    from scripts.endurance.driver import drive

    return drive(Home.at(told.of), told.minutes * 60, told.to)


if __name__ == "__main__":
    sys.exit(main())
