"""Calls as each template of llama.cpp's source writes them, read here, and as llama.cpp's own parser reads them."""

from __future__ import annotations

import pytest

from app.core.tools.call_grammar import calls_grammar
from app.core.tools.call_markers import markers_of
from app.core.tools.reasoning import AnswerStart, PartKind, ThoughtSplitter
from scripts.call_compare.page import PAGE, page
from scripts.engine_source import engine
from tests.backends.call_samples import DIFFERS, REFUSED, TOOLS, compared, expected, of_template, ours, record, theirs
from tests.backends.thought_samples import form_of

NO_CALLS = {  # their templates write none, and tell a model of none
    "HuggingFaceTB-SmolLM3-3B", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "google-gemma-2-2b-it",
    "llama-cpp-rwkv-world", "microsoft-Phi-3.5-mini-instruct",
}  # fmt: skip
NAMES = sorted(record()["templates"])
CASES = [(name, key) for name, key, _ in compared() if of_template(name)]


def test_each_template_that_writes_calls_is_read() -> None:
    assert {name for name in NAMES if of_template(name) is None} == NO_CALLS
    assert record()["engine"] == engine()


@pytest.mark.parametrize(("name", "key"), CASES)
def test_what_was_written_is_found_in_one_piece_and_in_many(name: str, key: str) -> None:
    call_format = of_template(name)
    assert call_format is not None
    value = record()["templates"][name]["samples"][key]["given"]
    right = expected(key)
    if (name, key) in DIFFERS and "Llama-3" in name:
        right = (value, [])
    assert [ours(call_format, value, size) for size in (0, 1, 7)] == [right] * 3


@pytest.mark.parametrize(("name", "key"), CASES)
def test_llama_cpp_finds_the_same(name: str, key: str) -> None:
    """This covers the answers that it can parse."""
    call_format, sample = of_template(name), record()["templates"][name]["samples"][key]
    assert call_format is not None
    assert ("error" in sample) == ((name, key) in REFUSED)
    if "error" not in sample:
        is_equal = ours(call_format, sample["given"]) == theirs(sample)
        assert is_equal == ((name, key) not in DIFFERS)


@pytest.mark.parametrize("name", [name for name in NAMES if of_template(name)])
def test_a_call_of_each_template_has_a_grammar_and_signs(name: str) -> None:
    call_format = of_template(name)
    assert call_format is not None
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    assert "find_notes" in calls_grammar(call_format, tools, many=True)
    assert markers_of(call_format).begins


CALL = '{"town": "Bern"}'
AFTER = "<|channel|>analysis<|message|>Hmm.<|end|><|start|>assistant"
TO = "to=functions.get_weather"


@pytest.mark.parametrize(
    ("text", "output", "n_calls"),
    [
        (f"{AFTER}<|channel|>commentary {TO} <|constrain|>json<|message|>{CALL}", "", 1),
        (f"{AFTER} {TO}<|channel|>commentary json<|message|>{CALL}<|call|>", "", 1),
        (f"<|channel|>analysis {TO}<|message|>{CALL}<|call|>", "", 1),
        ((f"{AFTER}<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>commentary {TO} "
         f"<|constrain|>json<|message|>{CALL}"), "Let me look.", 1),
        ("<|channel|>final<|message|>Sunny.", "Sunny.", 0),
    ],
)  # fmt: skip
def test_gpt_oss_thinks_before_it_calls(text: str, output: str, n_calls: int) -> None:
    """The rest is parsed after its thoughts were removed."""
    name = "openai-gpt-oss-120b"
    call_format, form = of_template(name), form_of(record()["templates"][name]["source"])
    splitter = ThoughtSplitter(form, AnswerStart(keeps_calls=True))
    parts = [*splitter.push(text), *splitter.flush()]
    assert call_format is not None
    names = ours(call_format, "".join(part.text for part in parts if part.kind is PartKind.ANSWER), 1)
    assert names == (output, [{"name": "get_weather", "arguments": {"town": "Bern"}}] * n_calls)


def test_the_page_says_what_the_record_does() -> None:
    assert PAGE.read_text("utf-8") == page()
