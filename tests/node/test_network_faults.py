"""A few rows of the network's faults on real packets; `make faults` runs all of them, many times."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.fault_link import Faults
from tests.faults import wiretap
from tests.faults.household import together
from tests.faults.network import Trouble, moved, run

pytestmark = [pytest.mark.long, pytest.mark.root, pytest.mark.timeout(240)]

TROUBLES = [
    Trouble("F4", "5 % of packets lost", Faults(0.002, loss=0.05)),
    Trouble("F3", "silent for 2 s", Faults(partition=True), "1st lender", 2.0),
    moved()[0],
]


async def test_answers_outlast_what_the_network_does(tmp_path: Path) -> None:
    """All tokens, in their order; nobody who lives is given up."""
    with together(tmp_path, wiretap.Tapped) as home:
        assert isinstance(home, wiretap.Tapped)
        outcomes = [await wiretap.run(home)]
        outcomes += [await run(home, case) for case in TROUBLES]
    assert [(outcome.name, outcome.why) for outcome in outcomes if not outcome.passed] == []
