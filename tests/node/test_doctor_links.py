"""The link test of the doctor: measured now, a slow one named with its cure, and nothing in the way of an answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from app.core.diagnostics import likeliest_cause
from app.core.errors import Busy
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.node import doctor
from app.node.doctor import MAX_TESTED, link_checks, link_speed_check
from tests.findings import cause_of, cure_of

FAST = Link(0.0005, 0.001, 0.0001, 117e6, 117e6, "eth0", LinkKind.ETHERNET, 1500, 1_000_000_000)
SLOW = replace(FAST, out_bytes_per_s=2.5e6)
ATTIC = MachineId("a" * 64)


@dataclass
class Book:
    """Measures `then` when it is asked; until then it knows `link_now`."""

    then: Link | None
    link_now: Link | None = None
    refuses: bool = False
    hangs: bool = False
    asked: list[MachineId | None] = field(default_factory=list)

    async def measure_now(self, only: MachineId | None = None) -> Any:
        self.asked.append(only)
        if self.refuses:
            raise Busy("link_busy")
        if self.hangs:
            await asyncio.sleep(60)
        self.link_now = self.then

    def link(self, machine: MachineId) -> Link | None:
        return self.link_now


@pytest.mark.parametrize(
    ("link", "ok", "code", "cure"),
    [
        (FAST, True, "", ""),
        (SLOW, None, "link_slow", "another cable"),
        (replace(SLOW, kind=LinkKind.WIFI), None, "link_slow", "Wi-Fi"),
        (replace(SLOW, far_kind=LinkKind.WIFI), None, "link_slow", "Wi-Fi"),
        (replace(FAST, round_trip_s=0.05, kind=LinkKind.VPN), None, "link_slow", "VPN"),
        (replace(SLOW, limit_bytes_per_s=2.5e6), True, "", ""),  # its owner wants it so
    ],
)
def test_what_is_slow_and_why(link: Link, ok: bool | None, code: str, cure: str) -> None:
    check = link_speed_check("attic-pc", link)
    assert (check.ok, check.code, check.machine) == (ok, code, "attic-pc")
    assert cure in cure_of(check)
    assert "attic-pc" in cause_of(check)


def test_a_quick_link_has_a_number_that_can_be_read() -> None:
    link = replace(FAST, out_bytes_per_s=276_012_345.0, in_bytes_per_s=300e6)
    assert "carries 2,208 Mbit/s" in cause_of(link_speed_check("attic-pc", link))


async def test_each_link_is_measured_now_and_a_slow_one_is_the_cause() -> None:
    book = Book(SLOW, FAST)
    [check] = await link_checks(book, [(ATTIC, "attic-pc")], busy=False)
    assert book.asked == [ATTIC]
    assert "20 Mbit/s" in cause_of(check)
    assert likeliest_cause([check]) == check
    many = [(MachineId(str(n) * 64), f"pc-{n}") for n in range(9)]
    assert len(await link_checks(book, many, busy=False)) == MAX_TESTED


async def test_an_answer_goes_first_and_what_was_not_measured_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    book = Book(FAST)
    [check] = await link_checks(book, [(ATTIC, "attic-pc")], busy=True)
    assert not check.tested
    assert not book.asked
    monkeypatch.setattr(doctor, "LINK_TEST_SECONDS", 0.01)
    for unwilling in (Book(FAST, refuses=True), Book(FAST, hangs=True)):
        [check] = await link_checks(unwilling, [(ATTIC, "attic-pc")], busy=False)
        assert (check.tested, check.code) == (False, "link_untested")
        assert likeliest_cause([check]) is None
