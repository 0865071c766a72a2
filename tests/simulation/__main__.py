"""`python -m tests.simulation SEED …`: plays seeds of the simulation and tells each story."""

from __future__ import annotations

import sys

from tests.simulation.test_simulation import check
from tests.simulation.world import told

for seed in sys.argv[1:] or ["0"]:
    story = told(int(seed))
    print(story)
    check(story)
