"""The document of the proof: of this table, and able to say what another engine changes."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from app.catalog.families.family_table import FAMILIES
from app.core.errors import StageLost
from backends.contract import PROVED_ENGINES
from tests.families import proof, report
from tests.families.driven import Workers
from tests.families.fixtures import families


def test_the_document_is_of_the_table_as_it_is() -> None:
    lines = report.DOCUMENT.read_text("utf-8").splitlines()
    results = [line.split(" | ") for line in lines if line.startswith("| ")][1:]
    assert [cells[0].removeprefix("| ") for cells in results] == list(families())
    for cells in results:
        assert (cells[2] == "whole") is (cells[1] not in FAMILIES), cells
        assert "fails" not in cells[2]


def test_what_another_engine_changes_is_named() -> None:
    rows = [report.Row("a", "llama", "exact", "any", 3), report.Row("b", "qwen2", "exact", "any", 3)]
    other = [rows[0], replace(rows[1], verdict="**fails**", largest=0.5)]
    assert report.differences(rows, rows) == []
    assert report.differences(rows, other) == ["b: verdict exact -> **fails**", "b: largest 0.0e+00 -> 5.0e-01"]


def test_the_comparison_counts_and_lists() -> None:
    row = report.Row("a", "llama", "exact", "any", 3)
    worse = replace(row, verdict="**fails**", tokens_equal=False)
    text = report.comparison(("engine 1", "engine 2"), [row], [worse])
    assert "- engine 1: 1 exact, 0 within noise, 0 failed" in text
    assert "- engine 2: 0 exact, 0 within noise, 1 failed" in text
    assert "- a: verdict exact -> **fails**\n- a: tokens_equal True -> False\n" in text
    assert report.UNKNOWN in text
    same = report.comparison(("engine 1", "engine 2"), [row], [row])
    assert same.endswith("## engine 1 → engine 2\n\nNo difference.\n")


def test_the_documents_are_of_the_proved_engine_and_say_why_another_differs() -> None:
    (proved,) = PROVED_ENGINES
    assert f"Engine: llama-cpp-python {proved}," in report.DOCUMENT.read_text("utf-8")
    text = report.ENGINES.read_text("utf-8")
    old, new = re.findall(r"^- llama-cpp-python (\S+):", text, re.MULTILINE)
    assert old == proved
    assert report.WHY[new] in text


def test_a_failure_is_a_line_without_folders() -> None:
    error = StageLost("worker_died", worker="w", how="h", words="/home/me/x.cpp:5: it | broke\nso")
    assert report.failure(error) == "x.cpp:5: it / broke so"
    assert report.failure(TimeoutError()).startswith("no end within")


def test_what_is_no_number_is_no_proof() -> None:
    some = {(0, 1): np.array([1.0, 2.0], np.float32)}
    none = {(0, 1): np.array([1.0, np.nan], np.float32)}
    assert proof.difference(some, some) == 0.0
    assert proof.difference(some, none) == proof.difference(none, none) == np.inf


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="module")
async def test_a_proof_is_a_row(workers: Workers) -> None:
    row = await report.row_of(workers, "llama", proof.SEED)
    assert (row.verdict, row.compared, row.largest, row.tokens_equal) == ("exact", 6, 0.0, True)
    row = await report.row_of(workers, "qwen3-5", proof.SEED)
    assert row.legal == "an attention and a recurrent layer in each run"


@pytest.mark.long
def test_another_interpreter_tells_its_rows() -> None:
    row = report.Row("lfm2", "lfm2", "exact", "an attention and a recurrent layer in each run", compared=7)
    comparison = report.compare(sys.executable, ["lfm2"], proof.SEED, [row])
    assert "No difference." in comparison
    assert f"{report.engine_of(sys.executable)}: 1 exact" in comparison
