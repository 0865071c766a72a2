"""`python -m tests.families.mutation RULE FILE`: whether the proof notices that a rule is left out.

In a process of its own: what llama.cpp is given then, it may not survive.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from app.catalog import stage_entries
from app.catalog.families import FAMILIES
from app.catalog.gguf_check import read_header
from app.catalog.rules import Rule
from tests.families import proof
from tests.families.line import StageRefused


def leave_out(rule: Rule, architecture: str) -> None:
    """From now on, in this process."""
    if rule in stage_entries.BY_RULE:
        del stage_entries.BY_RULE[rule]
    else:
        family = FAMILIES[architecture]
        FAMILIES[architecture] = replace(family, rules=family.rules - {rule})


def holds(path: Path) -> bool:
    """The proof of this file's cuts into two, as the table is now."""
    with tempfile.TemporaryDirectory() as folder:
        home = proof.home(Path(folder))
        entry = home.shelf.import_file(path)
        cuts = proof.twos(entry.model)
        assert cuts, "nothing to prove"
        try:
            return proof.prove(home, entry, cuts[:: max(1, len(cuts) // 6)]).holds
        except StageRefused:
            return False


if __name__ == "__main__":
    name, file = sys.argv[1:]
    if name == "turns":  # the half of F5 that is no metadata
        FAMILIES["glm4"] = replace(FAMILIES["glm4"], turns=False)
    elif name != "none":
        leave_out(Rule[name], read_header(Path(file)).text("general.architecture"))
    print("holds" if holds(Path(file)) else "caught")
