"""Tests of detecting the call format from a template's rendering."""

from __future__ import annotations

import pytest

from backends.contract import CALL_ID_PLACEHOLDER, CALL_NUMBER_PLACEHOLDER, CallIdKind, CallSyntax
from backends.templates.chat_template import ChatTemplate
from backends.templates.template_calls import call_format

BEGIN = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
)
END = "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
ARGUMENTS = "{{ c.function.arguments | tojson }}"
NAME = "{{ c.function.name }}"


def of(call: str) -> str:
    """A template that writes each call so."""
    return BEGIN + call + END


def test_objects_between_signs() -> None:
    result = call_format(of("{{ '\\n' }}<tool_call>\n{{ c.function | tojson }}\n</tool_call>"))
    assert result is not None
    assert (result.payload, result.name_key, result.arguments_key) == (CallSyntax.OBJECTS, "name", "arguments")
    assert (result.section, result.lead, result.trail) == ("", "<tool_call>\n", "\n</tool_call>")
    assert (result.head, result.named, result.rest) == ('{"name": "', '", "arguments": ', "}")
    assert result.between == "\n"


def test_signs_that_only_occur_are_none() -> None:
    """A family that names them in a comment, or tells the model of them, and writes calls otherwise."""
    template = "{# <tool_call> #}" + of(f"[{NAME}]<args>{ARGUMENTS}</args>")
    result = call_format(template)
    assert result is not None
    assert (result.payload, result.lead, result.named, result.trail) == (CallSyntax.NAMED, "[", "]<args>", "</args>")
    assert call_format(of("<tool_call>") + "{# {{ c.function | tojson }} #}") is None
    assert call_format("{% for m in messages %}{{ m.content }}<tool_call>{% endfor %}") is None
    assert call_format("") is None


def test_a_name_between_signs_with_what_counts_the_calls() -> None:
    result = call_format(of(f"<call>functions.{NAME}:{{{{ loop.index0 }}}}<args>{ARGUMENTS}</call>"))
    assert result is not None
    assert (result.lead, result.named, result.trail) == (
        "<call>functions.",
        f":{CALL_NUMBER_PLACEHOLDER}<args>",
        "</call>",
    )
    assert result.past.ids is CallIdKind.COUNTED
    result = call_format(of(f"<call>{{{{ c.id }}}}<name>{NAME}<args>{ARGUMENTS}</call>"))
    assert result is not None
    assert result.lead == f"<call>{CALL_ID_PLACEHOLDER}<name>"


def test_arguments_with_signs_of_their_own() -> None:
    pairs = (
        '{% for k, v in c.function.arguments.items() %}<p name="{{ k }}" text="{{ v is string | string | lower }}">'
        "{{ v if v is string else v | tojson }}</p>\n{% endfor %}"
    )
    result = call_format(of(f'<use name="{NAME}">\n{pairs}</use>'))
    assert result is not None
    assert (result.payload, result.lead, result.value_end, result.trail) == (
        CallSyntax.TAGGED, '<use name="', "</p>", "\n</use>",
    )  # fmt: skip
    assert dict(result.keyed)["string"] != dict(result.keyed)["integer"]


def test_ids_that_a_template_takes() -> None:
    short = "{% if c.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}"
    result = call_format(of(f"{short}[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}"))
    assert result is not None
    assert result.past.ids is CallIdKind.SHORT


def test_a_template_that_writes_one_call_of_a_message() -> None:
    name = "{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}"
    result = call_format(of(f'{name}{{"name": "{NAME}", "parameters": {ARGUMENTS}}}'))
    assert result is not None
    assert (result.past.is_single, result.arguments_key, result.other_begins) == (
        True,
        "parameters",
        ("<|python_tag|>",),
    )


def test_llamas_calls_stand_alone_also_where_its_template_writes_a_sign() -> None:
    result = call_format(of("<|python_tag|>{{ c.function | tojson }}"))
    assert result is not None
    assert (result.lead, result.other_begins, result.between) == ("", ("<|python_tag|>",), "; ")


def test_what_ends_an_answer_is_no_sign_of_a_call() -> None:
    result = call_format(of(f"<call>{NAME}<args>{ARGUMENTS}</call>") + "", ends=("</call>",))
    assert result is not None
    assert result.trail == ""


@pytest.mark.parametrize(
    ("expected", "payload", "section", "lead"),
    [
        (
            '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
            CallSyntax.OBJECTS,
            "",
            "<tool_call>\n",
        ),
        (
            "respond only with <|tool_call|> followed by a JSON list of tools used",
            CallSyntax.OBJECTS,
            "<|tool_call|>[",
            "",
        ),
    ],
)
def test_words_that_tell_a_model_how_to_call(expected: str, payload: CallSyntax, section: str, lead: str) -> None:
    template = (
        "{% if tools %}{{ tools | tojson }}"
        + expected
        + "{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    result = call_format(template)
    assert result is not None
    assert (result.payload, result.section, result.lead, result.past.writes_calls) == (payload, section, lead, False)


def test_tools_are_told_under_the_name_that_smollm3_reads() -> None:
    text = '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    template = (
        "{% if xml_tools %}{% for t in xml_tools[:] %}{{ t | string }}{% endfor %}" + text + "{% endif %}"
        "{% for m in messages %}{{ m.content }}{% endfor %}"
    )  # fmt: skip
    result = call_format(template)
    assert result is not None
    assert (result.payload, result.lead, result.trail) == (CallSyntax.OBJECTS, "<tool_call>\n", "\n</tool_call>")
    tools = [{"type": "function", "function": {"name": "clock"}}]
    said = {"role": "user", "content": "When?"}
    shown = ChatTemplate(template).render([said], tools=tools).text
    assert "'name': 'clock'" in shown
    assert ChatTemplate(template).render([said]).text == "When?"


@pytest.mark.long
def test_a_template_that_never_ends_is_given_up() -> None:
    assert call_format("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}") is None
