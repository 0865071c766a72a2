"""llama.cpp's own grammars, made from JSON schemas: what they let through, and what not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from uuid import UUID

import pytest

from app.core.json_schema.json_grammar import json_grammar
from backends.contract import GREEDY, Layers, Role, StageError
from backends.llamacpp.stage import LlamaStage
from backends.sampling import Sampler, make_sampler
from testbed import tiny
from tests.backends import cutting

N_VOCAB, END = 300, 1
DATE = {"type": "object", "properties": {"day": {"type": "integer"}, "month": {"enum": ["May", "June"]}}}
LIST = {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}
FEW = {"type": "object", "properties": {name: {"type": "null"} for name in "abcd"}}
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
PAIR = {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}]}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["children"],
        }
    },
}


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tiny.llama(tmp_path_factory.mktemp("schemas") / "whole.gguf", layers=1)
    with closing(LlamaStage(cutting.config(path, Layers(0, 1), Role.WHOLE, 64))) as loaded:
        yield loaded.vocabulary


def lets_through(vocab: str, schema: object, text: str) -> bool:
    return allows(vocab, json_grammar(schema), text)


def allows(vocab: str, grammar: str, text: str) -> bool:
    """Return whether the whole text is allowed, and the answer may end there."""
    ids = [tiny.FIRST_BYTE + byte for byte in text.encode()]
    sampling = replace(GREEDY, grammar=grammar)
    try:
        sampler = make_sampler(sampling, N_VOCAB, vocab, ids, len(ids))
    except StageError as error:
        if "the answer so far" not in str(error):
            raise
        return False
    assert isinstance(sampler, Sampler)
    assert sampler._grammar is not None
    return sampler._grammar.allows(END)


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        (DATE | {"required": ["day"]}, '{"day": 3}', '{"month": "May"}'),
        (DATE | {"required": ["day"]}, '{"day":3,"month":"May"}', '{"day":3,"month":"July"}'),
        (DATE | {"required": ["month"]}, '{"month": "June"}', '{"day": 3}'),
        (DATE, "{}", '{"day": 3,}'),
        (DATE, '{"month": "May"}', '{, "month": "May"}'),
        (LIST, "[true, false]", "[]"),
        (LIST, "[true]", "[true, true, true, true]"),
        ({"type": "array", "maxItems": 0}, "[]", "[1]"),
        ({"type": "array", "items": {"type": "null"}}, "[]", "[,]"),
        ({"type": "array", "prefixItems": [{"type": "null"}, {}]}, '[null, {"a": 1}]', "[null]"),
        ({"type": "string", "minLength": 2, "maxLength": 3}, '"abc"', '"a"'),
        ({"type": "string", "format": "date"}, '"2024-02-29"', '"2023-02-29"'),
        ({"type": "string", "format": "time"}, '"23:59:59.5+01:00"', '"24:00:00Z"'),
        ({"type": "string", "format": "date-time"}, '"2000-12-31T12:00:00Z"', '"2000-12-31"'),
        ({"type": "string", "format": "uuid"}, f'"{UUID(int=9)}"', f'"{UUID(int=9).hex}"'),
        ({"type": "string", "format": "ipv4"}, '"192.168.0.255"', '"192.168.0.256"'),
        ({"type": "string", "format": "ipv6"}, '"fe80::1:192.168.0.1"', '"fe80::1::2"'),
        ({"type": "string", "format": "duration"}, '"P1Y2M3DT4H5M6S"', '"P1W1D"'),
        ({"type": "string", "format": "hostname"}, f'"{"a-b" * 20}.example.com"', '"a-.com"'),
        ({"type": "string", "format": "email"}, '"jane.doe+x@mail.example.com"', '"jane@doe@example.com"'),
        ({"type": "string"}, r'"a\nA"', '"a\nb"'),
        ({"type": "number"}, "-1.5e3", "01"),
        ({"type": "integer"}, "-12", "1.5"),
        ({"type": ["integer", "null"]}, "null", '"x"'),
        ({"type": "integer", "minimum": -3, "maximum": 1234}, "1199", "1235"),
        ({"type": "array", "items": {"type": "integer", "minimum": 10}}, "[10, 345]", "[9]"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "0.75", "1.5"),
        ({"type": "number", "exclusiveMinimum": 0}, "12.5", "0.0"),
        ({"anyOf": [{"const": "a"}, {"type": "boolean"}]}, '"a"', '"b"'),
        ({"allOf": [{"type": "boolean"}]}, "true", "1"),
        ({"type": "object"}, '{"a": [1, {"b": null}]}', "[]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, '{"a": 1}', '{"a": "b"}'),
        ({"type": "object", "required": ["a"]}, '{"a": []}', "{}"),
        (FEW | {"minProperties": 1}, '{"d": null}', "{}"),
        (FEW | {"minProperties": 3}, '{"a": null, "c": null, "d": null}', '{"a": null, "d": null}'),
        (FEW | {"maxProperties": 1}, '{"c": null}', '{"a": null, "c": null}'),
        (FEW | {"maxProperties": 0}, "{}", '{"a": null}'),
        (FEW | {"maxProperties": 2, "required": ["d"]}, '{"b": null,"d": null}', '{"a": null,"b": null}'),
        (FEW | {"minProperties": 2, "maxProperties": 2}, '{"a": null, "d": null}', '{"a": null}'),
        (FEW | {"minProperties": 4}, '{"a":null,"b":null,"c":null,"d":null}', '{"b":null,"c":null,"d":null}'),
        (MAP | {"minProperties": 1}, '{"x": 1}', "{}"),
        (MAP | {"maxProperties": 2}, '{"x": 1, "y": 2}', '{"x": 1, "y": 2, "z": 3}'),
        (PAIR | {"maxItems": 1}, "[null]", "[null, true]"),
        (PAIR | {"minItems": 3}, "[null, true, 7]", "[null, true]"),
        (PAIR | {"items": {"type": "integer"}}, "[null, true, 1, 2]", '[null, true, "1"]'),
        (PAIR | {"items": {"type": "null"}, "maxItems": 3}, "[null, true, null]", "[null, true, null, null]"),
        ({"type": "string", "enum": ["a", 1]}, '"a"', "1"),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {}]}, '{"b": 1}', "1"),
        ({"type": ["integer", "null"], "anyOf": [{"minimum": 3}]}, "4", "2"),
        ({"type": "number", "anyOf": [{"type": "integer"}]}, "4", "4.5"),
        ({"type": "integer", "enum": [2.0, 1.5, True]}, "2.0", "1.5"),
        ({}, '[{"a": "b"}]', "["),
        (TREE, '{"children": [{"children": []}]}', '{"children": [1]}'),
        ({"const": 'say "hi"\\'}, '"say \\"hi\\"\\\\"', '"say"'),
    ],
)
def test_a_schema_lets_through(vocab: str, schema: object, right: str, wrong: str) -> None:
    assert lets_through(vocab, schema, right)
    assert not lets_through(vocab, schema, wrong)
