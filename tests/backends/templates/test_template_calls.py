"""How calls are written, as it is seen in what a chat template makes of them."""

from __future__ import annotations

import pytest

from backends.contract import ID, NUMBER, Ids, Payload
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
    found = call_format(of("{{ '\\n' }}<tool_call>\n{{ c.function | tojson }}\n</tool_call>"))
    assert found is not None
    assert (found.payload, found.name_key, found.arguments_key) == (Payload.OBJECTS, "name", "arguments")
    assert (found.section, found.lead, found.trail) == ("", "<tool_call>\n", "\n</tool_call>")
    assert (found.head, found.named, found.rest) == ('{"name": "', '", "arguments": ', "}")
    assert found.between == "\n"


def test_signs_that_only_occur_are_none() -> None:
    """A family that names them in a comment, or tells the model of them, and writes calls otherwise."""
    template = "{# <tool_call> #}" + of(f"[{NAME}]<args>{ARGUMENTS}</args>")
    found = call_format(template)
    assert found is not None
    assert (found.payload, found.lead, found.named, found.trail) == (Payload.NAMED, "[", "]<args>", "</args>")
    assert call_format(of("<tool_call>") + "{# {{ c.function | tojson }} #}") is None
    assert call_format("{% for m in messages %}{{ m.content }}<tool_call>{% endfor %}") is None
    assert call_format("") is None


def test_a_name_between_signs_with_what_counts_the_calls() -> None:
    found = call_format(of(f"<call>functions.{NAME}:{{{{ loop.index0 }}}}<args>{ARGUMENTS}</call>"))
    assert found is not None
    assert (found.lead, found.named, found.trail) == ("<call>functions.", f":{NUMBER}<args>", "</call>")
    assert found.past.ids is Ids.COUNTED
    found = call_format(of(f"<call>{{{{ c.id }}}}<name>{NAME}<args>{ARGUMENTS}</call>"))
    assert found is not None
    assert found.lead == f"<call>{ID}<name>"


def test_arguments_with_signs_of_their_own() -> None:
    pairs = (
        '{% for k, v in c.function.arguments.items() %}<p name="{{ k }}" text="{{ v is string | string | lower }}">'
        "{{ v if v is string else v | tojson }}</p>\n{% endfor %}"
    )
    found = call_format(of(f'<use name="{NAME}">\n{pairs}</use>'))
    assert found is not None
    assert (found.payload, found.lead, found.value_end, found.trail) == (
        Payload.TAGGED, '<use name="', "</p>", "\n</use>",
    )  # fmt: skip
    assert dict(found.keyed)["string"] != dict(found.keyed)["integer"]


def test_ids_that_a_template_takes() -> None:
    short = "{% if c.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}"
    found = call_format(of(f"{short}[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}"))
    assert found is not None
    assert found.past.ids is Ids.SHORT


def test_a_template_that_writes_one_call_of_a_message() -> None:
    one = "{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}"
    found = call_format(of(f'{one}{{"name": "{NAME}", "parameters": {ARGUMENTS}}}'))
    assert found is not None
    assert (found.past.is_single, found.arguments_key, found.other_begins) == (True, "parameters", ("<|python_tag|>",))


def test_llamas_calls_stand_alone_also_where_its_template_writes_a_sign() -> None:
    found = call_format(of("<|python_tag|>{{ c.function | tojson }}"))
    assert found is not None
    assert (found.lead, found.other_begins, found.between) == ("", ("<|python_tag|>",), "; ")


def test_what_ends_an_answer_is_no_sign_of_a_call() -> None:
    found = call_format(of(f"<call>{NAME}<args>{ARGUMENTS}</call>") + "", ends=("</call>",))
    assert found is not None
    assert found.trail == ""


@pytest.mark.parametrize(
    ("told", "payload", "section", "lead"),
    [
        ('<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>', Payload.OBJECTS, "",
         "<tool_call>\n"),
        ("respond only with <|tool_call|> followed by a JSON list of tools used", Payload.OBJECTS, "<|tool_call|>[",
         ""),
    ],
)  # fmt: skip
def test_words_that_tell_a_model_how_to_call(told: str, payload: Payload, section: str, lead: str) -> None:
    template = (
        "{% if tools %}{{ tools | tojson }}" + told + "{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    found = call_format(template)
    assert found is not None
    assert (found.payload, found.section, found.lead, found.past.writes_calls) == (payload, section, lead, False)


def test_tools_are_told_under_the_name_that_smollm3_reads() -> None:
    told = '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    template = (
        "{% if xml_tools %}{% for t in xml_tools[:] %}{{ t | string }}{% endfor %}" + told + "{% endif %}"
        "{% for m in messages %}{{ m.content }}{% endfor %}"
    )  # fmt: skip
    found = call_format(template)
    assert found is not None
    assert (found.payload, found.lead, found.trail) == (Payload.OBJECTS, "<tool_call>\n", "\n</tool_call>")
    tools = [{"type": "function", "function": {"name": "clock"}}]
    said = {"role": "user", "content": "When?"}
    shown = ChatTemplate(template).render([said], tools=tools).text
    assert "'name': 'clock'" in shown
    assert ChatTemplate(template).render([said]).text == "When?"


@pytest.mark.long
def test_a_template_that_never_ends_is_given_up() -> None:
    assert call_format("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}") is None
