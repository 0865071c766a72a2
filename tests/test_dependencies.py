"""docs/dependencies.md names every package that is shipped, and none that is not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PINNED = re.compile(r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)==")
ROW = re.compile(r"(?m)^\| ([a-zA-Z][\w, -]*?) \|")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(*names: str) -> set[str]:
    locks = [(PROJECT / "requirements" / f"{name}.txt").read_text() for name in names]
    return {plain(result) for lock in locks for result in PINNED.findall(lock)}


def listed(page: str) -> set[str]:
    rows = [row for row in ROW.findall(page) if row != "package"]
    return {plain(name) for row in rows for name in row.split(", ")}


def test_every_package_that_is_shipped_is_on_the_page_and_no_other() -> None:
    page = (PROJECT / "docs" / "dependencies.md").read_text()
    assert listed(page) == locked("run", "engine")


def test_what_is_chosen_by_us_stands_apart_from_what_it_brings_along() -> None:
    chosen, _, _ = (PROJECT / "docs" / "dependencies.md").read_text().partition("## Brought along")
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    named = project["project"]["dependencies"] + project["dependency-groups"]["engine"]
    assert listed(chosen) == {plain(item.partition("==")[0]) for item in named}
