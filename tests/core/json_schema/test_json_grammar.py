"""Schemas become grammars that llama.cpp compiles, and that let through exactly what they should."""

from __future__ import annotations

import json
import time
from itertools import permutations
from typing import Any

import pytest

from app.core.errors import BadInput
from app.core.json_schema.json_grammar import BOUNDS, MAX_DEPTH, MAX_GRAMMAR_BYTES, json_grammar, literal

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "x": {"type": "null"}},
    "required": ["age"],
    "additionalProperties": False,
}


def nested(depth: int) -> Any:
    return {"type": "array", "items": nested(depth - 1)} if depth else {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, "pattern"),
        ({"type": "object", "patternProperties": {"a": {}}}, "patternProperties"),
        ({"not": {"type": "null"}}, "not is not supported"),
        ({"$ref": "https://evil.example/schema.json"}, "points out of the schema"),
        ({"$ref": "#/$defs/none"}, "points to nothing"),
        ({"anyOf": [{"type": "null"}], "properties": {"a": {}}}, "stands beside"),
        ({"allOf": [{"type": "null"}, {"type": "string"}]}, "allOf"),
        ({"enum": []}, "enum"),
        ({"type": "thing"}, "no type"),
        ({"type": "string", "maxLength": 10**9}, "up to 2000"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "below"),
        ({"type": "array", "minItems": True}, "numbers"),
        ({"type": "object", "properties": [1]}, "properties"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "forbidden"),
        ({"type": "object", "required": [["a"]]}, "no name"),
        ({"type": "object", "required": [None]}, "no name"),
        ({"type": "object", "minProperties": 2}, "minProperties above 1"),
        ({"type": "object", "minProperties": 3, "maxProperties": 2}, "maxProperties is below"),
        (PERSON | {"minProperties": 4}, "minProperties is above"),
        (PERSON | {"maxProperties": 0}, "maxProperties is below"),
        (PERSON | {"minProperties": "2"}, "minProperties and maxProperties must be numbers"),
        ({"minLength": 2}, "minLength stands without a type"),
        ({"maxProperties": 2, "description": "few"}, "maxProperties stands without a type"),
        ({"type": "object", "dependencies": {"a": ["b"]}}, "dependencies is not supported"),
        ({"type": "array", "prefixItems": [{}], "items": False, "minItems": 2}, "minItems asks"),
        ({"type": "string", "enum": [1, True, None]}, "none of its values"),
        ({"type": "string", "anyOf": [{"type": "integer"}]}, "of another type"),
        ({"type": "string", "$ref": "#/$defs/a", "$defs": {"a": {"enum": [1]}}}, "beside a $ref"),
        (False, "no schema"),
        ("text", "no schema"),
        ({"type": "string", "allOf": [{"type": "integer"}]}, "of another type"),
        ({"enum": ["x" * (64 << 10)]}, "longer than 64 KiB"),
        (nested(MAX_DEPTH + 1), "32 levels"),
    ],
)
def test_what_cannot_be_promised_is_refused(schema: object, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        json_grammar(schema)
    assert why in str(refused.value.reason.facts["why"])


@pytest.mark.parametrize(
    "word",
    [
        "patternProperties", "not", "if", "dependentSchemas", "dependentRequired", "contains",
        "propertyNames", "multipleOf", "$dynamicRef", "$recursiveRef", "dependencies", "unevaluatedProperties",
        "unevaluatedItems",
    ],
)  # fmt: skip
def test_a_word_that_no_grammar_keeps_is_refused_by_name_wherever_it_stands(word: str) -> None:
    with pytest.raises(BadInput) as refused:
        json_grammar({"type": "object", "properties": {"a": {"anyOf": [{word: {}}]}}})
    assert refused.value.reason.facts["why"] == f"{word} is not supported"


def test_that_names_are_texts_says_nothing() -> None:
    """Zod says it of each record, and so do the schemas of many programs."""
    record = {"type": "object", "additionalProperties": {"type": "integer"}}
    for inside in (record, {"type": "object", "properties": {"a": record}}):
        result = {**inside, "propertyNames": {"type": "string"}}
        assert json_grammar(result) == json_grammar(inside)


@pytest.mark.parametrize(
    ("schema", "bounds"),
    [
        ({"type": "string"}, ("minLength", "maxLength")),
        ({"type": "string", "format": "date"}, ("minLength", "maxLength")),
        ({"type": "array"}, ("minItems", "maxItems")),
        ({"type": "object"}, ("minProperties", "maxProperties")),
        (PERSON, ("minProperties", "maxProperties")),
        ({"type": "integer"}, BOUNDS),
        ({"type": "number"}, BOUNDS),
    ],
)
def test_a_bound_that_is_null_is_none(schema: dict[str, Any], bounds: tuple[str, ...]) -> None:
    assert json_grammar(schema | dict.fromkeys(bounds))
    for choice, other in permutations(bounds, 2):
        assert json_grammar(schema | {choice: None, other: 1}) == json_grammar(schema | {other: 1})


def test_a_schema_may_be_just_so_deep() -> None:
    assert json_grammar(nested(MAX_DEPTH))


def test_a_grammar_that_grows_too_large_is_refused() -> None:
    many = {f"property_{n}": {"type": ["string", "integer", "null"]} for n in range(900)}
    with pytest.raises(BadInput):
        json_grammar({"type": "object", "properties": many})


def test_how_many_properties_may_come_makes_no_grammar_without_an_end() -> None:
    many = {f"p{n}": {"type": "null"} for n in range(100)}
    assert json_grammar({"type": "object", "properties": many, "minProperties": 3})
    with pytest.raises(BadInput, match="schema_refused"):
        json_grammar({"type": "object", "properties": many, "minProperties": 60})


@pytest.mark.parametrize(
    ("depth", "kinds", "leaves"), [(9, 4, 1), (1, 500, 1000)], ids=["within each other", "many at once"]
)
def test_types_of_which_each_repeats_what_is_below_are_no_work_without_an_end(
    depth: int, kinds: int, leaves: int
) -> None:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        properties = {f"p{n}": schema for n in range(leaves)}
        schema = {"type": ["object"] * kinds, "properties": properties}
    begun_s = time.process_time()
    with pytest.raises(BadInput, match="schema_refused"):
        json_grammar(schema)
    assert time.process_time() - begun_s < 1


def test_references_may_be_circular_and_many() -> None:
    tree = {"$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"}
    assert len(json_grammar(tree)) < 2000
    chain: Any = {f"d{n}": {"type": "array", "items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(600)}
    chain["d600"] = {"type": "null"}
    text = json_grammar({"$defs": chain, "$ref": "#/$defs/d0"})
    assert len(text.encode()) <= MAX_GRAMMAR_BYTES


def test_signs_in_a_reference_are_written_otherwise() -> None:
    schema = {"$ref": "#/$defs/a~1b~01c", "$defs": {"a/b~1c": {"const": "found"}}}
    assert "found" in json_grammar(schema)


def test_a_literal_is_escaped() -> None:
    assert literal('a"b\\c\nd\te\rf') == '"a\\"b\\\\c\\nd\\te\\rf"'
    assert '"\\"say \\\\\\"hi\\\\\\"\\""' in json_grammar({"const": 'say "hi"'})


def test_each_rule_is_there_once_and_all_that_are_named_are_there() -> None:
    text = json_grammar(PERSON)
    names = [line.split(" ::= ")[0] for line in text.splitlines()]
    assert len(names) == len(set(names))
    assert names[0] == "root"
    assert json.dumps("age").replace('"', '\\"') in text
