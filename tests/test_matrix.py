"""The fault matrix names every row of the specification, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults import cases, host, network, proofs, report, wiretap
from tests.faults.outcome import Outcome

ROOT = Path(__file__).parents[1]
ROWS = {f"F{n}" for n in range(1, 15)} | {f"S{n}" for n in range(1, 11)}
SIEGES = {"S1", "S2", "S4", "S6"}  # tests/faults/security.py and slow.py


def test_every_row_is_made_somewhere() -> None:
    processes = [*cases.killed(), *cases.stopped(2), *cases.twice()]
    lines = [*network.silences(), *network.bad_lines(), *network.slow_lines(), *network.moved()]
    found = {one.row for one in processes} | {one.row for one in lines} | SIEGES
    found |= {host.KIND[0], wiretap.KIND[0]}
    found |= {proof.row for proof in proofs.PROOFS} | set(proofs.ELSEWHERE)
    assert found == ROWS


@pytest.mark.parametrize("proof", proofs.PROOFS, ids=lambda proof: str(proof.row))
def test_what_a_row_names_is_there(proof: proofs.Proof) -> None:
    for one in proof.where:
        file, _, name = one.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {name or 'test_'}", text, re.MULTILINE), one


async def test_a_row_that_tests_prove_counts_them_and_shows_where(tmp_path: Path) -> None:
    test = tmp_path / "test_bad.py"
    test.write_text("def test_a(): pass\n\n\ndef test_b(): assert 0\n", "utf-8")
    bad = await proofs.run(proofs.Proof("S9", "bad", (str(test),)))
    assert not bad.passed
    assert (bad.facts["n"], bad.facts["passed"]) == (2.0, 1.0)
    shown = Outcome(*proofs.PROOFS[0].kind, True, facts={"n": 20.0, "passed": 20.0, "took_s": 3.0})
    line = "| F8 | clocks that jump by a day or ten years under answers | 20 | 20 | 3 | `tests/simulation/"
    assert line in report.written([shown], 1)
