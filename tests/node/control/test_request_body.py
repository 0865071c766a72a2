"""Tests of the decoder's real messages about wrong bodies, and of the sentences for a person."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from app.node.control.json_bodies import explain_decode_error, wrong_field

Name = Annotated[str, Meta(min_length=1, max_length=5)]


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    on: bool


class Body(msgspec.Struct, forbid_unknown_fields=True):
    idle_s: Annotated[float, Meta(ge=0, le=604800)] = 0
    hours: Annotated[float, Meta(gt=0)] = 1
    count: int | None = None
    name: Annotated[str, Meta(pattern="^[a-z]+$")] = "a"
    short: Name = "a"
    models: Annotated[dict[Name, Name], Meta(min_length=1)] | None = None
    items: Annotated[list[int], Meta(max_length=2)] = []
    shape: Literal["one", "two"] = "one"
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("raw", "said", "field"),
    [
        (b'{"idle_s": 1e9}', "idle_s must be at most 604800", "idle_s"),
        (b'{"hours": 0}', "hours must be more than 0", "hours"),
        (b'{"count": "x"}', "count must be a whole number or nothing, not a text", "count"),
        (b'{"inner": []}', "inner must be an object or nothing, not a list", "inner"),
        (b'{"inner": {}}', "inner.on is missing", "inner.on"),
        (b'{"inner": {"on": 1}}', "inner.on must be true or false, not a whole number", "inner.on"),
        (b'{"inner": {"on": true, "of": 1}}', "nothing here is called inner.of", "inner.of"),
        (b'{"color": 1}', "nothing here is called color", "color"),
        (b'{"short": ""}', "short must not be empty", "short"),
        (b'{"short": "abcdef"}', "short must be at most 5 characters long", "short"),
        (b'{"models": {}}', "models must not be empty", "models"),
        (b'{"models": {"": "a"}}', "models must not be empty", "models"),
        (b'{"items": [1, 2, 3]}', "items must be at most 2 entries long", "items"),
        (b'{"items": [1, "x"]}', "items[1] must be a whole number, not a text", "items[1]"),
        (b'{"shape": "three"}', "shape cannot be 'three'", "shape"),
        (b'{"name": "a b"}', "name has characters that it must not have, or begins with one, or is too long", "name"),
        (b"[]", "the body must be an object, not a list", ""),
        (b'{"idle_s": nan}', "it is not whole and valid JSON (byte 15)", ""),
        (b'{"idle_s": 1e999}', "idle_s is too large a number", "idle_s"),
        (b'{"name": "\\ud800"}', "it is not whole and valid JSON", ""),
        (b'{"idle_s"', "it is not whole and valid JSON", ""),
    ],
)
def test_a_wrong_body_is_said_plainly(raw: bytes, said: str, field: str) -> None:
    with pytest.raises(msgspec.DecodeError) as wrong:
        msgspec.json.decode(raw, type=Body)
    assert explain_decode_error(str(wrong.value)) == said
    assert wrong_field(str(wrong.value)) == field


def test_other_words_stay_as_they_are() -> None:
    assert explain_decode_error("utf-8 codec can't decode byte 0xff") == "utf-8 codec can't decode byte 0xff"


def test_a_body_that_is_no_text_is_no_json() -> None:
    with pytest.raises(UnicodeDecodeError) as wrong:
        msgspec.json.decode(b'{"name": "\xff"}', type=Body)
    assert explain_decode_error(str(wrong.value)) == "it is not whole and valid JSON"
