"""A few rows of the fault matrix on real processes: `make faults` runs all of it, many times."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from tests.faults.cases import Case, run
from tests.faults.household import household

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")

CASES = [
    Case("F1", "host's worker", "first token"),
    Case("F1", "1st lender's worker", "prefill"),
    Case("F2", "1st lender's node", "middle", 2),
    Case("F2", "1st lender's worker", "middle", math.inf),
    Case("F7", "1st lender's worker", "last token", also="host's worker"),
    Case("F1", "1st lender's worker", "load"),
    Case("F1", "2nd lender's node", "middle"),
]
TOLD_SECONDS, STILL_SECONDS = 1.0, 5.0  # SAFETY.md 9, on a machine with nothing else to do
BUSY = 3.0  # times as long while other tests run beside


@pytest.mark.timeout(240)
async def test_answers_are_finished_whatever_is_lost(tmp_path: Path) -> None:
    """All tokens of the undisturbed answer, in their order, none twice; told in time."""
    async with household(tmp_path) as home:
        for case in CASES:
            found = await run(home, case)
            assert found.passed, f"{case}: {found.why}"
            assert (found.recoveries == 0) == (case.seconds == 2 or case.phase == "load"), case
            if found.recoveries:
                within = STILL_SECONDS if case.seconds else TOLD_SECONDS
                assert found.said_s < within * BUSY, case
