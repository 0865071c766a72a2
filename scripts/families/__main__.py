"""`make families`, or `python -m scripts.families NAME…` in its environment: creates the models of tests/families."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from scripts.families import dense, experts, hybrids, windows
from scripts.families.make_model import make
from scripts.families.recipe import Recipe

FOLDER = Path(__file__).resolve().parent.parent.parent / "tests" / "families"
TABLE = "table.json"
RECIPES: tuple[Recipe, ...] = (
    *dense.RECIPES, *windows.RECIPES, *experts.RECIPES, *hybrids.RECIPES,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.families", description=__doc__)
    parser.add_argument("names", nargs="*", help="families to make anew; all when none is named")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the files go")
    options = parser.parse_args()
    known = {recipe.name: recipe for recipe in RECIPES}
    unknown = sorted(set(options.names) - known.keys())
    if unknown:
        parser.error(f"no recipe for {', '.join(unknown)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or known:
        expected = make(known[name], options.out)
        write(options.out / TABLE, known, name, expected)
        print(f"{name:20} {expected['architecture']:16} {expected['n_bytes']:9,} bytes")


def write(path: Path, known: dict[str, Recipe], name: str, expected: dict[str, Any]) -> None:
    """Write an entry to the table, which has one line per family. Entries without a recipe are removed."""
    table = json.loads(path.read_text("utf-8")) if path.exists() else {}
    table = {each: table[each] for each in known if each in table} | {name: expected}
    lines = [f"{json.dumps(each)}: {json.dumps(table[each])}" for each in known if each in table]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8", newline="\n")


if __name__ == "__main__":
    main()
