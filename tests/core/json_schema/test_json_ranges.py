"""Numbers between bounds: exactly those that brute force finds, for integers; none beside them, for others."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import BadInput
from app.core.json_schema.json_grammar import BOUNDS, MAX_INTEGER, integers, json_grammar, numbers

TRIED = [f"{whole}{rest}" for whole in range(-35, 36) for rest in ("", ".0", ".05", ".5", ".90")]
TRIED += ["-0", "-0.5", "-0.0"]


def pattern(grammar: str) -> re.Pattern[str]:
    """Return the few symbols of a grammar as a Python pattern."""
    return re.compile(grammar.replace('"."', r"\.").replace('"', "").replace(" ", ""))


def within(schema: dict[str, Any], value: Fraction) -> bool:
    return (
        value >= schema.get("minimum", value)
        and value <= schema.get("maximum", value)
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    )


def of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(BOUNDS), values, min_size=1)


@given(of(st.integers(-1200, 1200) | st.floats(-50, 50)))
def test_integers_are_those_between_the_bounds(schema: dict[str, Any]) -> None:
    right = {str(n) for n in range(-1300, 1301) if within(schema, Fraction(n))}
    try:
        allowed = pattern(integers(schema))
    except ValueError:
        assert not right
        return
    assert {str(n) for n in range(-1300, 1301) if allowed.fullmatch(str(n))} == right
    assert not any(allowed.fullmatch(text) for text in ("", "-", "-0", "01", "1.5", "1e3"))


@given(st.integers(-MAX_INTEGER, MAX_INTEGER), st.integers(-MAX_INTEGER, MAX_INTEGER), st.data())
def test_long_integers_too(first: int, second: int, data: st.DataObject) -> None:
    schema = {"minimum": min(first, second), "maximum": max(first, second)}
    allowed = pattern(integers(schema))
    near = [end + step for end in (first, second) for step in (-1, 0, 1)]
    for value in (*near, data.draw(st.integers(-MAX_INTEGER, MAX_INTEGER))):
        is_in = abs(value) <= MAX_INTEGER and within(schema, Fraction(value))
        assert bool(allowed.fullmatch(str(value))) == is_in


@given(of(st.integers(-30, 30)))
def test_numbers_are_those_between_whole_bounds(schema: dict[str, Any]) -> None:
    right = {text for text in TRIED if within(schema, Fraction(text))}
    try:
        allowed = pattern(numbers(schema))
    except ValueError:
        assert not right
        return
    names = {text for text in TRIED if allowed.fullmatch(text)}
    assert names <= right
    # "-0" is another way to write 0, and a fraction's last zero after an open bound need not be written
    assert {text for text in right - names if float(text) and not text.endswith("0")} == set()


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "number", "minimum": 0.5}, "whole"),
        ({"type": "number", "maximum": 10**9}, "whole"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no number"),
        ({"type": "integer", "minimum": 10**400}, "no number"),
        ({"type": "number", "exclusiveMinimum": 1, "maximum": 1}, "no number"),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, "must be a number"),
        ({"type": "integer", "maximum": "9"}, "must be a number"),
        ({"type": "integer", "minimum": float("nan")}, "must be a number"),
        ({"minimum": 0}, "without a type"),
        ({"type": "integer", "multipleOf": 3}, "multipleOf"),
    ],
)
def test_bounds_that_cannot_be_kept_are_refused(schema: object, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        json_grammar(schema)
    assert why in str(refused.value.reason.facts["why"])


def test_bounds_of_other_values_do_not_matter() -> None:
    text = json_grammar({"type": ["integer", "null"], "minimum": -(2**63), "maximum": 2**63 - 1})
    assert "null" in text
