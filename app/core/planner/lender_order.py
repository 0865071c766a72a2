"""In which order lenders can hold runs of given lengths, so that each run fits where it stands. Pure.

Layers differ in size, so a run of ten may fit in one place and not in another. The search is over sets of
lenders, and the edges that a set can reach are the bits of one integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Where the runs stand. `order`: lenders, by their number in what was asked, first to last."""

    first_run: int  # blocks of the host's first run
    order: tuple[int, ...]


def arrange(firsts: int, starts: Sequence[int], lengths: Sequence[int]) -> Arrangement | None:
    """Put a run for each lender behind the host's first run, or None when no order fits.

    firsts: bit n for a first run of n blocks. starts: for each lender, bit n when its run may begin at edge n.
    lengths: blocks of each lender's run; that host's last run then has its length follows from the sum.
    """
    as_given = tuple(range(len(lengths)))
    if (edges := _walk(firsts, starts, lengths, as_given)) is not None:
        return Arrangement(edges, as_given)
    options = [((length, mask),) for length, mask in zip(lengths, starts, strict=True)]
    reached = _reached(firsts, options)
    if not reached[-1]:
        return None
    order, left, edge = [], len(reached) - 1, _lowest(reached[-1])
    while left:
        for lender in range(len(lengths)):
            before = left & ~(1 << lender)
            begin = edge - lengths[lender]
            if before != left and (reached[before] & starts[lender]) >> begin & 1:
                order.append(lender)
                left, edge = before, begin
                break
    return Arrangement(edge, tuple(reversed(order)))


def furthest(firsts: int, options: Sequence[Sequence[tuple[int, int]]]) -> int:
    """The edges that some runs, one for each lender, can reach: bit n for edge n; 0 when nothing fits.

    options: for each lender its possible lengths, each with the mask of where such a run may begin.
    """
    return _reached(firsts, options)[-1]


def _reached(firsts: int, options: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    """For each set of lenders (bit n: lender n), the edges at which their runs can end."""
    reached = [0] * (1 << len(options))
    reached[0] = firsts
    for held, edges in enumerate(reached):
        if not edges:
            continue
        for lender, runs in enumerate(options):
            if not held >> lender & 1:
                for length, mask in runs:
                    reached[held | 1 << lender] |= (edges & mask) << length
    return reached


def _walk(firsts: int, starts: Sequence[int], lengths: Sequence[int], order: Sequence[int]) -> int | None:
    """The shortest first run with which this order fits."""
    reach, total = firsts, 0
    for lender in order:
        reach = (reach & starts[lender]) << lengths[lender]
        total += lengths[lender]
    return _lowest(reach) - total if reach else None


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
