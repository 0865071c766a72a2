"""Halves of UTF-16 pairs become U+FFFD, and nothing else changes."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.wire_json import replace_lone_surrogates


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"\uDE00"', "\ufffd"),
        (r'"a\ud83db"', "a\ufffdb"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83dA"', "\ufffdA"),
        (r'"\ud83d\n"', "\ufffd\n"),
        (r'"\ud83d\\ude00"', "\ufffd\\ude00"),  # two backslashes: a text of six letters
        (r'"\\ud83d"', "\\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\u4e2d\uffff"', "\u4e2d\uffff"),
    ],
)
def test_a_half_is_replaced_and_a_pair_stays(sent: str, read: str) -> None:
    assert msgspec.json.decode(replace_lone_surrogates(sent.encode())) == read


@given(
    st.text(st.characters(codec="utf-16", categories=None, exclude_categories=()) | st.characters(categories=["Cs"]))
)
def test_any_text_of_halves_is_read_as_python_reads_it_but_for_the_halves(text: str) -> None:
    read = msgspec.json.decode(replace_lone_surrogates(json.dumps(text).encode()))
    assert read == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@given(st.text())
def test_what_has_no_half_stays_byte_for_byte(text: str) -> None:
    for sent in (json.dumps(text).encode(), json.dumps(text, ensure_ascii=False).encode()):
        assert replace_lone_surrogates(sent) == sent


def test_a_body_full_of_them_is_quickly_done() -> None:
    begun = time.process_time()
    replace_lone_surrogates(rb'"' + rb"\ud83d" * (8 << 17) + rb'"')
    assert time.process_time() - begun < 3
