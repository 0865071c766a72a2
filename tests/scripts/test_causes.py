"""docs/causes.md is what the code says, and says everything."""

from __future__ import annotations

from app.core.reasons import SENTENCES
from scripts.causes import PAGE, page


def test_the_page_is_of_this_code() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m scripts.causes`"


def test_every_reason_stands_on_it_once() -> None:
    codes = [line.split("|")[1].strip() for line in page().splitlines() if line.startswith("| ")]
    assert sorted(code for code in codes if code != "code") == sorted(SENTENCES)
