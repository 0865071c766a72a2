"""What chat templates of well-known families use, and the style of calls that they show."""

from __future__ import annotations

import subprocess
import sys

import pytest

from backends.template import render, tool_style

HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "ä", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    ("call", "style"),
    [
        ("<tool_call>{{ t | tojson }}</tool_call>", "hermes"),
        ("<tool_call>\n<function=clock>\n<parameter=zone>\nUTC", "qwen_coder"),
        ("<tool_call>clock\n<arg_key>zone</arg_key>\n<arg_value>UTC", "glm"),
        ("[TOOL_CALLS]clock[CALL_ID]x[ARGS]{}", "ministral"),
        ("[TOOL_CALLS][{{ t | tojson }}]", "mistral"),
        ("<|python_tag|>", "llama3"),
        ('{"name": x, "parameters": dictionary', "llama3"),
        ("<function=clock>{}</function>", ""),  # forms that we cannot read
        ("<tool_call><function=clock>{}</function>", ""),
        ("<tool_call>clock<arg_key>zone</arg_key>", ""),
        ("<|tool_calls_section_begin|>", ""),
    ],
)
def test_the_style_of_calls_is_seen_in_a_template(call: str, style: str) -> None:
    assert tool_style("{% for t in tools %}" + call + "{% endfor %}") == style
    assert tool_style(call) == ""  # it is given no tools


def test_json_is_as_models_have_seen_it_in_training() -> None:
    """With transformers' blanks and arguments: GLM's templates and ten other families' name `ensure_ascii`."""
    plain = '{"type": "function", "function": {"name": "ä", "parameters": {"type": "object"}}}'
    for filters in ("tojson", "tojson(ensure_ascii=False)", "tojson(separators=(', ', ': '))"):
        assert render("{{ tools[0] | " + filters + " }}", HELLO, tools=[TOOL]) == plain
    wide = "{{ tools[0].function | tojson(indent=1, sort_keys=true, ensure_ascii=true) }}"
    told = render(wide, HELLO, tools=[TOOL])
    assert told == '{\n "name": "\\u00e4",\n "parameters": {\n  "type": "object"\n }\n}'


def test_what_a_model_wrote_may_be_marked_for_training() -> None:
    template = (
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}!{% endfor %}"
    )
    assert render(template, HELLO) == "Hello!"


def test_a_worker_that_only_computes_knows_no_templates() -> None:
    """Most do, and what is not imported costs them no time to start and no memory."""
    look = "import sys, backends.service; print('jinja2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
