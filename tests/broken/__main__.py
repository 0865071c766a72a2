"""`python -m tests.broken --n 300 --from 0`: broken files, one after another, against two real nodes."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.broken.files import KINDS
from tests.broken.household import Household, household


async def many(home: Household, first: int, n: int, until_s: float, kinds: Sequence[str]) -> int:
    """Run many files, and return how many were reported wrongly."""
    await home.begin()
    ends, n_wrong = Counter[str](), 0
    for seed in range(first, first + n):
        if time.monotonic() > until_s:
            print(f"stopped before seed {seed}")
            break
        result = await home.run(seed, kinds)
        ends[result.end] += 1
        mark = "WRONG" if result.wrong else "ok"
        if result.wrong or not result.end.startswith("import"):
            print(f"{seed} {mark} {result.seconds:.1f} s, {result.what} | {result.end} | {result.sentence}", flush=True)
        for wrong in result.wrong:
            print("      ", wrong, flush=True)
        n_wrong += bool(result.wrong)
    for end, count in ends.most_common():
        print(f"{count:5} {end}")
    print(f"{sum(ends.values())} files, {n_wrong} told wrongly")
    return n_wrong


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m tests.broken", description=__doc__)
    words.add_argument("--n", type=int, default=300)
    words.add_argument("--from", type=int, default=0, dest="first")
    words.add_argument("--minutes", type=float, default=60.0)
    words.add_argument("--only", choices=KINDS, action="append")
    args = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="poolhouse-broken") as folder, household(Path(folder)) as home:
        until_s = time.monotonic() + 60 * args.minutes
        raise SystemExit(bool(asyncio.run(many(home, args.first, args.n, until_s, args.only or KINDS))))


if __name__ == "__main__":
    main()
