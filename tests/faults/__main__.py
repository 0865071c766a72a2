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

from tests.faults import cables, cases, host, network, proofs, security, slow, wiretap
from tests.faults.household import N_TOKENS, NeverStruck, together
from tests.faults.outcome import Book, Outcome, spread
from tests.faults.report import written

ROOT = Path(__file__).parents[2]
TABLE, BOOK = ROOT / "docs" / "faults.md", ROOT / "build" / "faults.jsonl"
FULL = 300  # of F1, as SAFETY.md 9 has it; the other rows in proportion
PROCESSES = ("kills", "stops", "twos", "host")  # one household serves them all
PARTS = (*PROCESSES, "network", "security", "tests")
Kind = tuple[str, str, str]
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
        print(f"{number:4} {sign} {': '.join(found.kind)}: {told} {facts} {found.why}", flush=True)
        TABLE.write_text(written(self._book.outcomes, N_TOKENS), "utf-8")

    async def all_of(self, chosen: set[str]) -> None:
        """One part after the other, each in a household of its own."""
        works: list[Callable[[Path], Awaitable[None]]] = []
        if chosen & set(PROCESSES):
            works.append(lambda folder: self.processes(folder, chosen))
        works += [work for work in (self.network, self.security) if work.__name__ in chosen]
        if proofs.PHASE in chosen:
            wanted = Counter(proof.kind for proof in proofs.PROOFS)
            await self.each(wanted, lambda kind: proofs.run(proofs.BY_NAME[kind]))
        for work in works:
            with tempfile.TemporaryDirectory() as folder:
                await work(Path(folder))

    async def each(self, wanted: Counter[Kind], run: Callable[[Kind], Awaitable[Outcome]]) -> None:
        """All that is missing, in any order, of each kind about as many at any time."""
        left = self._book.missing(wanted)
        while left.total() and monotonic() < self._ends_at:
            most = max(count / wanted[kind] for kind, count in left.items())
            ripe = [kind for kind, count in left.items() if count / wanted[kind] >= most - 1e-9]
            kind = random.choice(ripe)
            try:
                self.add(await run(kind))
            except NeverStruck:
                print(f"     not struck: {': '.join(kind)}", flush=True)
            left = self._book.missing(wanted)

    def share(self, kinds: Sequence[K], part: float) -> Counter[Kind]:
        """This part of all runs, over these kinds."""
        return spread([one.kind for one in kinds], round(self._n * part))

    async def processes(self, folder: Path, chosen: set[str]) -> None:
        parts: list[tuple[str, list[cases.Case], float]] = [
            ("kills", cases.killed(), 1.0), ("stops", cases.stopped(2), 1 / 3),
            ("stops", cases.stopped(4), 1 / 3), ("stops", cases.stopped(math.inf), 1 / 3),
            ("twos", cases.twice(), 1 / 3),
        ]  # fmt: skip
        known = {one.kind: one for name, kinds, _ in parts for one in kinds if name in chosen}
        counts = (self.share(kinds, part) for name, kinds, part in parts if name in chosen)
        wanted = sum(counts, Counter[Kind]())
        if "host" in chosen:
            wanted[host.KIND] = max(1, self._n // 6)
        with together(folder) as home:

            async def run(kind: Kind) -> Outcome:
                if kind == host.KIND:
                    return await host.run(home)
                return await cases.run(home, known[kind])

            await self.each(wanted, run)

    async def network(self, folder: Path) -> None:
        parts = [
            (network.silences(), 1 / 3), (network.bad_lines(), 1 / 3), (network.slow_lines(), 1 / 15),
            (network.moved(), 1 / 6),
        ]  # fmt: skip
        known = {one.kind: one for kinds, _ in parts for one in kinds}
        wanted = sum((self.share(kinds, part) for kinds, part in parts), Counter[Kind]())
        with together(folder, cables.Cabled) as home:
            assert isinstance(home, cables.Cabled)
            wanted[wiretap.KIND] = max(1, self._n // 30)

            async def run(kind: Kind) -> Outcome:
                if kind == wiretap.KIND:
                    return await wiretap.run(home)
                return await network.run(home, known[kind])

            await self.each(wanted, run)

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


def main() -> None:
    words = argparse.ArgumentParser(prog="make faults", description=__doc__)
    words.add_argument(
        "--n", type=int, default=FULL, help="runs of F1; the other rows in proportion"
    )
    words.add_argument("--only", choices=PARTS, action="append", help="this part; can be repeated")
    words.add_argument(
        "--minutes", type=float, default=math.inf, help="begin nothing after so many"
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
    asyncio.run(matrix.all_of(chosen))
    raise SystemExit(any(not one.passed for one in book.outcomes))


if __name__ == "__main__":
    main()
