"""Tests of the features that chat templates of well-known families use, and of their call formats."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest

from backends.contract import TemplateFailed
from backends.templates.sandboxed_rendering import render

HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "ä", "parameters": {"type": "object"}}}


def test_json_is_as_models_have_seen_it_in_training() -> None:
    """The JSON has transformers' spacing and arguments: the templates of GLM and ten other families use
    `ensure_ascii`."""
    plain = '{"type": "function", "function": {"name": "ä", "parameters": {"type": "object"}}}'
    for filters in ("tojson", "tojson(ensure_ascii=False)", "tojson(separators=(', ', ': '))"):
        assert render("{{ tools[0] | " + filters + " }}", HELLO, tools=[TOOL]) == plain
    wide = "{{ tools[0].function | tojson(indent=1, sort_keys=true, ensure_ascii=true) }}"
    text = render(wide, HELLO, tools=[TOOL])
    assert text == '{\n "name": "\\u00e4",\n "parameters": {\n  "type": "object"\n }\n}'


def test_what_a_model_wrote_may_be_marked_for_training() -> None:
    template = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}!{% endfor %}"
    assert render(template, HELLO) == "Hello!"


KIMI = (  # as Kimi K2's templates do it: ids of calls wait in a list for their results
    "{%- set queue = namespace(ids=[]) -%}{%- set count = namespace(value=0) -%}"
    "{%- macro calls(message) -%}{%- for call in message['tool_calls'] -%}"
    "{%- set id = 'functions.' + call['function']['name'] + ':' + (count.value | string) -%}"
    "{%- set count.value = count.value + 1 -%}{%- set _ = queue.ids.append(id) -%}"
    "<|tool_call_begin|>{{ id }}<|tool_call_argument_begin|>{{ call['function']['arguments'] | tojson }}"
    "{%- endfor -%}{%- endmacro -%}"
    "{%- for message in messages -%}{%- if message.get('tool_calls') -%}{{ calls(message) }}"
    "{%- elif message['role'] == 'tool' -%}"
    "{%- set id = queue.ids.pop(0) if queue.ids else 'unknown' -%}## Return of {{ id }}: {{ message['content'] }}"
    "{%- endif -%}{%- endfor -%}"
)


def test_kimis_templates_keep_ids_in_a_list_that_begins_anew_with_each_prompt() -> None:
    call = {"type": "function", "function": {"name": "clock", "arguments": {}}}
    talk: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [call, call]},
        {"role": "tool", "content": "noon"},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
    ]
    begun = "<|tool_call_begin|>functions.clock:{}<|tool_call_argument_begin|>{{}}"
    text = f"{begun.format(0)}{begun.format(1)}## Return of functions.clock:0: noon"
    text += "## Return of functions.clock:1: one## Return of unknown: two"
    assert render(KIMI, talk) == text
    render(KIMI, talk[:1])  # whose results never come
    assert render(KIMI, talk) == text


@pytest.mark.parametrize("change", ["messages.append(1)", "messages[0].tool_calls.pop()",
                                    "tools.pop()", "tools[0].function.names.append(1)"])  # fmt: skip
def test_what_a_template_is_given_is_nobody_elses(change: str) -> None:
    talk = [{"role": "assistant", "content": "", "tool_calls": [{"name": "clock"}]}]
    tools = [{"type": "function", "function": {"names": ["clock"]}}]
    before = repr((talk, tools))
    assert render(f"{{% set _ = {change} %}}done", talk, tools=tools) == "done"
    assert repr((talk, tools)) == before


@pytest.mark.parametrize("change", ["messages.clear()", "messages.extend(messages)", "[].insert(0, 1)",
                                    "messages[0].update({})", "messages[0].pop('role')"])  # fmt: skip
def test_nothing_else_is_changed_by_a_template(change: str) -> None:
    with pytest.raises(TemplateFailed, match="is unsafe"):
        render(f"{{% set _ = {change} %}}", HELLO)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such timer")
def test_a_timer_that_runs_is_not_stopped_by_a_template() -> None:
    """A process that renders may have set one, as pytest-timeout does here."""
    before = signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    render("{{ messages[0].content }}", HELLO)
    left, every = signal.setitimer(signal.ITIMER_REAL, *before)
    assert 0 < left <= 1000
    assert every == 7


def test_a_worker_that_only_computes_knows_no_templates() -> None:
    """Most do, and what is not imported costs them no time to start and no memory."""
    look = "import sys, backends.worker.service; print('jinja2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
