"""Grammars of calls: what stands in them, and schemas that none can be made of."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.errors import BadInput
from app.core.json_schema.json_grammar import MAX_GRAMMAR_BYTES, json_grammar
from app.core.tools.call_grammar import calls_grammar, calls_or_json
from tests.core.call_formats import FORMATS

SCHEMA = {"type": "object", "properties": {"zone": {"enum": ["UTC"]}}, "required": ["zone"]}
TAGGED = ["glm", "qwen_coder"]


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_a_forced_call_has_a_grammar(style: str) -> None:
    text = calls_grammar(FORMATS[style], {"clock": SCHEMA, "stop": {}}, many=True)
    assert "clock" in text
    assert ('\\"name\\": \\"clock\\"' in text) == (style in ("hermes", "mistral", "llama3"))
    assert ("parameters" in text) == (style == "llama3")
    assert text.count("root ::= ") == 1


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_only_a_grammar_for_many_lets_a_model_call_twice(style: str) -> None:
    many, name = (calls_grammar(FORMATS[style], {"clock": {}}, many=many) for many in (True, False))
    assert "{0,7}" in many.splitlines()[0]
    assert "{0,0}" in name.splitlines()[0]


@pytest.mark.parametrize("style", TAGGED)
@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array"}, "no object with properties"),
        ({"anyOf": [SCHEMA]}, "no object with properties"),
        ([], "no object with properties"),
        ({"$ref": "#/nothing"}, "no object with properties"),
        ({"properties": []}, "no list of schemas"),
        ({"required": [["a"]]}, "no name"),
        ({"properties": {"a>b": {}}}, "of this name"),
        ({"properties": {"a": {"type": "string", "pattern": "x"}}}, "pattern is not supported"),
        ({"properties": {"a": {"type": "string", "maxLength": -1}}}, "maxLength"),
    ],
)
def test_a_schema_that_cannot_be_kept_is_refused(style: str, schema: object, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        calls_grammar(FORMATS[style], {"clock": schema}, many=False)


def long_enum(n: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"one": {"enum": [f"{'x' * 90}{i}" for i in range(n)]}}}


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_tools_without_a_grammar_take_any_arguments_where_nobody_must_call(style: str) -> None:
    """Covers single tools, tools that are too long together, and finally an answer of JSON alone."""
    odd = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
    answer = {"enum": ["yes", "no"]}
    loose = calls_or_json(FORMATS[style], {"clock": {}, "odd": odd}, True, answer)
    assert loose == calls_grammar(FORMATS[style], {"clock": {}, "odd": None}, True, answer)
    assert "odd" in loose.splitlines()[0]
    many = {f"t{n}": long_enum(50) for n in range(20)}
    text = calls_or_json(FORMATS[style], many, False, answer)
    assert text == calls_grammar(FORMATS[style], dict.fromkeys(many), False, answer)
    large = long_enum(600)
    assert len(json_grammar(large)) < MAX_GRAMMAR_BYTES
    named: dict[str, Any] = {f"{'t' * 90}{n}": {} for n in range(128)}
    assert calls_or_json(FORMATS[style], named, True, large) == json_grammar(large)


def test_the_form_of_an_answer_that_cannot_be_kept_is_refused_beside_tools() -> None:
    with pytest.raises(BadInput, match="pattern is not supported"):
        calls_or_json(FORMATS["hermes"], {"clock": SCHEMA}, True, {"type": "string", "pattern": "x"})


@pytest.mark.parametrize("style", sorted(FORMATS))
@pytest.mark.parametrize("form", ["date", "none"])
def test_a_length_that_is_null_is_none(style: str, form: str) -> None:
    text = {"type": "string", "format": form, "maxLength": 90}
    plain, null = (
        calls_grammar(FORMATS[style], {"clock": {"properties": {"a": item}}}, many=False)
        for item in (text, text | {"minLength": None})
    )
    assert null == plain
