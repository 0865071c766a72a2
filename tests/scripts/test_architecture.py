"""docs/architecture.md and its drawing show the packages and imports that the code has."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

import pytest

from scripts import architecture
from scripts.architecture import DRAWING, PAGE, PROJECT, arrows, drawing, floors, plan_of, table

STALE = "the page is stale: run `python -m scripts.architecture`"
DIAMOND = {"a": {"b", "c", "d"}, "b": {"d"}, "c": {"d"}, "d": set[str]()}
CIRCLE = {"a": {"b"}, "b": {"c", "d"}, "c": {"b", "d"}, "d": set[str]()}


@pytest.fixture(autouse=True)
def no_finalisers() -> Iterator[None]:
    """One that parses in between breaks the parser's count of how deep it is (gh-106905)."""
    collects = gc.isenabled()
    gc.disable()
    yield
    if collects:
        gc.enable()


def test_the_table_names_the_rooms_and_imports_of_this_code() -> None:
    assert plan_of(architecture.written_table()) == plan_of(table()), STALE


def test_no_row_of_the_table_cuts_code_in_half() -> None:
    for rows in (table(), architecture.written_table()):
        assert not [row for row in rows.splitlines() if row.count("`") % 2]


def test_the_drawing_is_of_this_code() -> None:
    assert DRAWING.read_text("utf-8") == drawing(), STALE


def test_a_page_with_other_duties_and_numbers_of_files_is_not_stale() -> None:
    head = "| room | duty | files | imports |\n|---|---|---:|---|\n"
    before = plan_of(head + "| `app/cli` | Old words. | 25 | core |")
    assert before == plan_of(head + "| `app/cli` | New \\| words. | 26 | core |")
    assert before != plan_of(head + "| `app/cli` | Old words. | 25 | core, node |")


def test_the_page_names_files_that_exist() -> None:
    named = re.findall(r"`((?:app|backends|docs|resources|scripts|tests)/[\w/.-]+)`", PAGE.read_text("utf-8"))
    assert len(named) > 20
    assert not [name for name in sorted(set(named)) if not (PROJECT / name).exists()]


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    assert arrows(DIAMOND) == [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    assert arrows(CIRCLE) == [("a", "b"), ("b", "c"), ("b", "d"), ("c", "b"), ("c", "d")]


def test_each_box_stands_below_all_that_import_it() -> None:
    assert floors(DIAMOND) == {"a": 0, "b": 1, "c": 1, "d": 2}
    assert floors(CIRCLE) == {"a": 0, "b": 1, "c": 1, "d": 2}
