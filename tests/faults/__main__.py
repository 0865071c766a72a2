"""`make faults`: the fault matrix on real processes, written as a table."""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import tempfile
import time
from pathlib import Path

from tests.faults.cases import Case, Result, killed, run, stopped, twice
from tests.faults.household import N_TOKENS, together
from tests.faults.report import written

TABLE = Path(__file__).parents[2] / "docs" / "faults.md"
FULL = 300  # of F1, as SAFETY.md 9 has it; the other rows in proportion


def chosen(n: int) -> list[Case]:
    """So many of F1, a third of each kind of F2 and of F7, mixed."""
    third = max(1, n // 3)
    kinds = [
        (killed(), n), (stopped(2), third), (stopped(4), third), (stopped(math.inf), third),
        (twice(), third),
    ]  # fmt: skip
    cases = [case for kind, count in kinds for case in (kind * (count // len(kind) + 1))[:count]]
    random.shuffle(cases)
    return cases


async def all_of(cases: list[Case], seconds: float) -> list[Result]:
    results: list[Result] = []
    ends_at = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, together(Path(folder)) as home:
        for number, case in enumerate(cases):
            if time.monotonic() > ends_at:
                break
            found = await run(home, case)
            results.append(found)
            sign = "ok  " if found.passed else "FAIL"
            print(
                f"{number + 1:4} {sign} {case.row} {case.name}, {case.phase}: "
                f"told {found.said_s:.2f} s, goes on {found.next_token_s:.2f} s {found.why}",
                flush=True,
            )
            TABLE.parent.mkdir(exist_ok=True)
            TABLE.write_text(written(results, N_TOKENS), "utf-8")
    return results


def main() -> None:
    words = argparse.ArgumentParser(prog="make faults", description=__doc__)
    words.add_argument("--n", type=int, default=FULL, help="runs of F1")
    words.add_argument("--minutes", type=float, default=math.inf, help="end after so many")
    words.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    given = words.parse_args()
    print(f"seed {given.seed}")
    random.seed(given.seed)
    results = asyncio.run(all_of(chosen(given.n), 60 * given.minutes))
    raise SystemExit(any(not one.passed for one in results))


if __name__ == "__main__":
    main()
