"""Hours of a week: what is painted says the same as text, and back."""

from __future__ import annotations

import random

import pytest

from app.core.lending.hours import MAX_SPANS, format_hours, is_within, parse_hours
from app.gui.this_computer.hours_card import ALL, Cells, cells_of, is_exact, spans_of, text_of


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("always", "always"),
        ("mon-fri 18:00-08:00", "mon-fri 18:00-08:00"),
        ("mon-sun 22:00-07:00", "mon-sun 22:00-07:00"),
        ("sat, sun", "sat-sun"),
        ("wed 9:00-12:00, wed 14:00-18:00", "wed 09:00-12:00, wed 14:00-18:00"),
        ("sun 20:00-04:00", "sun 20:00-04:00"),
        ("tue 06:00-06:00", "tue 06:00-06:00"),  # a day from six to six
        ("mon-fri 18:00-08:00, sat, sun", "mon-thu 18:00-08:00, fri 18:00-00:00, sat-sun"),
        ("mon-sun 00:00-24:00".replace("24", "00"), "always"),
    ],
)
def test_what_is_painted_is_written_as_people_do(typed: str, written: str) -> None:
    assert text_of(cells_of(parse_hours(typed))) == written


def test_every_painting_comes_back() -> None:
    chance = random.Random(4)
    for share in (0.02, 0.2, 0.5, 0.8, 0.98):
        for _ in range(8):
            cells: Cells = frozenset(cell for cell in ALL if chance.random() < share)
            if not cells:
                continue
            spans = spans_of(cells)
            assert cells_of(spans) == cells
            if len(spans) <= MAX_SPANS and len(format_hours(spans)) <= 400:
                assert cells_of(parse_hours(format_hours(spans))) == cells


def test_no_hour_is_no_rule() -> None:
    with pytest.raises(ValueError, match="no hour"):
        text_of(frozenset())


def test_half_hours_are_not_lost_silently() -> None:
    spans = parse_hours("mon 18:30-20:00")
    assert not is_exact(spans)
    assert cells_of(spans) == {(0, 19)}
    assert is_exact(parse_hours("mon 18:00-20:00, sat"))
    assert is_within(spans, 0, 18 * 60 + 45)
