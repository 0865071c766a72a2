"""An answer that was cut within a call: which tool it was of, and what of its arguments is whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json_schema.partial_json import certain_part
from app.core.tools.call_cursor import Call, complete_calls
from app.core.tools.call_finder import CallFinder, truncated_calls
from app.core.tools.call_markers import markers_of
from tests.core.call_formats import FORMATS

TOOLS: dict[str, object] = {"clock": {"properties": {"n": {"type": "integer"}}}}
ARGUMENTS = {"zone": "UTC", "n": 12}
JSON = '{"name": "clock", "arguments": {"zone": "UTC", "n": 12}}'
WHOLE = {
    "hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "llama3": JSON.replace("arguments", "parameters"),
    "mistral": f"[TOOL_CALLS][{JSON}]",
    "ministral": '[TOOL_CALLS]clock[CALL_ID]123456789[ARGS]{"zone": "UTC", "n": 12}',
    "qwen_coder": "<tool_call>\n<function=clock>\n<parameter=zone>\nUTC\n</parameter>\n"
                  "<parameter=n>\n12\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>clock\n<arg_key>zone</arg_key>\n<arg_value>UTC</arg_value>\n<arg_key>n</arg_key>\n"
           "<arg_value>12</arg_value>\n</tool_call>",
    "kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>'
            '{"zone": "UTC", "n": 12}<|tool_call_end|><|tool_calls_section_end|>',
}  # fmt: skip


def read(style: str, text: str, *, is_cut: bool) -> tuple[str, list[Call]]:
    finder = CallFinder(FORMATS[style], TOOLS)
    output, calls = finder.push(text)
    rest, last = finder.flush(is_cut=is_cut)
    return output + rest, complete_calls([*calls, *last])


@pytest.mark.parametrize("style", WHOLE)
def test_wherever_a_call_is_cut_it_is_told_once_it_is_clear_of_which_tool_it_is(style: str) -> None:
    seen = set[str]()
    for size in range(1, len(WHOLE[style])):
        text = WHOLE[style][:size]
        output, calls = read(style, text, is_cut=True)
        if not calls:
            assert output == text
            assert not seen, f"it was clear before {text!r}"
            continue
        (call,) = calls
        assert (output, call.name) == ("", "clock")
        assert certain_part(call.arguments).items() <= ARGUMENTS.items()
        if call.half:
            assert call.half in text
            with pytest.raises(ValueError, match=r"."):
                json.loads(call.arguments)
            assert read(style, text, is_cut=False) == (text, [])  # the model ended it so
        seen.add(call.arguments)
    assert {"{", '{"zone": "UTC"'} <= seen


TWO = {
    "hermes": 2 * WHOLE["hermes"], "llama3": WHOLE["llama3"] + "; " + WHOLE["llama3"],
    "mistral": f"[TOOL_CALLS][{JSON}, {JSON}]", "ministral": 2 * WHOLE["ministral"], "glm": 2 * WHOLE["glm"],
    "qwen_coder": WHOLE["qwen_coder"].replace("</tool_call>", WHOLE["qwen_coder"][12:]),
    "kimi": WHOLE["kimi"].replace("<|tool_calls_section_end|>", WHOLE["kimi"][28:]),
}  # fmt: skip


@pytest.mark.parametrize("style", TWO)
def test_the_calls_before_it_are_whole(style: str) -> None:
    text = TWO[style][: TWO[style].rindex("UTC") + 3]
    before = "" if style == "llama3" else "I look."  # its calls stand alone
    output, (first, second) = read(style, before + text, is_cut=True)
    assert output == before
    assert (first.name, json.loads(first.arguments), first.half) == ("clock", ARGUMENTS, "")
    assert (second.name, second.arguments) == ("clock", "{")
    assert second.half


@pytest.mark.parametrize("style", WHOLE)
def test_half_a_call_of_a_tool_that_is_not_there_is_text(style: str) -> None:
    text = WHOLE[style].replace("clock", "rm")[: -len("12}}\n</tool_call>")]
    assert read(style, text, is_cut=True) == (text, [])


@pytest.mark.parametrize("name", ['["Ada", "Grace"]', '{"first": "Ada"}', "7", "null"])
@pytest.mark.parametrize("style", ["hermes", "llama3", "mistral"])
def test_an_answer_in_json_whose_name_is_no_text_is_text(style: str, name: str) -> None:
    text = WHOLE[style].replace('"clock"', name)[: -len("12}}\n</tool_call>")]
    assert read(style, text, is_cut=True) == (text, [])


KEYS = st.sampled_from(["name", "arguments", "parameters", "zone"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.sampled_from(["clock", "rm", "\ud800"]),
    lambda of: st.lists(of, max_size=2) | st.dictionaries(KEYS, of, max_size=3),
    max_leaves=6,
)
SIGNS = ["functions.clock:0", "clock", "n", "{", "[", ", ", "; ", "\n"] + [
    sign for call_format in FORMATS.values() for sign in markers_of(call_format).all
]
PIECES = st.lists(st.sampled_from(SIGNS) | VALUES.map(json.dumps), min_size=1, max_size=8)


@pytest.mark.parametrize("style", WHOLE)
@given(pieces=PIECES, lacks=st.integers(0, 30))
def test_whatever_was_cut_is_read_to_its_end(style: str, pieces: list[str], lacks: int) -> None:
    text = "".join(pieces)
    cut = text[: max(1, len(text) - lacks)]
    calls = truncated_calls(FORMATS[style], cut, TOOLS) + read(style, cut, is_cut=True)[1]
    assert {call.name for call in calls} <= TOOLS.keys()
