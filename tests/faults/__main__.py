"""`make faults`: the matrix of faults and attacks on real processes, written as a table."""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TypeVar

from tests.faults import cables, cases, host, network, proofs, security, slow, soak, wanted, wiretap
from tests.faults.household import N_TOKENS, NeverStruck, together
from tests.faults.outcome import PAGE, Book, Kind, Outcome, spread
from tests.faults.report import written

ROOT = Path(__file__).parents[2]
TABLE, BOOK = ROOT / PAGE, ROOT / "build" / "faults.jsonl"
FULL = 300  # of F1, as SAFETY.md 9 has it; the other rows in proportion
PROCESSES = ("kills", "stops", "twos", "host")  # one household serves them all
PARTS = (*PROCESSES, "network", "security", "tests")
MISSES = 3  # runs in a row that strike nobody: then the row has failed
K = TypeVar("K", bound="cases.Case | network.Trouble")


class Matrix:
    """The book, and how much of the matrix is to be done until when."""

    def __init__(self, book: Book, n: int, seconds: float) -> None:
        self._book, self._n, self._ends_at = book, n, monotonic() + seconds

    def add(self, found: Outcome) -> None:
        self._book.add(found)
        sign = "ok  " if found.passed and found.in_time else "late" if found.passed else "FAIL"
        told = ", ".join(
            f"{name} {value:.2f} s"
            for name, value in (("told", found.said_s), ("goes on", found.next_token_s))
            if value is not None
        )
        facts = ", ".join(f"{name} {value:.4g}" for name, value in found.facts.items())
        number = len(self._book.outcomes)
        print(
            f"{number:4} {sign if found.struck else 'miss'} {': '.join(found.kind)}: {told} {facts} {found.why}",
            flush=True,
        )
        TABLE.write_text(written(self._book.outcomes, N_TOKENS, wanted.every_kind()), "utf-8")

    async def all_of(self, chosen: set[str]) -> None:
        """One part after the other, each in a household of its own."""
        works: list[Callable[[Path], Awaitable[None]]] = []
        if chosen & set(PROCESSES):
            works.append(lambda folder: self.processes(folder, chosen))
        works += [work for work in (self.network, self.security) if work.__name__ in chosen]
        if proofs.PHASE in chosen:
            rows = Counter(proof.kind for proof in proofs.PROOFS)
            await self.each(rows, lambda kind: proofs.run(proofs.BY_NAME[kind]))
        for work in works:
            with tempfile.TemporaryDirectory() as folder:
                await work(Path(folder))

    async def each(self, rows: Counter[Kind], run: Callable[[Kind], Awaitable[Outcome]]) -> None:
        """All that is missing, in any order, of each kind about as many at any time."""
        left = self._book.missing(rows)
        while left.total() and monotonic() < self._ends_at:
            most = max(count / rows[kind] for kind, count in left.items())
            ripe = [kind for kind, count in left.items() if count / rows[kind] >= most - 1e-9]
            kind = random.choice(ripe)
            try:
                self.add(await run(kind))
            except NeverStruck:
                gives_up = self._book.missed_in_a_row(kind) + 1 >= MISSES
                why = f"nobody was struck, {MISSES} times in a row" if gives_up else ""
                self.add(Outcome(*kind, not gives_up, why, in_time=not gives_up, struck=False))
            left = self._book.missing(rows)

    def share(self, kinds: Sequence[K], part: float) -> Counter[Kind]:
        """This part of all runs, over these kinds."""
        return spread([one.kind for one in kinds], round(self._n * part))

    async def processes(self, folder: Path, chosen: set[str]) -> None:
        parts = [part for part in wanted.processes() if part.name in chosen]
        known = {one.kind: one for part in parts for one in part.kinds}
        rows = sum((self.share(part.kinds, part.share) for part in parts), Counter[Kind]())
        if "host" in chosen:
            rows[host.KIND] = max(1, self._n // 6)
        with together(folder) as home:

            async def run(kind: Kind) -> Outcome:
                if kind == host.KIND:
                    return await host.run(home)
                return await cases.run(home, known[kind])

            await self.each(rows, run)

    async def network(self, folder: Path) -> None:
        async def tapped(_: Kind) -> Outcome:
            with tempfile.TemporaryDirectory() as own:
                return await wiretap.alone(Path(own))

        await self.each(Counter({wiretap.KIND: max(1, self._n // 30)}), tapped)
        parts = wanted.lines()
        known = {one.kind: one for part in parts for one in part.kinds}
        rows = sum((self.share(part.kinds, part.share) for part in parts), Counter[Kind]())
        with together(folder, cables.Cabled) as home:
            assert isinstance(home, cables.Cabled)
            await self.each(rows, lambda kind: network.run(home, known[kind]))

    async def security(self, folder: Path) -> None:
        def so_many(what: str) -> int:
            return max(20, security.FULL[what] * self._n // FULL)

        with security.stronghold(folder) as hold:
            await security.ready(hold)
            for where, port in (await security.ports(hold)).items():
                self.add(await security.garbage(hold, where, port, so_many("garbage")))
            self.add(await security.garbage_at_pairing(hold, so_many("garbage")))
            for victim in (security.HOST, security.LENDER):
                self.add(await security.frames(hold, victim, so_many("frames")))
            self.add(await security.unpaired(hold, so_many("unpaired")))
            for found in await slow.slow(hold, so_many("slow")):
                self.add(found)


async def soaked(matrix: Matrix, minutes: float) -> None:
    """F13, in a household of its own."""
    with tempfile.TemporaryDirectory() as folder, together(Path(folder)) as home:
        matrix.add(await soak.run(home, 60 * minutes))


def main() -> None:
    words = argparse.ArgumentParser(prog="make faults", description=__doc__)
    words.add_argument(
        "--n", type=int, default=FULL, help="runs of F1; the other rows in proportion"
    )
    words.add_argument("--only", choices=PARTS, action="append", help="this part; can be repeated")
    words.add_argument(
        "--minutes", type=float, default=math.inf, help="begin nothing after so many"
    )
    words.add_argument(
        "--soak", type=float, default=0.0, help="F13 for so many minutes, and nothing else"
    )
    words.add_argument("--resume", action="store_true", help="go on where the last one ended")
    words.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    given = words.parse_args()
    print(f"seed {given.seed}", flush=True)
    random.seed(given.seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # namespaces and nodes end with us
    book = Book(BOOK, goes_on=given.resume)
    matrix = Matrix(book, given.n, 60 * given.minutes)
    chosen = set(given.only or PARTS)
    asyncio.run(soaked(matrix, given.soak) if given.soak else matrix.all_of(chosen))
    raise SystemExit(any(not one.passed for one in book.outcomes))


if __name__ == "__main__":
    main()
