"""Tests of the suggestions for mistyped names."""

from __future__ import annotations

import pytest

from app.catalog.model_catalog import load_catalog
from app.core.nearest_names import nearest_names

MODELS = ["guide", "Llama-3.2-3B-Instruct-Q4_K_M", *(offer.id for offer in load_catalog().models)]


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("gude", "guide"),
        ("uide", "guide"),
        ("GUIDE2", "guide"),
        ("qwen3-8v", "qwen3-8b"),
        ("gtp-oss", "gpt-oss-20b"),
        ("phi4mini", "phi-4-mini"),
        ("lama3.1", "llama-3.1-8b"),
        ("lama-3.2-3b-instruct", "Llama-3.2-3B-Instruct-Q4_K_M"),
    ],
)
def test_a_mistyped_model_is_recognized(typed: str, nearest: str) -> None:
    assert nearest_names(typed, MODELS)[0] == nearest


@pytest.mark.parametrize("typed", ["", "-", "x", "nothing", "gpt-4", "claude-sonnet-4", "text-embedding-3-small"])
def test_nothing_is_suggested_for_a_name_that_is_far_from_all(typed: str) -> None:
    assert nearest_names(typed, MODELS) == []


def test_few_names_are_suggested() -> None:
    assert len(nearest_names("llama3", MODELS)) == 3


def test_a_very_long_name_takes_no_time() -> None:
    assert nearest_names("guide" * 1_000_000, MODELS) == []
