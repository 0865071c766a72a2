"""Hours of a week: read as typed, written as read, past midnight and over the weekend's end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import BadInput
from app.core.lending.hours import DAY_MINUTES, DAYS, Span, format_hours, is_within, parse_hours

MON, FRI, SAT, SUN = 0, 4, 5, 6
SEVEN = (0, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("typed", "spans"),
    [
        ("always", ()),
        (" Always ", ()),
        ("mon-fri 18:00-08:00", (Span((0, 1, 2, 3, 4), 1080, 480),)),
        ("sat, sun 9:05-12:00", (Span((SAT,)), Span((SUN,), 545, 720))),
        ("sat-mon", (Span((MON, SAT, SUN)),)),
        ("22:00-6:00", (Span(SEVEN, 1320, 360),)),
        ("0:00-24:00", (Span(SEVEN),)),
        ("tue 18:00-0:00", (Span((1,), 1080, DAY_MINUTES),)),
    ],
)
def test_what_people_type(typed: str, spans: tuple[Span, ...]) -> None:
    assert parse_hours(typed) == spans


@pytest.mark.parametrize(
    "typed",
    ["", ",", "mon,", "noon", "mon-foo", "25:00-26:00", "8:60-9:00", "8:00", "mon 8-9", "x" * 500,
     ",".join(["mon"] * 29), "mon 24:00-1:00", "mon-", "8:00-9:00-10:00"],
)  # fmt: skip
def test_what_are_no_hours(typed: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_hours(typed)
    assert raised.value.reason.code == "hours_odd"


@pytest.mark.parametrize(
    ("typed", "weekday", "minute", "inside"),
    [
        ("mon-fri 18:00-08:00", MON, 1079, False),
        ("mon-fri 18:00-08:00", MON, 1080, True),
        ("mon-fri 18:00-08:00", MON, 479, False),  # Sunday evening is not among them
        ("mon-fri 18:00-08:00", SAT, 479, True),  # Friday's night
        ("mon-fri 18:00-08:00", SAT, 480, False),
        ("sun 23:00-1:00", MON, 30, True),
        ("sat", SAT, 0, True),
        ("sat", SAT, 1439, True),
        ("sat", SUN, 0, False),
        ("always", FRI, 700, True),
    ],
)
def test_what_is_inside(typed: str, weekday: int, minute: int, inside: bool) -> None:
    assert is_within(parse_hours(typed), weekday, minute) is inside


@pytest.mark.parametrize("fields", [((),), ((7,),), ((1, 0),), ((1, 1),), ((1,), 1440), ((1,), 0, 0), ((1,), 0, 1441)])
def test_a_span_that_no_week_has_is_not_built(fields: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="hours"):
        Span(*fields)  # type: ignore[arg-type]


SPANS = st.builds(
    Span,
    st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
    st.integers(0, DAY_MINUTES - 1),
    st.integers(1, DAY_MINUTES),
)


@given(st.lists(SPANS, max_size=4), st.integers(0, 6), st.integers(0, DAY_MINUTES - 1))
def test_what_is_written_means_the_same(spans: list[Span], weekday: int, minute: int) -> None:
    again = parse_hours(format_hours(spans))
    assert is_within(again, weekday, minute) == is_within(spans, weekday, minute)


def test_days_are_named_in_runs() -> None:
    assert format_hours([Span((0, 1, 2, 5), 60, 120)]) == "mon-wed 01:00-02:00, sat 01:00-02:00"
    assert len(DAYS) == 7
