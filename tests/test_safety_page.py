"""docs/safety.md: each cell of its table names tests, and those are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "safety.md"
NAMED = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")
WHO = {
    "Host", "Lender", "Admin", "Guest", "Key holder", "Phone", "Web page", "Model file", "Document", "Picture",
    "Another host", "Tool server", "Giver of an engine pack", "Source of updates",
}  # fmt: skip


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_test_that_it_names_is_there() -> None:
    named = NAMED.findall(PAGE.read_text("utf-8"))
    assert len(named) > 30
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).is_file() or (name and name not in functions(TESTS / file))
    ]
    assert not missing


def test_everybody_has_a_row_and_each_row_a_proof() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| **")]
    assert {re.match(r"\| \*\*([\w ]+)\*\*", row)[1] for row in rows} == WHO  # type: ignore[index]
    for row in rows:
        *_, worst, stops, _ = row.split("|")
        assert NAMED.search(worst) or NAMED.search(stops), row[:60]
        assert NAMED.search(stops), row[:60]
