"""Arguments that a model wrote as plain text, as the values that their schema means."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.tools.argument_values import ANY, accepted_values, parse_argument
from app.core.tools.call_cursor import Call, complete_calls
from app.core.tools.call_finder import CallFinder
from tests.core.call_formats import FORMATS

ROOT = {"$defs": {
    "size": {"enum": ["1", "2", 3]}, "loop": {"$ref": "#/$defs/loop"},
    "either": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/either"}]},
}}  # fmt: skip
MAYBE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " 12", " 12"),
        ({"type": "string"}, '"quoted"', '"quoted"'),
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, " -12\n", -12),
        ({"type": "integer"}, "1.5", "1.5"),  # nothing better: who asked may still read it
        ({"type": "integer"}, "2.0", 2.0),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "1", "1"),
        ({"type": "null"}, "None", None),
        ({"type": "array", "items": {}}, '["a", 1]', ["a", 1]),
        ({"type": "object"}, '{"a": {}}', {"a": {}}),
        ({"type": "object"}, "{'a': 1}", "{'a': 1}"),
        ({"properties": {}}, '{"a": 1}', {"a": 1}),
        ({"type": ["integer", "string"]}, "12", 12),
        ({"type": ["integer", "string"]}, "twelve", "twelve"),
        (MAYBE, "null", None),
        (MAYBE, "12", "12"),
        ({"enum": ["UTC", "CET"]}, "UTC", "UTC"),
        ({"enum": ["UTC", "CET"]}, '"UTC"', "UTC"),
        ({"const": 5}, "5", 5),
        ({"$ref": "#/$defs/size"}, "1", "1"),
        ({"$ref": "#/$defs/size"}, "3", 3),
        ({"$ref": "#/$defs/loop"}, "3", 3),
        ({"$ref": "#/nowhere"}, "[1]", [1]),
        ({}, "12", 12),
        ({}, "a b", "a b"),
        (None, "true", True),
        ({"type": "array"}, "[" * 100_000, "[" * 100_000),
        ({"type": "integer"}, "9" * 5_000, "9" * 5_000),
        ({"type": "number"}, "1e400", "1e400"),  # no JSON has it
        ({"type": "array"}, "[" * 70 + "]" * 70, "[" * 70 + "]" * 70),
        ({"$ref": "#/$defs/either"}, "3", 3),
        ({"$ref": "#/$defs/either"}, "true", "true"),
    ],
)  # fmt: skip
def test_an_argument_is_what_its_schema_means(schema: object, text: str, value: object) -> None:
    argument = parse_argument(text, accepted_values(schema, ROOT))
    assert argument == value
    assert type(argument) is type(value)


PLAIN = st.text('ab <>/=\n"\\{}ä', max_size=8)
VALUES = st.one_of(
    PLAIN,
    st.sampled_from(["</tool_call>", "<parameter=a>", "\n</function>\n", "\n\n", "</", "[ARGS]", "12", "null"]),
    st.integers(-(10**9), 10**9), st.booleans(), st.none(), st.floats(-1e6, 1e6),
    st.lists(PLAIN, max_size=2), st.dictionaries(PLAIN, st.integers(0, 9), max_size=1),
)  # fmt: skip
NAMES = st.sampled_from(["zone", "exact", "x y", "ä"])
KINDS = {str: "string", int: "integer", bool: "boolean", float: "number", list: "array", dict: "object"}  # fmt: skip


def written(style: str, arguments: dict[str, Any]) -> str:
    """Write a call as the templates of a family do."""
    plain = {key: v if isinstance(v, str) else json.dumps(v) for key, v in arguments.items()}
    match style:
        case "qwen_coder":
            inner = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in plain.items())
            return f"<tool_call>\n<function=clock>\n{inner}</function>\n</tool_call>"
        case "glm":
            inner = "".join(f"<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n" for k, v in plain.items())
            return f"<tool_call>clock\n{inner}</tool_call>"
    return f"[TOOL_CALLS]clock[ARGS]{json.dumps(arguments)}"


def test_choices_among_themselves_are_no_work_without_an_end() -> None:
    loop: Any = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 60}}, "$ref": "#/$defs/a"}
    begun_s = time.process_time()
    assert accepted_values(loop, loop) == ANY
    assert time.process_time() - begun_s < 1


@given(
    st.sampled_from(["qwen_coder", "glm", "ministral"]),
    st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=2),
    st.data(),
)
def test_every_call_that_a_template_writes_is_read_cut_anywhere(
    style: str, several: list[dict[str, Any]], data: st.DataObject
) -> None:
    """One schema for all of them, of the kinds that the first uses of each name says."""
    kinds: dict[str, Any] = {}
    for arguments in several:
        for key, value in arguments.items():
            kinds.setdefault(key, type(value))
    several = [{k: v for k, v in item.items() if type(v) is kinds[k]} for item in several]
    schema = {"properties": {k: {"type": KINDS.get(kind, "null")} for k, kind in kinds.items()}}
    text = "I look.\n" + "\n".join(written(style, item) for item in several)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    finder = CallFinder(FORMATS[style], {"clock": schema})
    output, calls = "", list[Call]()
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        more, results = finder.push(text[start:end])
        output, calls = output + more, calls + complete_calls(results)
    rest, results = finder.flush()
    assert output + rest == "I look."
    assert [json.loads(call.arguments) for call in calls + complete_calls(results)] == several
