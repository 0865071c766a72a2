"""Thoughts are read in answers of each real template as llama.cpp's own parser reads them."""

from __future__ import annotations

import pytest

from scripts.engine_source import engine
from tests.backends.thought_samples import DIFFERS, form_of, ours, record, samples, sources, where

NAMES = sorted(record()["templates"])


def test_the_record_is_of_this_engine_and_of_every_template() -> None:
    assert record()["engine"] == engine(), "python -m scripts.thought_compare"
    assert set(NAMES) == set(sources())
    assert len(NAMES) >= 69


@pytest.mark.parametrize("name", NAMES)
def test_thoughts_are_read_as_by_llama_cpp(name: str) -> None:
    source, kept = sources()[name], record()["templates"][name]
    form = form_of(source)
    place = where(source, form)
    made = samples(form, place)
    assert made == {key: {"text": item["text"], "whole": item["whole"]} for key, item in kept.items()}, (
        "the samples are others: python -m scripts.thought_compare"
    )
    alike = True
    for key, item in kept.items():
        theirs = tuple(item["read"].get(part, "").strip() for part in ("thought", "text"))
        results = {ours(form, place, item["text"], step) for step in (1, 7, 1000)}
        assert len(results) == 1, key  # however it comes
        alike = alike and results == {theirs}
        assert alike or name in DIFFERS, (key, results, theirs)
    assert alike is (name not in DIFFERS), "it is equal now: take it out of DIFFERS"
