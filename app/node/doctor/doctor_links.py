"""The link test of the doctor: how fast the links to the others are at this moment, and which is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

from app.core.check import Check
from app.core.errors import AppError, Fact
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.core.reasons import in_words

TESTED = 3  # links at most: each takes a second or two
SECONDS = 8.0  # for one
FEW_MBIT = 10  # below, a tenth counts
SLOW_MBIT = 40.0  # each way: 40 KiB for each token of a large model take 8 ms then
SLOW_MS = 20.0  # there and back: two lenders cost 40 ms for every token then


class Book(Protocol):
    """Measures links; node/link_book.py has it."""

    async def measure_now(self, only: MachineId | None = None) -> Any: ...
    def link(self, machine: MachineId) -> Link | None: ...


async def checks(book: Book, linked: Iterable[tuple[MachineId, str]], busy: bool) -> list[Check]:
    """One for each machine that is connected, by id and name. `busy`: an answer runs, and goes first."""
    return [await _tested(book, machine, name, busy) for machine, name in list(linked)[:TESTED]]


async def _tested(book: Book, machine: MachineId, name: str, busy: bool) -> Check:
    if busy:
        cause = in_words("check_link_busy", machine=name)
        return Check("Link", None, cause, "", "link_untested", name, tested=False)
    with suppress(AppError, TimeoutError):  # then what was measured before counts, if anything was
        async with asyncio.timeout(SECONDS):
            await book.measure_now(machine)
    link = book.link(machine)
    if link is None:
        cause = in_words("check_link_untested", machine=name)
        return Check("Link", None, cause, "", "link_untested", name, tested=False)
    return judged(name, link)


def judged(machine: str, link: Link) -> Check:
    """Whether a link is the reason why answers are slow."""
    mbit = min(link.out_bytes_per_s, link.in_bytes_per_s) * 8 / 1e6
    ms = link.round_trip_s * 1000
    facts: dict[str, Fact] = {
        "machine": machine,
        "mbit": round(mbit, 1) if mbit < FEW_MBIT else round(mbit),
        "ms": round(ms, 1),
    }
    if link.limit_bytes_per_s is not None and ms <= SLOW_MS:
        return Check("Link", True, in_words("check_link_limited", **facts), machine=machine)
    if mbit >= SLOW_MBIT and ms <= SLOW_MS:
        return Check("Link", True, in_words("check_link", **facts), machine=machine)
    kinds = (link.kind, link.far_kind)
    wireless, through_vpn = LinkKind.WIFI in kinds, LinkKind.VPN in kinds
    cure = "cure_link_vpn" if through_vpn else "cure_link_wifi" if wireless else "cure_link_cable"
    return Check(
        "Link", None, in_words("check_link_slow", **facts), in_words(cure), "link_slow", machine
    )
