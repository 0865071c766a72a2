"""The laboratory of hostile members, a few of its kinds: `make hostile` runs all of them, a thousand times."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.book import Book
from tests.faults.outcome import Kind, Outcome
from tests.hostile import admin, lab, lender, report

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the patched lender is told its lie by a signal"),
    pytest.mark.timeout(240),
]
SEED = 32
QUICK: tuple[Kind, ...] = (
    ("stranger", "half a handshake from sixty-four addresses", ""),
    ("guest", "nesting without end", ""),
    ("host", "frames that break the agreement", ""),
    ("lender", "numbers that are none", ""),
    ("lender", lender.BLAMES_MODEL, ""),
)
QUICK_ADMINS = ("certificates with a byte turned", "lines that are no lines")


def test_each_of_them_has_twenty_kinds_and_no_two_are_called_the_same() -> None:
    assert {role: len(names) >= 20 for role, names in lab.ROLES.items() if role != "stranger"} == dict.fromkeys(
        ("lender", "host", "guest", "admin"), True
    )
    assert len(set(lab.kinds())) == len(lab.kinds())


@pytest.mark.parametrize("name", QUICK_ADMINS)
async def test_an_admin_that_signs_anything_brings_no_node_down(tmp_path: Path, name: str) -> None:
    assert failed([await admin.run(tmp_path, name, SEED)]) == []


def failed(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    return [(outcome.name, outcome.why) for outcome in outcomes if not outcome.passed]


def test_books_of_runs_beside_each_other_are_put_together(tmp_path: Path) -> None:
    book, other = Book(tmp_path / "one.jsonl", goes_on=True), tmp_path / "other.jsonl"
    book.add(Outcome("admin", "names, again and again", "", True, seed=1, facts={"back_s": 0.25}))
    beside = Book(other, goes_on=True)
    beside.add(Outcome("lender", "silence", "", False, "den named", seed=2))
    book.take(other.read_text("utf-8").splitlines())
    again = Book(tmp_path / "one.jsonl", goes_on=True).outcomes
    assert [(outcome.row, outcome.seed, outcome.passed) for outcome in again] == [
        ("admin", 1, True),
        ("lender", 2, False),
    ]
    assert again == book.outcomes


def test_the_page_counts_what_came_of_it() -> None:
    kinds = [("lender", "silence", ""), ("admin", "lines that are no lines", "")]
    facts = {"not_started": 0.0, "named": 1.0, "lost": 0.0, "back_s": 0.5, "grown_bytes": float(3 << 20)}
    some = [
        Outcome(*kinds[0], False, "kitchen named", facts=facts, seed=7, commit="abc"),
        Outcome(*kinds[0], True, facts=facts | {"named": 0.0, "back_s": 2.0}),
    ]
    page = report.written(some, kinds)
    assert "| silence | 2 | 1 | 0 | 1 | 0 | 0.50 s / 2.00 s | 3 MiB |" in page
    assert "| lines that are no lines | 0 | 0 | 0 | 0 | 0 | – / – | 0 MiB |" in page
    assert "- lender: *silence*, seed 7, at abc: kitchen named" in page


async def test_hostile_members_and_strangers_do_others_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "ATTACK_SECONDS", 2.0)
    result = []
    async with lab.laboratory(tmp_path / "lab") as made:
        for kind in QUICK:
            result.append(await lab.run(made, kind, SEED, tmp_path))  # noqa: PERF401  one after the other
    assert failed(result) == []
