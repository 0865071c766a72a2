"""The results of the endurance test as text, and whether all figures stayed within their limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scripts.endurance.busy_thread import FIRST, LONG_S, PALETTE, USUAL, Passes
from scripts.endurance.leak_figures import Ledger, lined

WORST = 12
ANSWERED = 0.5  # minimum share of the questions: while a machine leaves and returns, some are refused


@dataclass(frozen=True, slots=True)
class Bar:
    """The maximum duration of 99 percent of the event loop's passes, and of all of them."""

    most_s: float
    longest_s: float


BARS = {
    USUAL: Bar(LONG_S, 2 * LONG_S),  # a turn may contain two slots
    FIRST: Bar(0.1, 0.15),  # each page is built when first shown, in steps
    PALETTE: Bar(0.1, 0.15),  # everything visible changes color at once
}


def verdict(
    ledger: Ledger, kinds: Mapping[str, Passes], warnings: Iterable[str], answers: int
) -> tuple[list[str], bool]:
    """Return the lines of the report, and whether the test has passed."""
    lines = [
        f"{len(ledger.readings)} rounds, {answers} of their questions answered to the end.",
        "",
        *ledger.table(),
        "",
    ]
    head = ("work", "turns", "of 1 ms and more", "half within", "99 % within", "longest", "over 50 ms")
    lines += [*lined(head, [row(kind, passes) for kind, passes in kinds.items()]), ""]
    slow = [
        (kind, worst.step, str(number), ms(worst.cpu_s), worst.where)
        for kind, passes in kinds.items()
        for worst, number in passes.worst(WORST)
    ]
    if slow:
        lines += [*lined(("work", "step", "times", "longest", "where"), slow), ""]
    faults = [*ledger.faults(), *(f"Qt says: {text}" for text in sorted(warnings))]
    if answers < ANSWERED * len(ledger.readings):
        faults.append(f"only {answers} of {len(ledger.readings)} questions were answered")
    for kind, passes in kinds.items():
        faults += late(kind, passes)
    lines += [f"WRONG: {fault}" for fault in faults] or ["All stays as it is."]
    return lines, not faults


def late(kind: str, passes: Passes) -> list[str]:
    """Return lines about the passes that took longer than allowed."""
    bar, most, longest = BARS[kind], passes.share(0.99), passes.share(1.0)
    problems = []
    if most > bar.most_s:
        problems.append(f"{kind}: one turn in a hundred takes {ms(most)}, and {ms(bar.most_s)} is the most")
    if longest > bar.longest_s:
        problems.append(f"{kind}: a turn took {ms(longest)}, and {ms(bar.longest_s)} is the most")
    return problems


def row(kind: str, passes: Passes) -> tuple[str, ...]:
    shares = (ms(passes.share(part)) for part in (0.5, 0.99, 1.0))
    return (kind, f"{passes.count:,}", f"{len(passes.cpu_s):,}", *shares, str(len(passes.slow)))


def ms(seconds: float) -> str:
    """Format a duration in milliseconds."""
    return f"{seconds * 1000:.0f} ms"
