"""`make faults`: the matrix of faults and attacks on real processes, kept in a book and written as a table."""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic

from tests.faults import (
    cables,
    cases,
    clocks,
    host,
    network,
    proofs,
    security,
    sieges,
    sleeps,
    slowed,
    soak,
    wanted,
    wiretap,
)
from tests.faults.book import Book, load
from tests.faults.household import N_TOKENS, NeverStruck, together
from tests.faults.outcome import PAGE, Kind, Outcome, spread
from tests.faults.report import written
from tests.faults.security import Stronghold
from tests.simulation import page
from tests.simulation import soak as simulation

ROOT = Path(__file__).parents[2]
TABLE, BOOK = ROOT / PAGE, ROOT / "docs" / "faults.jsonl"
SEEDS = 1 << 31
FULL = wanted.FULL
PROCESSES = ("kills", "stops", "twos", "host", "slowed")  # one household serves them all
PARTS = (*PROCESSES, "clocks", "sleeps", "network", "security", "tests")
MISSES = 3  # runs in a row that strike nobody: then the row has failed


class Matrix:
    """The book, and how much of the matrix is to be done until when. `names`: words that a run's name has."""

    def __init__(
        self, book: Book, n: int, seconds: float, rows: Collection[str] = (), names: Collection[str] = (), seed: int = 0
    ) -> None:
        self._book, self._n, self._ends_at = book, n, monotonic() + seconds
        self._rows, self._names = frozenset(rows), frozenset(names)  # none: all
        self._seed, self._seeds = seed, random.Random(seed)

    def add(self, outcome: Outcome) -> None:
        self._book.add(outcome)
        sign = "ok  " if outcome.passed and outcome.in_time else "late" if outcome.passed else "FAIL"
        text = ", ".join(
            f"{name} {value:.2f} s"
            for name, value in (("told", outcome.said_s), ("goes on", outcome.next_token_s))
            if value is not None
        )
        facts = ", ".join(f"{name} {value:.4g}" for name, value in outcome.facts.items())
        number = len(self._book.outcomes)
        print(
            f"{number:4} {sign if outcome.struck else 'miss'} {': '.join(outcome.kind)}: {text} {facts} {outcome.why}",
            flush=True,
        )
        self.write()

    def write(self) -> None:
        """The page, of all that the book has."""
        simulated = page.section(simulation.written())
        text = written(self._book.outcomes, N_TOKENS, wanted.every_kind(), simulated)
        TABLE.write_text(text, "utf-8")

    async def all_of(self, chosen: set[str]) -> None:
        """One part after the other, each in a household of its own."""
        works: list[Callable[[Path], Awaitable[None]]] = []
        if chosen & set(PROCESSES):
            works.append(lambda folder: self.processes(folder, chosen))
        rest = (self.clocks, self.sleeps, self.network, self.security)
        works += [work for work in rest if work.__name__ in chosen]
        if proofs.PHASE in chosen:
            rows = Counter(proof.kind for proof in proofs.PROOFS)
            await self.each(rows, lambda kind: proofs.run(proofs.BY_NAME[kind]))
        for work in works:
            with tempfile.TemporaryDirectory() as folder:
                await work(Path(folder))

    async def each(self, rows: Counter[Kind], run: Callable[[Kind], Awaitable[Outcome]]) -> None:
        """All that is missing, in any order, of each kind about as many at any time."""
        while (left := self._left(rows)) and monotonic() < self._ends_at:
            most = max(count / rows[kind] for kind, count in left.items())
            ripe = [kind for kind, count in left.items() if count / rows[kind] >= most - 1e-9]
            kind = random.choice(ripe)
            try:
                await self.one(partial(run, kind))
            except NeverStruck:
                gives_up = self._book.missed_in_a_row(kind) + 1 >= MISSES
                why = f"nobody was struck, {MISSES} times in a row" if gives_up else ""
                self.add(Outcome(*kind, not gives_up, why, in_time=not gives_up, struck=False))

    async def one(self, run: Callable[[], Awaitable[Outcome]]) -> None:
        """Run one case with its own seed, so that each can be repeated. The first has the seed of the call."""
        seed, self._seed, busy = self._seed, self._seeds.randrange(SEEDS), load()
        random.seed(seed)
        self.add(replace(await run(), seed=seed, load=busy))

    def _left(self, rows: Counter[Kind]) -> Counter[Kind]:
        """Return the remaining runs of these. If there are none, no household is started for them."""
        missing = self._book.missing(rows)
        return Counter({kind: n for kind, n in missing.items() if self._wants(kind)})

    def _wants(self, kind: Kind) -> bool:
        named = not self._names or any(name in kind[1] for name in self._names)
        return named and (not self._rows or kind[0] in self._rows)

    def share(self, parts: Sequence[wanted.Part[wanted.K]]) -> tuple[Counter[Kind], dict[Kind, wanted.K]]:
        """Return how many runs of each kind these parts make, and the kinds."""
        rows = Counter[Kind]()
        for part in parts:
            rows += spread([kind.kind for kind in part.kinds], round(self._n * part.share))
        return rows, {kind.kind: kind for part in parts for kind in part.kinds}

    async def processes(self, folder: Path, chosen: set[str]) -> None:
        rows, known = self.share([part for part in wanted.processes() if part.name in chosen])
        slow_rows, slow = self.share([wanted.slowness()] if "slowed" in chosen else [])
        if slowed.can_be():
            rows += slow_rows
        if "host" in chosen:
            rows[host.KIND] = max(1, self._n // 6)
        if not self._left(rows):
            return
        with together(folder) as home:

            async def run(kind: Kind) -> Outcome:
                if kind == host.KIND:
                    return await host.run(home)
                if kind in slow:
                    return await slowed.run(home, slow[kind])
                return await cases.run(home, known[kind])

            await self.each(rows, run)

    async def clocks(self, folder: Path) -> None:
        rows, known = self.share([wanted.times()])
        rows = Counter({kind: n for kind, n in rows.items() if clocks.can_be(known[kind])})
        if not self._left(rows):
            return
        with together(folder, clocks.Clocked) as home:
            assert isinstance(home, clocks.Clocked)
            await self.each(rows, lambda kind: clocks.run(home, known[kind]))

    async def sleeps(self, folder: Path) -> None:
        if not sleeps.can_be():
            print("sleeps: left out, as they need a D-Bus daemon and systemd-inhibit", flush=True)
            return
        rows, known = self.share([wanted.going()])
        if not self._left(rows):
            return
        with together(folder, sleeps.Drowsy) as home:
            assert isinstance(home, sleeps.Drowsy)
            await self.each(rows, lambda kind: sleeps.run(home, known[kind]))

    async def network(self, folder: Path) -> None:
        if not cables.can_be():
            print("network: left out, as it needs Linux and root", flush=True)
            return

        async def tapped(_: Kind) -> Outcome:
            with tempfile.TemporaryDirectory() as own:
                return await wiretap.alone(Path(own))

        await self.each(Counter({wiretap.KIND: max(1, self._n // 30)}), tapped)
        rows, known = self.share(wanted.lines())
        if not self._left(rows):
            return
        with together(folder, cables.Cabled) as home:
            assert isinstance(home, cables.Cabled)
            await self.each(rows, lambda kind: network.run(home, known[kind]))

    async def security(self, folder: Path) -> None:
        every = [siege for siege in sieges.sieges(self._n / FULL) if self._wants(siege.kind)]
        left = [siege for siege in every if not self._book.holds_siege(siege.kind, siege.n)]
        if not left:
            return
        lanes = sieges.beside(left)
        with security.stronghold(folder) as hold:
            await security.ready(hold)
            if lanes:
                async with hold.answering(), asyncio.TaskGroup() as group:
                    for place, some in lanes.items():
                        group.create_task(self.in_turn(hold, some), name=place)
            beside = [siege for some in lanes.values() for siege in some]
            await self.in_turn(hold, [siege for siege in left if siege not in beside])

    async def in_turn(self, hold: Stronghold, some: Iterable[sieges.Siege]) -> None:
        for siege in some:
            if monotonic() < self._ends_at:
                await self.one(partial(siege.run, hold))


async def soaked(matrix: Matrix, minutes: float, every_s: float) -> None:
    """F13, in a household of its own."""
    with tempfile.TemporaryDirectory() as folder, together(Path(folder)) as home:
        await matrix.one(partial(soak.run, home, 60 * minutes, every_s))


def main() -> None:
    words = argparse.ArgumentParser(prog="make faults", description=__doc__)
    words.add_argument("--n", type=int, default=FULL, help="runs of F1; the other rows in proportion")
    words.add_argument("--only", choices=PARTS, action="append", help="this part; can be repeated")
    words.add_argument("--row", action="append", help="this row, as F3; can be repeated")
    words.add_argument("--name", action="append", help="runs whose name has this; can be repeated")
    words.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after so many")
    words.add_argument("--soak", type=float, default=0.0, help="F13 for so many minutes, and nothing else")
    words.add_argument("--every", type=float, default=soak.EVERY_SECONDS, help="seconds between the soak's faults")
    words.add_argument("--resume", action="store_true", help="only what the book lacks; else all of it once more")
    words.add_argument("--page", action="store_true", help="run nothing: only write the page, from the book")
    words.add_argument("--seed", type=int, default=random.randrange(SEEDS), help="of the first run, from its line")
    args = words.parse_args()
    print(f"seed {args.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # namespaces and nodes end with us
    book = Book(BOOK, goes_on=args.resume)
    rows, names = args.row or (), args.name or ()
    matrix = Matrix(book, args.n, 60 * args.minutes, rows, names, args.seed)
    if args.page:
        return matrix.write()
    chosen = set(args.only or PARTS)
    coroutine = soaked(matrix, args.soak, args.every) if args.soak else matrix.all_of(chosen)
    asyncio.run(coroutine)
    raise SystemExit(any(not outcome.passed for outcome in book.made))


if __name__ == "__main__":
    main()
