"""The document of the proof: of this table, and able to say what another engine changes."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.families import FAMILIES
from tests.families import report
from tests.families.fixtures import families


def test_the_document_is_of_the_table_as_it_is() -> None:
    lines = report.DOCUMENT.read_text("utf-8").splitlines()
    found = [line.split(" | ") for line in lines if line.startswith("| ")][1:]
    assert [cells[0].removeprefix("| ") for cells in found] == list(families())
    for cells in found:
        assert (cells[2] == "whole") is (cells[1] not in FAMILIES), cells
        assert "fails" not in cells[2]


def test_what_another_engine_changes_is_named() -> None:
    rows = [
        report.Row("a", "llama", "exact", "any", 3),
        report.Row("b", "qwen2", "exact", "any", 3),
    ]
    other = [rows[0], replace(rows[1], verdict="**fails**", largest=0.5)]
    assert report.differences(rows, rows) == []
    assert report.differences(rows, other) == [
        "b: verdict exact -> **fails**",
        "b: largest 0.0 -> 0.5",
    ]


def test_a_proof_is_a_row() -> None:
    row = report.row_of("llama")
    assert (row.verdict, row.compared, row.largest, row.tokens_equal) == ("exact", 6, 0.0, True)
    assert report.row_of("qwen3-5").legal == "an attention and a recurrent layer in each run"
