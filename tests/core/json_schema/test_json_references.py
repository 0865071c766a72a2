"""References that were meant from a part of a schema, as programs put one schema into another."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.errors import BadInput
from app.core.json_schema.json_grammar import json_grammar
from app.core.json_schema.schema_types import localize_references, resolve_reference
from app.core.tools.call_grammar import calls_grammar
from tests.core.call_formats import FORMATS

ITEM: dict[str, Any] = {"type": "object", "properties": {"a": {"const": "of the item"}}}
LIST = {"$defs": {"Item": ITEM}, "type": "array", "items": {"$ref": "#/$defs/Item"}}


def in_property(schema: dict[str, Any], name: str = "some") -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}}


@pytest.mark.parametrize(
    "schema",
    [
        in_property({"$ref": "#/$defs/Item", "$defs": {"Item": ITEM}}),  # beside it
        in_property(LIST),  # around it
        in_property({"anyOf": [LIST, {"type": "null"}]}),
        in_property({"definitions": {"Item": ITEM}, "$ref": "#/definitions/Item"}),
        in_property(LIST, "default"),  # a name that is a keyword elsewhere
        in_property(LIST, "a/b~c"),
        {"$defs": {"Outer": LIST}, "$ref": "#/$defs/Outer"},
        {"$ref": "#/$defs/Item", "$defs": {"Item": ITEM}},
        in_property({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/Item"}, "Item": ITEM}}),
    ],
)
def test_definitions_beside_or_around_a_reference_are_found(schema: dict[str, Any]) -> None:
    for grammar in (
        json_grammar(localize_references(schema)),
        calls_grammar(FORMATS["hermes"], {"f": localize_references(schema)}, many=True),
    ):
        assert "of the item" in grammar


def test_the_root_is_first_and_then_the_innermost_one() -> None:
    inner = {"$ref": "#/$defs/Item", "$defs": {"Item": {"const": "inner"}}}
    assert "outer" in json_grammar(localize_references(in_property(inner) | {"$defs": {"Item": {"const": "outer"}}}))
    middle = in_property(inner) | {"$defs": {"Item": {"const": "middle"}}}
    assert "inner" in json_grammar(localize_references(in_property(middle)))


def test_two_parts_that_call_different_things_alike_each_have_their_own() -> None:
    item, two = ({"$ref": "#/$defs/X", "$defs": {"X": {"const": word}}} for word in ("one", "two"))
    grammar = json_grammar(localize_references({"type": "object", "properties": {"a": item, "b": two}}))
    assert "one" in grammar
    assert "two" in grammar


def test_what_is_right_or_nowhere_stays() -> None:
    right = {"$defs": {"N": in_property({"$ref": "#/$defs/N"})}, "$ref": "#/$defs/N"}
    for schema in (right, {"$ref": "#/$defs/X"}, {"$ref": "https://a.example/x"}, {"$ref": 3}, True, {"enum": [LIST]}):
        assert localize_references(schema) == schema
    with pytest.raises(BadInput):
        json_grammar(localize_references({"$ref": "#/$defs/X"}))


def test_a_reference_may_go_through_a_list_and_be_written_as_a_url_has_it() -> None:
    schema = {"anyOf": [{"type": "string"}, ITEM], "$defs": {"Box<a/b>": ITEM, "100%25": {"const": "raw"}}}
    assert resolve_reference("#/anyOf/1", schema) is ITEM
    for place in ("#/anyOf/2", "#/anyOf/x", "#/anyOf/-1", "#/anyOf/1/type/0"):
        assert resolve_reference(place, schema) is None
    assert resolve_reference("#/$defs/Box%3Ca~1b%3E", schema) is ITEM
    assert resolve_reference("#/$defs/Box<a~1b>", schema) is ITEM
    assert resolve_reference("#/$defs/100%25", schema) == {"const": "raw"}  # as it is written, first
