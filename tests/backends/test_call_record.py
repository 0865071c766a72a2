"""Calls as each template of llama.cpp's source writes them, read here, and as llama.cpp's own parser reads them."""

from __future__ import annotations

import pytest

from app.core.tool_grammar import calls_grammar
from app.core.tool_signs import signs_of
from scripts.call_compare.page import PAGE, page
from scripts.engine_source import engine
from tests.backends.call_samples import (
    DIFFERS,
    TOOLS,
    compared,
    expected,
    of_template,
    ours,
    record,
    theirs,
)

NO_CALLS = {  # their templates write none, and tell a model of none
    "HuggingFaceTB-SmolLM3-3B", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "google-gemma-2-2b-it",
    "llama-cpp-rwkv-world", "microsoft-Phi-3.5-mini-instruct",
}  # fmt: skip
NAMES = sorted(record()["templates"])
CASES = [(name, key) for name, key, _ in compared() if of_template(name)]


def test_each_template_that_writes_calls_is_read() -> None:
    assert {name for name in NAMES if of_template(name) is None} - NOT_RENDERED == NO_CALLS
    assert record()["engine"] == engine()


@pytest.mark.parametrize(("name", "key"), CASES)
def test_what_was_written_is_found_in_one_piece_and_in_many(name: str, key: str) -> None:
    one = of_template(name)
    assert one is not None
    given = record()["templates"][name]["samples"][key]["given"]
    right = expected(key)
    if (name, key) in DIFFERS and "Llama-3" in name:
        right = (given, [])
    assert [ours(one, given, size) for size in (0, 1, 7)] == [right] * 3


@pytest.mark.parametrize(("name", "key"), CASES)
def test_llama_cpp_finds_the_same(name: str, key: str) -> None:
    """Where it reads the answer at all."""
    one, sample = of_template(name), record()["templates"][name]["samples"][key]
    assert one is not None
    if "error" not in sample:
        is_equal = ours(one, sample["given"]) == theirs(sample)
        assert is_equal == ((name, key) not in DIFFERS)


@pytest.mark.parametrize("name", [name for name in NAMES if of_template(name)])
def test_a_call_of_each_template_has_a_grammar_and_signs(name: str) -> None:
    one = of_template(name)
    assert one is not None
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    assert "find_notes" in calls_grammar(one, tools, many=True)
    assert signs_of(one).begins


def test_the_page_says_what_the_record_does() -> None:
    assert PAGE.read_text("utf-8") == page()


NOT_RENDERED = {"fireworks-ai-llama-3-firefunction-v2", "llama-cpp-deepseek-r1"}
