"""The fault matrix names every row of the specification, and every test that it names is there."""

from __future__ import annotations

import asyncio
import math
import re
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.faults import __main__ as matrix
from tests.faults import proofs, report, security, sieges, slow, slowed, soak, wanted
from tests.faults.book import Book
from tests.faults.household import Heard, Household, NeverStruck
from tests.faults.outcome import Outcome

ROOT = Path(__file__).parents[1]
ROWS = {f"F{n}" for n in range(1, 15)} | {f"S{n}" for n in range(1, 11)}


def test_every_row_is_made_somewhere() -> None:
    names = {row for row, _, _ in wanted.every_kind()}
    assert names == ROWS


def test_the_whole_matrix_is_as_large_as_specified(tmp_path: Path) -> None:
    """Counts the runs and the attempts of attacks of `make faults` without arguments."""
    whole = matrix.Matrix(Book(tmp_path / "book.jsonl", goes_on=False), wanted.FULL, math.inf)
    rows = whole.share(wanted.processes())[0] + whole.share([wanted.times()])[0]
    rows += whole.share(wanted.lines())[0]
    runs, deeds = Counter[str](), Counter[str]()
    for (row, name, _), n in rows.items():
        runs[row] += n
        deeds[f"{row}, {name.partition(',')[0]}"] += n
    assert runs == {
        "F1": 300, "F2": 300, "F3": 100, "F4": 400, "F5": 20, "F7": 100, "F8": 20, "F9": 50,
    }  # fmt: skip
    assert {n for deed, n in deeds.items() if deed.startswith("F2")} == {100}  # of each length
    assert {n for deed, n in deeds.items() if deed.startswith("F4")} == {50}  # of each kind
    assert {"F3, silent for 0.5 s", "F3, silent for 60 s", "F3, cable out for 2 s"} <= deeds.keys()
    tries = Counter[str]()
    for siege in sieges.sieges(1.0):
        assert siege.kind[0] not in ("S1", "S2") or siege.n >= 10_000
        tries[siege.kind[0]] += siege.n
    assert tries["S6"] == 1000
    assert tries["S4"] >= 600


@pytest.mark.parametrize("proof", proofs.PROOFS, ids=lambda proof: str(proof.row))
def test_what_a_row_names_is_there(proof: proofs.Proof) -> None:
    for line in proof.where:
        file, _, name = line.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {name or 'test_[a-z0-9_]+'}\(", text, re.MULTILINE), line


async def test_a_row_that_tests_prove_counts_them_and_shows_where(tmp_path: Path) -> None:
    test = tmp_path / "test_bad.py"
    test.write_text("def test_a(): pass\n\n\ndef test_b(): assert 0\n", "utf-8")
    bad = await proofs.run(proofs.Proof("S9", "bad", (str(test),)))
    assert not bad.passed
    assert (bad.facts["n"], bad.facts["passed"]) == (2.0, 1.0)
    shown = Outcome(*proofs.PROOFS[0].kind, True, facts={"n": 20.0, "passed": 20.0, "took_s": 3.0})
    line = "| F8 | clocks that jump by a day or ten years under answers | 20 | 20 | 3 | `tests/simulation/"
    assert line in report.written([shown], 1, {shown.kind})


async def test_a_row_of_which_a_part_was_skipped_is_not_proved(tmp_path: Path) -> None:
    test = tmp_path / "test_half.py"
    test.write_text("import pytest\n\n\ndef test_a(): pass\n\n\n@pytest.mark.skip\ndef test_ab(): pass\n", "utf-8")
    whole, half = f"{test}::test_a", f"{test}::test_ab"
    result = await proofs.run(proofs.Proof("S9", "half", (whole, half)))
    assert not result.passed
    assert result.why == f"nothing passed of {half}"


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
async def test_a_row_that_does_not_end_leaves_nobody(tmp_path: Path) -> None:
    """Neither pytest nor what its tests have started."""
    test, path = tmp_path / "test_long.py", tmp_path / "pid"
    test.write_text(
        "import pathlib, subprocess, sys\n\n\ndef test_a():\n"
        "    one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"    pathlib.Path({str(path)!r}).write_text(str(one.pid))\n    one.wait()\n",
        "utf-8",
    )
    running = asyncio.create_task(  # noqa: TID251  ended below
        proofs.run(proofs.Proof("S9", "long", (str(test),)))
    )
    async with asyncio.timeout(30):
        while not path.exists() or not path.read_text():  # noqa: ASYNC110  in another process
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.wait({running})
    child = int(path.read_text())
    _, alive = psutil.wait_procs([psutil.Process(child)] if psutil.pid_exists(child) else [], 30)
    assert not alive


def outcome(name: str, number: int, *, struck: bool = True) -> Outcome:
    return Outcome("F1", name, "middle", True, said_s=0.1, next_token_s=number, commit="abc", struck=struck)


def test_the_page_says_what_was_not_run_and_what_does_not_count() -> None:
    kinds = {("F1", "kill -9, a", "middle"), ("F3", "silent for 60 s, both lenders", "middle")}
    outcomes = [outcome("kill -9, a", 3), outcome("kill -9, a", 0, struck=False)]
    page = report.written(outcomes, 1, kinds)
    assert "1 runs, of which 0 failed; 0 more succeeded, but took longer" in page
    assert "1 of 2 kinds of runs are missing" in page
    assert page.endswith("## Not run\n\n- F3, silent for 60 s, both lenders, middle\n")
    assert "1 more runs do not count" in page
    assert "| F1 | kill -9, a | middle | 1 | 1 | 1 | 0 | – / 0.10 s | – / 3.00 s |" in page
    assert "\nCommit abc.\n" in page
    assert "not made" not in report.written(outcomes, 1, {outcomes[0].kind})


def test_a_quantile_needs_runs_enough() -> None:
    page = report.written([outcome("kill -9, a", number) for number in range(10)], 1, set())
    assert "| 0.10 s / 0.10 s / – / 0.10 s | 4.00 s / 8.00 s / – / 9.00 s |" in page


async def test_who_is_never_struck_three_times_in_a_row_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run then ends; otherwise it would start over forever."""
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "page.md")
    book = Book(tmp_path / "book.jsonl", goes_on=False)
    kind = ("F1", "kill -9, a", "middle")
    tries: list[int] = []

    async def run(_: tuple[str, str, str]) -> Outcome:
        tries.append(1)
        if len(tries) in (1, 2, 4, 5, 6):
            raise NeverStruck
        return outcome("kill -9, a", 1)

    await matrix.Matrix(book, 300, math.inf).each(Counter({kind: 3}), run)
    assert [item.passed for item in book.outcomes] == [True] * 5 + [False] + [True]
    assert [item.struck for item in book.outcomes] == [False, False, True, False, False, False, True]
    assert "3 times in a row" in book.outcomes[5].why
    assert Book(tmp_path / "book.jsonl", goes_on=True).outcomes == book.outcomes


def test_a_siege_is_made_again_until_it_is_withstood_with_all_tries(tmp_path: Path) -> None:
    book, kind = Book(tmp_path / "book.jsonl", goes_on=False), ("S1", "garbage", security.PHASE)
    for passed, n in ((True, 999.0), (False, 1000.0)):
        book.add(Outcome(*kind, passed, facts={"n": n}))
        assert not book.holds_siege(kind, 1000)
    book.add(Outcome(*kind, True, facts={"n": 1000.0}))
    assert book.holds_siege(kind, 1000)
    page = report.written(book.outcomes, 1, {kind})
    assert "| S1 | garbage | 2999 | 2 of 3 |" in page
    assert re.search(r"- S1, garbage, while it answers: .*\(commit ", page)


def test_machines_that_became_slow_have_a_table_of_their_own() -> None:
    kind = slowed.kinds()[0].kind
    facts = {"gap_p50_s": 0.02, "gap_worst_s": 0.3, "usual_gap_p95_s": 0.01, "moved_s": 70.0}
    page = report.written([Outcome(*kind, True, facts=facts)], 1, {kind})
    line = f"| F2 | {kind[1]} | 1 | 1 | 1 | 0.02 s, 0.30 s / 0.01 s | – / 70.00 s |"
    assert line in page
    assert "still" not in page  # nor is it one of those that stand still


@pytest.mark.parametrize(("gap_s", "slow"), [(0.04, False), (0.06, True)])
def test_a_machine_stands_out_only_beside_quick_ones(tmp_path: Path, gap_s: float, slow: bool) -> None:
    home = Household(tmp_path, ExitStack(), usual_gap_s=0.01)
    heard = Heard(deltas_at=[0.5, *(1.0 + n * gap_s for n in range(9))], struck_at=0.9)
    assert slowed._became_slow(home, heard) is slow


def grown(bytes_per_hour: float, handles: int, hours: float) -> Outcome:
    """A soak whose caches are full after 239 faults; handles are lost in its last quarter."""
    times = [soak.EVERY_SECONDS * n for n in range(1, round(120 * hours) + 1)]
    samples = [
        (at, round(5e7 * (n >= 239) + bytes_per_hour * at / 3600), 40 + handles * (n > 0.75 * len(times)))
        for n, at in enumerate(times)
    ]  # fmt: skip
    return soak.judged(samples, hours, "")


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        (grown(0.5e6, 8, 4.0), ""),
        (grown(3e6, 0, 4.0), "the host's node grows by 3.0 MB an hour"),
        (grown(3e6, 0, 2.9), ""),  # too short for a slope
        (grown(0.0, 9, 2.9), "9 more open files and sockets than when it was warm"),
        (soak.judged([], 1.0, "killed: no end"), "killed: no end"),
    ],
)
def test_a_soak_is_judged_by_what_is_kept_for_ever(expected: Outcome, why: str) -> None:
    assert (expected.why, expected.passed) == (why, not why)
    page = report.written([expected], 1, {soak.KIND})
    [line] = [line for line in page.splitlines() if "| F13 | a random fault every 30 s |" in line]
    assert ("| – |" in line) == (expected.facts["warm_hours"] < soak.LEAST_HOURS)


def test_who_waits_too_long_or_keeps_others_from_an_answer_is_told() -> None:
    kind = slow.kind_of(*slow.STARTS[0])
    facts = {"n": 20.0, "worst_s": 9.9, "late_s": 0.0, "tokens": 9.0}
    assert slow.judged(kind, "", facts).passed
    for changes in ({"worst_s": 10.1}, {"tokens": 0.0}):
        assert not slow.judged(kind, "", facts | changes).passed
    assert slow.judged(kind, "", facts | {"worst_s": 12.0, "late_s": 2.0}).passed
    assert slow.judged(kind, "one ended", facts).why == "one ended"


def test_a_row_can_be_run_by_itself_and_slow_ones_wait_at_all_places_at_once(tmp_path: Path) -> None:
    book = Book(tmp_path / "book.jsonl", goes_on=False)
    whole, few = (matrix.Matrix(book, 1, math.inf, rows) for rows in ((), ("F3",)))
    rows = whole.share(wanted.lines())[0]
    assert {row for row, _, _ in whole._left(rows)} == {"F3", "F4", "F5", "F9"}
    assert {row for row, _, _ in few._left(rows)} == {"F3"}
    lanes = sieges.beside(sieges.sieges(1.0))
    assert set(lanes) == set(security.PORTS)  # a member knocks where strangers do
    assert sum(map(len, lanes.values())) == len(slow.STARTS)
