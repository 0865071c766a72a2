"""`make hostile`: hostile members and strangers, seeded; each run is kept in a book, and all are written as a table."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from time import monotonic

from tests.faults.book import Book, load
from tests.faults.outcome import Kind, Outcome
from tests.hostile import lab, report

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "docs" / "hostile.jsonl"  # its page lies beside it
FULL = 1000
RESTART_EVERY = 10  # runs, after which a node must start again, in turn; all of them at the end
SEEDS = 1 << 31


def chosen(roles: Sequence[str], names: Sequence[str]) -> list[Kind]:
    return [
        kind
        for kind in lab.kinds()
        if (not roles or kind[0] in roles) and (not names or any(name in kind[1] for name in names))
    ]


class Runs:
    """The requested number of runs, spread evenly over all kinds, in an order set by the seed."""

    def __init__(self, book: Book, page: Path, seed: int, seconds: float, only_seed: int | None = None) -> None:
        self._book, self._page = book, page
        self._chance, self._only_seed = random.Random(seed), only_seed
        self._ends_at = monotonic() + seconds

    async def all_of(self, kinds: Sequence[Kind], n: int) -> None:
        each, more = divmod(n, len(kinds))
        todo = [kind for number, kind in enumerate(kinds) for _ in range(each + (number < more))]
        self._chance.shuffle(todo)
        with tempfile.TemporaryDirectory() as folder:
            await self._admins([kind for kind in todo if kind[0] == "admin"], Path(folder))
            rest = [kind for kind in todo if kind[0] != "admin"]
            if rest and monotonic() < self._ends_at:
                async with lab.laboratory(Path(folder) / "lab") as made:
                    await self._others(made, rest, Path(folder))

    async def _admins(self, todo: Sequence[Kind], folder: Path) -> None:
        for number, kind in enumerate(todo):
            if monotonic() < self._ends_at:
                await self._one(None, kind, folder / f"admin-{number}")

    async def _others(self, made: lab.Lab, todo: Sequence[Kind], folder: Path) -> None:
        turns = cycle(lab.NAMES)
        for number, kind in enumerate(todo, 1):
            if monotonic() >= self._ends_at:
                return
            again = [next(turns)] if number % RESTART_EVERY == 0 else []
            await self._one(made, kind, folder, lab.NAMES if number == len(todo) else again)

    async def _one(self, made: lab.Lab | None, kind: Kind, folder: Path, again: Sequence[str] = ()) -> None:
        drawn, busy = self._chance.randrange(SEEDS), load()
        seed = drawn if self._only_seed is None else self._only_seed
        began = monotonic()
        outcome = await lab.run(made, kind, seed, folder, again)
        facts = outcome.facts | {"took_s": monotonic() - began}
        self._add(replace(outcome, load=busy, facts=facts))

    def _add(self, outcome: Outcome) -> None:
        self._book.add(outcome)
        sign = "ok  " if outcome.passed and outcome.in_time else "late" if outcome.passed else "FAIL"
        facts = ", ".join(f"{name} {value:.4g}" for name, value in outcome.facts.items() if value)
        print(
            f"{len(self._book.outcomes):4} {sign} {outcome.row}: {outcome.name} ({outcome.seed}): "
            f"{facts} {outcome.why}",
            flush=True,
        )
        write_page(self._book, self._page)


def write_page(book: Book, page: Path) -> None:
    page.write_text(report.written(book.outcomes, lab.kinds()), "utf-8")


def main() -> None:
    words = argparse.ArgumentParser(prog="make hostile", description=__doc__)
    words.add_argument("--n", type=int, default=FULL, help="runs in all, spread evenly over the kinds")
    words.add_argument("--role", choices=tuple(lab.ROLES), action="append", help="only of these; can be repeated")
    words.add_argument("--name", action="append", help="only kinds whose name has this; can be repeated")
    words.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after so many")
    words.add_argument("--seed", type=int, default=random.randrange(SEEDS), help="of the order, and of each run")
    words.add_argument("--page", action="store_true", help="run nothing: only write the page, from the book")
    words.add_argument(
        "--book", type=Path, default=BOOK, help="where runs are kept: two that run beside each other have two"
    )
    words.add_argument(
        "--merge", type=Path, nargs="+", default=[], help="run nothing: add these books to it, and write the page"
    )
    words.add_argument("--one", type=int, help="one run with this seed, from its line")
    args = words.parse_args()
    book, page = Book(args.book, goes_on=True), args.book.with_suffix(".md")
    if args.page or args.merge:
        book.take(line for item in args.merge for line in item.read_text("utf-8").splitlines() if line)
        write_page(book, page)
        return
    os.environ["POOLHOUSE_KEYSTORE"] = "file"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nodes end with us
    kinds = chosen(args.role or (), args.name or ())
    runs = Runs(book, page, args.seed, 60 * args.minutes, args.one)
    print(f"seed {args.seed}, {len(kinds)} kinds", flush=True)
    asyncio.run(runs.all_of(kinds, 1 if args.one is not None else args.n))
    raise SystemExit(any(not outcome.passed for outcome in book.made))


if __name__ == "__main__":
    main()
