"""Model families on the device: a few of each kind. `python -m tests.cards.report` computes all of them."""

from __future__ import annotations

import pytest

from tests.cards.report import DOCUMENT, NO_FUSION, document, row_of, rows_of

# plain, one with a sliding window, one with experts, and two that keep a convolution or recurrent state
CHOSEN = ("llama", "gemma3", "qwen3-moe", "lfm2", "qwen3-5")
CUT, WHOLE = 1e-3, 6e-2  # largest errors that are accepted, relative to the largest logit
CLOSE = 2e-2  # a lead of one token over another, in logits, that rounding may turn


@pytest.mark.parametrize("family", CHOSEN)
def test_a_family_is_computed_as_on_the_processor(family: str) -> None:
    row = row_of(family, "--few", within_s=380)
    assert row.findings, row.note
    findings = row.findings
    assert findings["cut_error"] <= CUT, findings
    assert max(findings["whole_error"], findings["mixed_error"]) < WHOLE, findings
    assert findings["gap"] < CLOSE, findings


def test_a_family_is_cut_exactly_without_fused_operations() -> None:
    """A cut separates operations that the device computes as one, which is all that makes a difference."""
    row = row_of("llama-tied", "--few", within_s=380, variables=NO_FUSION)
    assert row.findings["cut_error"] == 0.0, row.findings


def test_the_page_is_read_as_it_was_written() -> None:
    """A later run computes only the families that are missing on it."""
    page = DOCUMENT.read_text("utf-8")
    rows = rows_of(page)
    assert {bool(row.findings) for row in rows} == {True, False}
    assert document(rows) == page
