"""Every attack of the matrix by its kind: how many tries make it whole, and what carries them out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.faults import security, slow
from tests.faults.outcome import Kind, Outcome
from tests.faults.security import Stronghold

# Tries of each kind. A quarter of what a member sends are messages: 10,000 and more are frames.
FULL = {"garbage": 10_000, "frames": 13_336, "unpaired": 1_000, "slow": 200}
FEWEST = 20

Attack = Callable[[Stronghold, int], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Siege:
    """A number of attempts at once. They count only if one siege made them all, so that leftovers add up in it."""

    kind: Kind
    n: int
    attack: Attack

    async def run(self, hold: Stronghold) -> Outcome:
        return await self.attack(hold, self.n)


def sieges(share: float) -> list[Siege]:
    """All of them, each with this share of its full number of tries."""
    row, phase = "S1", security.PHASE
    results = [
        Siege((row, f"{security.GARBAGE}, {where}", phase), _many("garbage", share), _at(where))
        for where in security.PORTS
    ]
    window = security.garbage_at_pairing
    results.append(Siege((row, security.AT_PAIRING, phase), _many("garbage", share), window))
    for name, victim in (("host", security.HOST), ("lender", security.LENDER)):
        kind = "S2", f"{security.FRAMES}, {name}", phase
        results.append(Siege(kind, _many("frames", share), _of_member(victim)))
    kind = "S6", security.UNPAIRED, phase
    results.append(Siege(kind, _many("unpaired", share), security.unpaired))
    for start, where in slow.STARTS:
        n = min(_many("slow", share), slow.most(start, where))
        results.append(Siege(slow.kind_of(start, where), n, _slow(start, where)))
    return results


def beside(every: Sequence[Siege]) -> dict[str, list[Siege]]:
    """Return the attacks that only wait, by the place where they do. Those at one place leave the others alone."""
    result = dict[str, list[Siege]]()
    for siege in every:
        if siege.kind[2] == slow.PHASE:
            result.setdefault(slow.door(siege.kind), []).append(siege)
    return result


def _many(label: str, share: float) -> int:
    return max(FEWEST, round(FULL[label] * share))


def _at(where: str) -> Attack:
    async def attack(hold: Stronghold, n: int) -> Outcome:
        return await security.garbage(hold, where, (await security.ports(hold))[where], n)

    return attack


def _of_member(victim: str) -> Attack:
    async def attack(hold: Stronghold, n: int) -> Outcome:
        return await security.frames(hold, victim, n)

    return attack


def _slow(start: slow.Start, where: str) -> Attack:
    async def attack(hold: Stronghold, n: int) -> Outcome:
        return await slow.run(hold, start, where, n)

    return attack
