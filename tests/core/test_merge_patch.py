"""Merge patches: made, and applied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.wire_json import Json, apply_merge_patch, merge_patch

KEYS = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_patch_turns_old_into_new(old: Json, new: Json) -> None:
    assert apply_merge_patch(old, merge_patch(old, new)) == new
    assert merge_patch(new, new) == {}


def test_what_is_gone_is_none_and_the_old_stays() -> None:
    old = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge_patch(old, {"a": {"b": 1}, "e": 4}) == {"a": {"c": None}, "d": None, "e": 4}
    assert apply_merge_patch(old, {"a": {"c": None}, "d": {"x": {"y": None}}}) == {"a": {"b": 1}, "d": {"x": {}}}
    assert old == {"a": {"b": 1, "c": 2}, "d": 3}
