"""Names of machines: what is shown, which are one to a reader, and the next free one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ids import (
    MAX_NAME_CHARACTERS,
    NO_NAME,
    clean_name,
    free_name,
    is_taken,
    name_key,
    same_name,
    unless_taken,
)


def test_names_are_fit_to_be_shown() -> None:
    assert clean_name(" den\u202e\x00\n pc ") == "den pc"
    assert len(clean_name("x" * 500)) == 64
    for nothing in ("\x07", "", " \u3164\u2800", "\u200b\ufe0f"):
        assert clean_name(nothing) == NO_NAME


@pytest.mark.parametrize(
    "alike",
    [
        "LAPTOP", "Ｌａｐｔｏｐ", " laptop  ", "lap\u200btop", "Laptop\ufe0f", "Lap\u00adtop", "laptop\u3164",
        "\u202eLaptop", "L\u1d43ptop", "lapto\u2119",
    ],
)  # fmt: skip
def test_what_a_reader_takes_for_one_name(alike: str) -> None:
    assert same_name("Laptop", alike)
    assert unless_taken(alike, "attic", ["den", "Laptop"]) == "attic"
    assert free_name(alike, ["Laptop"]).endswith(" 2")


def test_names_that_a_reader_tells_apart() -> None:
    assert not same_name("Laptop", "Laptop 2")
    assert not same_name("Rechner", "Réchner")
    assert unless_taken(" loft ", "attic", ["den"]) == "loft"
    assert same_name("Küche", "Ku\u0308che")
    assert same_name("STRASSE", "Straße")


def test_the_next_free_name() -> None:
    assert free_name("Laptop", ["den"]) == "Laptop"
    assert free_name("Laptop", ["laptop", "LAPTOP 2"]) == "Laptop 3"
    assert free_name("Laptop 2", ["laptop 2", "Laptop 3"]) == "Laptop 4"
    assert free_name("x" * 64, ["x" * 64]) == "x" * 62 + " 2"


@given(st.text(max_size=80), st.lists(st.text(max_size=8), max_size=6))
def test_a_free_name_is_free_whatever_is_there(name: str, taken: list[str]) -> None:
    text = free_name(name, taken)
    assert not is_taken(text, taken)
    assert clean_name(text) == text
    assert 0 < len(text) <= MAX_NAME_CHARACTERS
    assert name_key(name_key(text)) == name_key(text)
    assert name_key(text)
