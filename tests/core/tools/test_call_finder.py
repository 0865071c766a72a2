"""Calls in what a model writes, whole or in pieces; and what is no call."""

from __future__ import annotations

import json
import re
import sys
from itertools import product
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.tools.call_cursor import ArgumentPiece, Call, CallStarted, complete_calls, make_call
from app.core.tools.call_finder import CallFinder
from tests.core.call_formats import FORMATS

CLOCK = '{"name": "clock", "arguments": {"zone": "UTC"}}'
LLAMA = CLOCK.replace("arguments", "parameters")
CALLED = Call("clock", '{"zone": "UTC"}')
QWEN = "<tool_call>\n<function=clock>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n</tool_call>"
GLM = "<tool_call>clock\n<arg_key>zone</arg_key>\n<arg_value>UTC</arg_value>\n</tool_call>"
ARGS = '[TOOL_CALLS]clock[ARGS]{"zone": "UTC"}'
ONE = '<|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{"zone": "UTC"}<|tool_call_end|>'
KIMI = f"<|tool_calls_section_begin|>{ONE}<|tool_calls_section_end|>"


def found(style: str, parts: list[str]) -> tuple[str, list[Call]]:
    finder = CallFinder(FORMATS[style], {"clock": {}})
    output, calls = "", list[Call]()
    for text, some in [*(finder.push(part) for part in parts), finder.flush()]:
        output += text
        calls += complete_calls(some)
    return output, calls


SPLIT = re.compile(r"(?<=>)|(?=<)|(?<=\])|(?=\[)")
CASES: list[tuple[str, str, str | None, list[Call]]] = [
    ("hermes", f"<tool_call>\n{CLOCK}\n</tool_call>", "", [CALLED]),
    ("hermes", f"Let me look.\n<tool_call>{CLOCK}</tool_call>", "Let me look.", [CALLED]),
    ("hermes", f"<tool_call>{CLOCK}</tool_call>\n<tool_call>{CLOCK}</tool_call>", "", [CALLED] * 2),
    ("hermes", f"<tool_call>{CLOCK}", "", [CALLED]),  # it stopped before the end sign
    ("hermes", "<tool_call>{no json}</tool_call>", "<tool_call>{no json}</tool_call>", []),
    ("hermes", "<tool_call>{", "<tool_call>{", []),
    ("hermes", f"<think>a <tool_call> may do</think>\n<tool_call>{CLOCK}</tool_call>",
     "<think>a <tool_call> may do</think>", [CALLED]),
    ("hermes", f'<think><tool_call>{{"name"</think>\n<tool_call>{CLOCK}</tool_call>',
     '<think><tool_call>{"name"</think>', [CALLED]),
    ("hermes", f"<tool_call>{CLOCK.replace('UTC', '<tool_call>')}</tool_call>", "",
     [Call("clock", '{"zone": "<tool_call>"}')]),
    ("hermes", f"<tool_call>{CLOCK.replace('UTC', '</tool_call>')}</tool_call>", "",
     [Call("clock", '{"zone": "</tool_call>"}')]),
    ("hermes", f"<tool_call>{CLOCK.replace('UTC', '</tool_call>')}</tool_call>\n<tool_call>{CLOCK}</tool_call>", "",
     [Call("clock", '{"zone": "</tool_call>"}'), CALLED]),
    ("hermes", '<tool_call>{"name": "clock</tool_call> I see.', '<tool_call>{"name": "clock</tool_call> I see.', []),
    ("hermes", "<tool_call> ", "<tool_call> ", []),
    ("hermes", "a < b and <tool", "a < b and <tool", []),
    ("hermes", '<tool_call>{"name": "rm", "arguments": {}}</tool_call>', None, []),
    ("hermes", "two\n\nlines \n", "two\n\nlines \n", []),
    ("mistral", f"[TOOL_CALLS][{CLOCK}, {CLOCK}]", "", [CALLED] * 2),
    ("mistral", f"Well. [TOOL_CALLS] [{CLOCK}]", "Well.", [CALLED]),
    ("mistral", "[TOOL_CALLS] oh", "[TOOL_CALLS] oh", []),
    ("mistral", f"[TOOL_CALLS][{CLOCK}, {{}}]", None, []),
    ("mistral", f"[TOOL_CALLS][{CLOCK}]".replace("UTC", "Zürich"), "", [Call("clock", '{"zone": "Zürich"}')]),
    ("mistral", "[a list]", "[a list]", []),
    ("mistral", f"[TOOL_CALLS][{CLOCK}]".replace("UTC", "\\ud800"), "", [Call("clock", '{"zone": "\ufffd"}')]),
    ("llama3", '{"name": "clock", "parameters": {"zone": "UTC"}}', "", [CALLED]),
    ("llama3", '<|python_tag|>{"name": "clock", "parameters": {"zone": "UTC"}}', "", [CALLED]),
    ("llama3", f"{LLAMA}; {LLAMA}", "", [CALLED] * 2),
    ("llama3", f"<|python_tag|>{LLAMA};\n{LLAMA}\n", "", [CALLED] * 2),
    ("llama3", f"{LLAMA} and {LLAMA}", f"{LLAMA} and {LLAMA}", []),
    ("llama3", '{"name": "other", "parameters": {}}', '{"name": "other", "parameters": {}}', []),
    ("llama3", 'Write {"name": 1}', 'Write {"name": 1}', []),
    ("llama3", f"Write {LLAMA}", None, []),
    ("llama3", '{"name": "clock", "parameters": "x"}', '{"name": "clock", "parameters": "x"}', []),
    ("qwen_coder", QWEN, "", [CALLED]),
    ("qwen_coder", QWEN.replace("UTC", 'a "b') + f"\n{QWEN}", "", [Call("clock", '{"zone": "a \\"b"}'), CALLED]),
    ("qwen_coder", f"I look.\n\n{QWEN}\n{QWEN}", "I look.", [CALLED] * 2),
    ("qwen_coder", QWEN.removeprefix("<tool_call>\n"), "", [CALLED]),  # some of its models do so
    ("qwen_coder", QWEN.removesuffix("\n</tool_call>"), "", [CALLED]),
    ("qwen_coder", QWEN.replace("\n</function>", ""), "", [CALLED]),
    ("qwen_coder", QWEN.replace("\n", ""), "", [CALLED]),
    ("qwen_coder", QWEN.replace("\n<param", "\n" + QWEN[:28] + "\n<param"), QWEN[:28], [CALLED]),
    ("qwen_coder", QWEN.replace("clock", "rm"), None, []),
    ("qwen_coder", QWEN.replace("</parameter>", ""), None, []),
    ("qwen_coder", "#include <functional>\n<function=", None, []),
    ("qwen_coder", "<tool_call>\n<function=clock>\n</function>\n</tool_call>", "", [Call("clock", "{}")]),
    ("qwen_coder", f"<think>a <tool_call>, then <function=clock> it is</think>\n{QWEN}",
     "<think>a <tool_call>, then <function=clock> it is</think>", [CALLED]),
    ("qwen_coder", QWEN.replace("UTC", "</tool_call>"), "", [Call("clock", '{"zone": "</tool_call>"}')]),
    ("qwen_coder", QWEN.replace("UTC", "a </parameter> b\n"), "",
     [Call("clock", '{"zone": "a </parameter> b\\n"}')]),
    ("qwen_coder", QWEN + "\n\nDone.", "\n\nDone.", [CALLED]),
    ("qwen_coder", QWEN.removesuffix("</tool_call>") + "and so", "\nand so", [CALLED]),
    ("glm", GLM, "", [CALLED]),
    ("glm", GLM.replace("\n", ""), "", [CALLED]),
    ("glm", f"<think>I look.</think>\n{GLM}{GLM}", "<think>I look.</think>", [CALLED] * 2),
    ("glm", "<tool_call>clock</tool_call>", "", [Call("clock", "{}")]),
    ("glm", GLM.replace("clock", "rm"), None, []),
    ("glm", GLM.replace("clock", "clocks"), None, []),
    ("glm", GLM.removesuffix("</tool_call>"), None, []),  # more arguments might have come
    ("glm", GLM.replace("<arg_value>", ""), None, []),
    ("glm", "I may <tool_call> a clock", None, []),
    ("glm", f"<think><tool_call>clock is a tool</think>{GLM}", "<think><tool_call>clock is a tool</think>", [CALLED]),
    ("kimi", KIMI, "", [CALLED]),
    ("kimi", f"I look. {KIMI}", "I look.", [CALLED]),
    ("kimi", KIMI.replace(ONE, ONE + ONE.replace(":0", ":11")), "", [CALLED] * 2),
    ("kimi", KIMI.replace(ONE, f"\n{ONE}\n{ONE}\n") + " Done.", " Done.", [CALLED] * 2),
    ("kimi", KIMI.replace("tool_calls_section", "tool_call_section"), "", [CALLED]),
    ("kimi", ONE, "", [CALLED]),  # some leave the section out, or stop before its end
    ("kimi", KIMI.removesuffix("<|tool_calls_section_end|>"), "", [CALLED]),
    ("kimi", ONE.removesuffix("<|tool_call_end|>"), "", [CALLED]),
    ("kimi", ONE.replace("functions.", "").replace(":0", " : 0 "), None, []),
    ("kimi", ONE.replace("functions.", " ").replace(":0", ":0\n"), "", [CALLED]),
    ("kimi", ONE.replace(":0", ""), "", [CALLED]),
    ("kimi", ONE.replace("clock", "rm"), None, []),
    ("kimi", ONE.replace("clock", "clock" * 99), None, []),
    ("kimi", ONE.replace("{", "["), None, []),
    ("kimi", ONE.replace('{"zone": "UTC"}', '["UTC"]'), None, []),
    ("kimi", ONE.replace("}", ""), None, []),
    ("kimi", ONE.replace("<|tool_call_argument_begin|>", ""), None, []),
    ("kimi", f"{ONE[:70]}{ONE}", ONE[:70], [CALLED]),  # begun and left
    ("kimi", f"{KIMI[:-26]}{ONE[:85]}", "<|tool", [CALLED] * 2),
    ("kimi", "<|tool_calls_section_begin|> it is called", None, []),
    ("kimi", f"<think>a <|tool_call_begin|> may do</think>{KIMI}", "<think>a <|tool_call_begin|> may do</think>",
     [CALLED]),
    ("ministral", ARGS, "", [CALLED]),
    ("ministral", f"Well. {ARGS}{ARGS}", "Well.", [CALLED] * 2),
    ("ministral", ARGS.replace("[ARGS]", "[CALL_ID]a1b2c3d4e[ARGS]"), "", [CALLED]),
    ("ministral", f"[TOOL_CALLS][{CLOCK}]", "", [CALLED]),  # as older ones of its family
    ("mistral", ARGS, "", [CALLED]),
    ("ministral", ARGS.replace("clock", "rm"), None, []),
    ("ministral", ARGS + "oh", "oh", [CALLED]),
    ("ministral", '[TOOL_CALLS]clock[ARGS]["UTC"]', None, []),
    ("ministral", ARGS.replace("{", "[").replace("}", "]"), None, []),
    ("ministral", ARGS[:-1], None, []),
]  # fmt: skip


def test_a_name_may_have_dots_and_colons_in_kimis_form_too() -> None:
    tools: dict[str, object] = {name: {} for name in ("a.b", "functions.c", "d:1", "e", "b")}
    finder = CallFinder(FORMATS["kimi"], tools)
    for head, name in (
        ("functions.a.b:0", "a.b"),
        ("functions.functions.c:0", "functions.c"),
        ("functions.d:1:7", "d:1"),
        ("functions.d:1", "d:1"),
        ("e:12", "e"),
    ):
        _, calls = finder.push(ONE.replace("functions.clock:0", head) + " ")
        assert [call.name for call in complete_calls([*calls, *finder.flush()[1]])] == [name]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("style", "text", "expected", "calls"), CASES)
def test_text_and_calls_are_told_apart(
    style: str, text: str, expected: str | None, calls: list[Call], size: int
) -> None:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert found(style, parts) == (text if expected is None else expected, calls)


def test_text_is_told_as_soon_as_it_is_sure() -> None:
    finder = CallFinder(FORMATS["hermes"], {"clock": {}})
    assert finder.push("Hello <b") == ("Hello <b", [])
    assert finder.push(" and <tool") == (" and", [])
    assert finder.push(" box") == (" <tool box", [])
    assert finder.push(" <tool_call> is") == (" <tool_call> is", [])


@pytest.mark.parametrize(
    ("style", "spoken"),
    [
        ("hermes", "<tool_call> it"),
        ("glm", "<tool_call>I may"),
        ("qwen_coder", "<tool_call>\nI may"),
        ("kimi", "<|tool_calls_section_begin|>I may"),
        ("kimi", "<|tool_call_begin|>I may <|b"),
    ],
)
def test_so_is_a_sign_that_is_only_spoken_of(style: str, spoken: str) -> None:
    assert CallFinder(FORMATS[style], {"clock": {}}).push(f"A {spoken}") == (f"A {spoken}", [])


@given(st.data())
def test_where_a_text_is_cut_changes_nothing(data: st.DataObject) -> None:
    """Any text made of parts of calls gives the same text and calls, in one piece and in many."""
    style = data.draw(st.sampled_from(sorted(FORMATS)))
    own = [text for of, text, _, _ in CASES if of == style]
    pieces = sorted({*own, *(part for text in own for part in SPLIT.split(text)), *"<>[]{} \nUc"})
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=8)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert found(style, parts) == found(style, [text])


PARTS = {
    "qwen_coder": ("<tool_call>\n<function=clock>\n", "<parameter={n}>\nx\n</parameter>\n", "</function></tool_call>"),
    "glm": ("<tool_call>clock\n", "<arg_key>{n}</arg_key>\n<arg_value>x</arg_value>\n", "</tool_call>"),
    "kimi, one": ('<|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{{"a": "', "<|tool_call {n} ",
                  '"}}<|tool_call_end|><|tool_calls_section_end|>'),
    "qwen_coder, one": ("<tool_call>\n<function=clock>\n<parameter=a>", "</parameter> {n} ",
                        "</parameter></function></tool_call>"),
    "glm, one": ("<tool_call>clock<arg_key>a</arg_key><arg_value>", "</arg_value> {n} ", "</arg_value></tool_call>"),
}  # fmt: skip


def steps(style: str, n_parts: int) -> int:
    """Return how many functions are called to read a call of this many parts, token by token."""
    first, part, last = PARTS[style]
    text = first.format() + "".join(part.format(n=n) for n in range(n_parts)) + last.format()
    finder, calls, n_calls = (CallFinder(FORMATS[style.partition(",")[0]], {"clock": {}}), list[Call](), 0)

    def count(_frame: FrameType, _event: str, _of: object) -> None:
        nonlocal n_calls
        n_calls += 1

    sys.setprofile(count)
    try:
        for at in range(0, len(text), 4):
            calls += complete_calls(finder.push(text[at : at + 4])[1])
    finally:
        sys.setprofile(None)
    assert [call.name for call in calls] == ["clock"]
    return n_calls


@pytest.mark.parametrize("style", PARTS)
def test_a_long_call_is_read_once(style: str) -> None:
    """Twice as long takes twice as many steps: it is not read again for each token."""
    assert steps(style, 400) < 2.5 * steps(style, 200)


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_what_begins_over_and_over_stays_text(style: str) -> None:
    """Each of these is the beginning of something, ten thousand times."""
    for text in (
        "<tool_call>",
        "<tool_call>\n<function=clock>\n",
        "<parameter=a>",
        "<arg_key>",
        "[TOOL_CALLS]",
        "<|tool_calls_section_begin|>",
        ONE[:71],
    ):
        output, calls = found(style, [text * 2_000])
        assert (output, calls) == (text * 2_000, [])


WITH = {  # an argument, as each family writes it
    "hermes": f"<tool_call>{CLOCK}</tool_call>".replace('"UTC"', "VALUE"),
    "qwen_coder": QWEN.replace("UTC", "VALUE"),
    "glm": GLM.replace("UTC", "VALUE"),
    "kimi": KIMI.replace('"UTC"', "VALUE"),
    "mistral": f"[TOOL_CALLS][{CLOCK}]".replace('"UTC"', "VALUE"),
    "ministral": ARGS.replace('"UTC"', "VALUE"),
    "llama3": LLAMA.replace('"UTC"', "VALUE"),
}
DEEP = [*(f"{'[' * depth}{']' * depth}" for depth in range(800, 1000, 2)), "[" * 990]


@pytest.mark.parametrize("style", [*FORMATS])
@pytest.mark.parametrize("values", [DEEP, ["NaN", "[-Infinity]", "1e400"]])
def test_what_json_cannot_say_again_is_text(style: str, values: list[str]) -> None:
    """The same holds for values that can just be read, but nest too deeply to be written again."""
    for value, is_cut in product(values, (False, True)):
        finder = CallFinder(FORMATS[style], {"clock": {"type": "object"}})
        text = WITH[style].replace("VALUE", value)
        output, calls = finder.push(text)
        rest, more = finder.flush(is_cut=is_cut)
        if whole := complete_calls([*calls, *more]):  # arguments between tags can be text
            (call,) = whole
            assert json.loads(call.arguments) == {"zone": value}
        else:
            assert output + rest == text


def in_pieces(style: str, parts: list[str], *, is_cut: bool = False) -> tuple[str, list[Call], list[str]]:
    """The text, the calls, and the pieces of their arguments, which come before."""
    finder = CallFinder(FORMATS[style], {"clock": {}}, in_pieces=True)
    output, calls, pieces, begun = "", list[Call](), list[str](), list[str]()
    for text, news in [*(finder.push(part) for part in parts), finder.flush(is_cut=is_cut)]:
        output += text
        for item in news:
            match item:
                case CallStarted(name):
                    assert (name, begun) == ("clock", [])
                case ArgumentPiece(piece):
                    begun.append(piece)
                case Call():
                    assert not begun or "".join(begun) == item.arguments
                    calls.append(item)
                    pieces, begun = pieces + begun, []
    assert not begun
    return output, calls, pieces


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("style", FORMATS)
def test_arguments_are_told_while_they_come(style: str, size: int) -> None:
    text = WITH[style].replace("VALUE", '"a long one, \\"Zürich\\" and more"' if '"' in WITH[style] else "a long one")
    output, calls, pieces = in_pieces(style, [text[at : at + size] for at in range(0, len(text), size)])
    assert output == ""
    assert [call.name for call in calls] == ["clock"]
    assert len(pieces) >= 3
    assert not calls[0].half


@pytest.mark.parametrize(("style", "text", "expected", "calls"), CASES)
def test_in_pieces_whole_calls_are_the_same(style: str, text: str, expected: str | None, calls: list[Call]) -> None:
    """A call that turns out to be none has been sent already, and counts as one that was cut."""
    said, results, _ = in_pieces(style, list(text))
    if not any(call.half for call in results) and (calls or not results):
        assert said == (text if expected is None else expected)
        assert [make_call(call.name, json.loads(call.arguments)) for call in results] == calls
    assert {call.name for call in results} <= {"clock"}
    assert all(call.half in text for call in results)


@pytest.mark.parametrize("style", FORMATS)
def test_a_call_in_pieces_that_is_cut_says_so(style: str) -> None:
    text = WITH[style].replace("VALUE", '"a long one"' if '"' in WITH[style] else "a long one")
    output, calls, _pieces = in_pieces(style, list(text[: text.index("long")]), is_cut=True)
    assert output == ""
    (call,) = calls
    assert call.half
    with pytest.raises(ValueError, match=r"."):
        json.loads(call.arguments)
