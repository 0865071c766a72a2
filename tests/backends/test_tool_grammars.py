"""llama.cpp's own grammars of calls: what they let a model of each family write, and that this is read as a call."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from app.core.json_schema.json_grammar import Rules, literal
from app.core.tools.call_cursor import complete_calls
from app.core.tools.call_finder import CallFinder
from app.core.tools.call_grammar import calls_grammar, calls_or_json
from backends.contract import CallFormat, CallSyntax, Layers, Role
from backends.llamacpp.stage import LlamaStage
from testbed import tiny
from tests.backends import cutting
from tests.backends.call_samples import of_template
from tests.backends.test_json_schemas import allows
from tests.core.call_formats import FORMATS

SCHEMA = {
    "type": "object",
    "properties": {
        "zone": {"enum": ["UTC", "CET", 3]},
        "why": {"type": "string"},
        "code": {"type": "string", "minLength": 1, "maxLength": 2},
        "maybe": {"$ref": "#/$defs/maybe"},
    },
    "required": ["zone"],
    "$defs": {"maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
}
QWEN = "<tool_call>\n<function=clock>\n{}</function>\n</tool_call>"
GLM = "<tool_call>clock\n{}</tool_call>"


def qwen(**arguments: str) -> str:
    return QWEN.format("".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in arguments.items()))


def glm(**arguments: str) -> str:
    return GLM.format("".join(f"<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n" for k, v in arguments.items()))


def kimi(*texts: str) -> str:
    calls = "".join(
        f"<|tool_call_begin|>functions.clock:{n}<|tool_call_argument_begin|>{text}<|tool_call_end|>"
        for n, text in enumerate(texts, 9)
    )
    return f"<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>"


def ministral(text: str) -> str:
    return f"[TOOL_CALLS]clock[ARGS]{text}"


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tiny.llama(tmp_path_factory.mktemp("tools") / "whole.gguf", layers=1)
    with closing(LlamaStage(cutting.config(path, Layers(0, 1), Role.WHOLE, 64))) as loaded:
        yield loaded.vocabulary


NASTY = "a < b\n</param\n</parameter <</arg_value <<<"
RIGHT: list[tuple[str, str, object]] = [
    ("ministral", ministral('{"zone": "CET"}'), [{"zone": "CET"}]),
    ("ministral", ministral('{"zone": 3}') * 2, [{"zone": 3}] * 2),
    ("kimi", kimi('{"zone": "CET"}'), [{"zone": "CET"}]),
    (
        "kimi",
        kimi('{"zone": 3, "why": "<|tool_"}', '{"zone": "UTC"}'),
        [{"zone": 3, "why": "<|tool_"}, {"zone": "UTC"}],
    ),
]
RIGHT += [
    (style, text, values)
    for style, write in (("qwen_coder", qwen), ("glm", glm))
    for text, values in (
        (write(zone="UTC"), [{"zone": "UTC"}]),
        (write(zone="3", maybe="null"), [{"zone": 3, "maybe": None}]),
        (write(zone="3", why="", code="ab", maybe="-7"), [{"zone": 3, "why": "", "code": "ab", "maybe": -7}]),
        (write(zone="CET", why=NASTY), [{"zone": "CET", "why": NASTY}]),
        (write(zone="CET") + "\n" + write(zone="UTC"), [{"zone": "CET"}, {"zone": "UTC"}]),
    )
]  # fmt: skip
WRONG = [
    ("ministral", ministral('{"zone": "X"}')),
    ("ministral", ministral("[]")),
    ("kimi", kimi()),
    ("kimi", kimi("[]")),
    ("kimi", kimi('{"zone": "X"}')),
    ("kimi", kimi('{"zone": "CET"}').replace("clock", "other")),
    ("kimi", kimi('{"zone": "CET"}').replace(":9", ":")),
    ("kimi", kimi('{"zone": "CET"}') * 2),
    ("ministral", ministral('{"zone": "CET"}').replace("clock", "other")),
    *((style, text) for style, write in (("qwen_coder", qwen), ("glm", glm)) for text in (
        write(), write(zone="X"), write(zone="UTC", maybe="x"), write(zone="UTC", code="abc"),
        write(zone="UTC", code=""),
        write(zone="UTC", other="x"), write(zone="UTC").replace("clock", "other"), write(zone="UTC")[:-2],
        write(zone="UTC", why="</arg_value></parameter>"), write(zone="UTC") + "x",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("style", "text", "values"), RIGHT)
def test_a_call_is_let_through_and_read(vocab: str, style: str, text: str, values: object) -> None:
    assert allows(vocab, calls_grammar(FORMATS[style], {"clock": SCHEMA}, many=True), text)
    finder = CallFinder(FORMATS[style], {"clock": SCHEMA})
    (result, calls), (rest, last) = finder.push(text), finder.flush()
    assert result + rest == ""
    assert [json.loads(call.arguments) for call in complete_calls([*calls, *last])] == values


@pytest.mark.parametrize(("style", "text"), WRONG)
def test_what_is_no_call_of_this_schema_is_not(vocab: str, style: str, text: str) -> None:
    assert not allows(vocab, calls_grammar(FORMATS[style], {"clock": SCHEMA}, many=True), text)


ANSWER = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}
OF_EACH = {
    "hermes": '<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>',
    "qwen_coder": qwen(zone="UTC"),
    "glm": glm(zone="UTC"),
    "kimi": kimi('{"zone": "UTC"}'),
    "mistral": '[TOOL_CALLS][{"name": "clock", "arguments": {"zone": "UTC"}}]',
    "ministral": ministral('{"zone": "UTC"}'),
    "llama3": '{"name": "clock", "parameters": {"zone": "UTC"}}',
}


@pytest.mark.parametrize("style", OF_EACH)
def test_a_model_may_call_or_answer_in_the_form_that_is_asked(vocab: str, style: str) -> None:
    grammar, call = calls_or_json(FORMATS[style], {"clock": SCHEMA}, True, ANSWER), OF_EACH[style]
    for right in (call, '{"done": true}'):
        assert allows(vocab, grammar, right)
    other = [call.replace("UTC", "X"), call.replace("clock", "other"), call + '{"done": true}']
    for wrong in ("", "It is noon.", '{"done": 1}', *other):
        assert not allows(vocab, grammar, wrong)


@pytest.mark.parametrize("style", OF_EACH)
def test_a_tool_of_a_schema_that_cannot_be_kept_takes_what_the_model_writes(vocab: str, style: str) -> None:
    odd = {"type": "object", "properties": {"zone": {"type": "string", "pattern": "x"}}}
    grammar, call = calls_or_json(FORMATS[style], {"clock": odd}, True, ANSWER), OF_EACH[style]
    finder, mine = CallFinder(FORMATS[style], {"clock": odd}), call.replace("UTC", "X <y")
    for right in (call, mine, '{"done": true}'):
        assert allows(vocab, grammar, right)
    calls = complete_calls([*finder.push(mine)[1], *finder.flush()[1]])
    assert [json.loads(call.arguments) for call in calls] == [{"zone": "X <y"}]
    assert not allows(vocab, grammar, call.replace("clock", "other"))


@pytest.mark.many(keep=2)
@pytest.mark.parametrize("end", ["</arg>", "]<]m[>[</x>", "<|close|>arg", "aab"])
def test_a_text_may_hold_all_but_its_end(vocab: str, end: str) -> None:
    """This includes ends whose first character occurs in them again."""
    rules = Rules()
    grammar = rules.grammar(f"{rules.without(end)} {literal(end)}")
    chance = random.Random(5)
    inner = ["", end[:-1], end[:2] * 3, end[:-1] * 2, end, end[0] + end, end + "x"]
    inner += ["".join(chance.choices(end + "x\n", k=chance.randrange(12))) for _ in range(20)]
    for text in (item + end for item in inner):
        assert allows(vocab, grammar, text) == (text.find(end) == len(text) - len(end)), text


def test_a_sign_that_the_prompt_has_written_is_not_written_again(vocab: str) -> None:
    """Functionary's prompts end with the sign of a call; a text stands behind a name of its own."""
    call_format = CallFormat(CallSyntax.NAMED, lead=">>>", named="\n", prompt_marker=">>>", answer_marker="all\n")
    grammar = calls_or_json(call_format, {"clock": SCHEMA}, True, ANSWER)
    call = 'clock\n{"zone": "UTC"}'
    for right in (call, f"{call}>>>{call}", 'all\n{"done": true}'):
        assert allows(vocab, grammar, right)
    for wrong in (f">>>{call}", call * 2, '{"done": true}'):
        assert not allows(vocab, grammar, wrong)


def test_what_is_in_a_nested_list_is_promised_too(vocab: str) -> None:
    """MiniMax M3 writes a list's items as elements."""
    item = of_template("MiniMax-M3")
    assert item is not None
    of = {"type": "object", "properties": {"n": {"type": "integer"}, "why": {"type": "string"}}}
    schema = {"type": "object", "properties": {"all": {"type": "array", "items": of}}}
    grammar = calls_grammar(item, {"clock": schema}, many=False)
    sign = "]<]minimax[>["
    whole = (
        f'{sign}<tool_call>\n{sign}<invoke name="clock">{sign}<all>{sign}<item>{sign}<n>1{sign}</n>'
        f"{sign}<why>a ] <b>{sign}</why>{sign}</item>{sign}</all>{sign}</invoke>\n{sign}</tool_call>"
    )
    assert allows(vocab, grammar, whole)
    for wrong in (("<n>1", "<n>x"), ("a ]", f"{sign}</invoke>"), ("<item>", "<other>")):
        assert not allows(vocab, grammar, whole.replace(*wrong))
    finder = CallFinder(item, {"clock": schema})
    calls = complete_calls([*finder.push(whole)[1], *finder.flush()[1]])
    assert [json.loads(call.arguments) for call in calls] == [{"all": [{"n": 1, "why": "a ] <b>"}]}]
