"""Tests of the complete part of a JSON text, wherever it was cut."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json_schema.partial_json import MAX_DEPTH, certain_part, to_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
BOX = st.lists(JSON, max_size=3) | st.dictionaries(st.text(max_size=3), JSON, max_size=3)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('{"zone": "UTC", "exact": true}', {"zone": "UTC", "exact": True}),
        ('{"zone": "UTC", "exact": true', {"zone": "UTC", "exact": True}),
        ('{"zone": "UTC", "exact": true ,', {"zone": "UTC", "exact": True}),
        ('{"zone": "UTC", "n": 12', {"zone": "UTC"}),
        ('{"zone": "UTC"', {"zone": "UTC"}),
        ('{"zone": "UT\\', {}),
        ('{"zo', {}),
        (" {", {}),
        ('[{"a": [1, 2, -', [{"a": [1, 2]}]),
        ("[1, 2] ", [1, 2]),
    ],
)
def test_what_is_whole_is_kept(text: str, whole: object) -> None:
    assert certain_part(text) == whole


@pytest.mark.parametrize(
    "text", ["", "x", "1", '"a"', '{"a": oops', '{"a" 1', "{1: 2", "[1 2]", "{} x", '{"a": NaN, ', "[tru,", "[" * 99]
)  # fmt: skip
def test_what_begins_no_list_and_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        certain_part(text)
    assert MAX_DEPTH < 99


def within(part: Any, whole: Any) -> bool:
    """Return whether a value is the beginning of another."""
    match part, whole:
        case dict(), dict():
            names = list(whole)[: len(part)]
            return list(part) == names and all(within(part[name], whole[name]) for name in names)
        case list(), list():
            return all(map(within, part, whole)) and len(part) <= len(whole)
    return bool(part == whole)


def test_of_very_many_values_none_is_read_piece_by_piece() -> None:
    """Millions of them kept a node from everything else for seconds; long texts and blanks are no such work."""
    assert certain_part('{"a": [' + "1," * 9000)["a"][-1] == 1
    assert certain_part('{"b": "' + "x" * 10**7 + '", "a": ["' + "y" * 10**7) == {"b": "x" * 10**7, "a": []}
    begun_s = time.process_time()
    with pytest.raises(ValueError, match="too many"):
        certain_part('{"a": [' + "1," * 10**6)
    assert certain_part('{"a": [' + " " * 10**7) == {"a": []}
    assert time.process_time() - begun_s < 0.5


@given(BOX, st.data())
def test_wherever_it_is_cut_it_is_a_beginning_of_the_whole(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert certain_part(text) == value
    assert within(certain_part(text[: data.draw(st.integers(1, len(text)))]), value)


def test_half_a_surrogate_pair_can_be_sent() -> None:
    """JSON can name it, and so can a model; no text that is sent can hold it."""
    whole = json.loads('{"a": "\\ud83d\\ude00 ä"}')
    assert to_json(whole) == '{"a": "\U0001f600 ä"}'
    text = to_json(json.loads('{"a": "x\\ud83d"}'))
    assert text.encode()
    assert json.loads(text) == {"a": "x\N{REPLACEMENT CHARACTER}"}
