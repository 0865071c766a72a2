"""`python -m tests.simulation SEED …` plays seeds and tells each story; `--count 10000` only says which went wrong."""

from __future__ import annotations

import argparse
import json
import logging
import os
from dataclasses import asdict
from time import monotonic

from tests.simulation import soak
from tests.simulation.judge import Tally, check
from tests.simulation.world import told


def play(seeds: list[int]) -> None:
    """Each with its story. Raises AssertionError at the first that goes wrong."""
    for seed in seeds:
        story = told(seed)
        print(story)
        check(story)


def many(first: int, count: int, n_workers: int, minutes: float, *, resume: bool) -> bool:
    """Run many stories, and return whether all succeeded. They are recorded for the page of `make faults`."""
    if not resume:
        soak.BOOK.unlink(missing_ok=True)
    began, wrong, n, answers = monotonic(), list[str](), 0, Tally()
    todo = soak.batches(first, count, soak.written())
    print(f"{sum(size for _, size in todo)} seeds to play, from {first} on", flush=True)
    for batch in soak.soaked(todo, n_workers):
        n += batch.n
        wrong += batch.wrong
        answers += batch.answers
        for seed, why in batch.wrong.items():
            print(f"seed {seed}: {why}", flush=True)
        pace = (monotonic() - began) / n
        print(f"{n} seeds, {len(wrong)} wrong, {1000 * pace:.0f} ms a seed", flush=True)
        if monotonic() - began > 60 * minutes:
            break
    print(f"seeds that went wrong: {', '.join(wrong) or 'none'}; {answers} {answers.why}")
    return not wrong and not answers.why


def main() -> None:
    words = argparse.ArgumentParser(prog="make soak", description=__doc__)
    words.add_argument("seeds", nargs="*", type=int, help="to be told one by one")
    words.add_argument("--from", dest="first", type=int, default=0, help="the first of many")
    words.add_argument("--count", type=int, default=0, help="how many")
    words.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    words.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after so many")
    words.add_argument("--batch", type=int, nargs=2, help="a first seed and how many: as JSON")
    words.add_argument("--resume", action="store_true", help="leave out what the book has")
    args = words.parse_args()
    if args.batch:
        logging.disable(logging.WARNING)  # what is lost in its stories is expected
        return print(json.dumps(asdict(soak.played(*args.batch))))
    if not args.count:
        return play(args.seeds or [0])
    good = many(args.first, args.count, args.workers, args.minutes, resume=args.resume)
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
