"""Text in which nothing stands for a control token, whatever the model's control tokens look like."""

from __future__ import annotations

import json

import pytest

from backends.control_tokens import BREAK, ControlTokenBreaker

FAMILIES = ("<|turn>", "<turn|>", "<|channel>", "[e~[", "]~b]", "[gMASK]", "<｜User｜>", "</s>", "<|im_end|>")


@pytest.mark.parametrize("marker", FAMILIES)
def test_no_text_of_a_tool_stands_for_a_control_token(marker: str) -> None:
    schema = {"type": "object", "properties": {f"a{marker}": {"enum": [f"{marker}b", 1, None, "<p>"]}}}
    tool = {"function": {"name": "clock", "description": f"<{marker}{marker}", "parameters": schema}}
    cleaned = json.dumps(ControlTokenBreaker(FAMILIES).value(tool), ensure_ascii=False)
    assert not any(known in cleaned for known in FAMILIES)
    assert cleaned.replace(BREAK, "") == json.dumps(tool, ensure_ascii=False)
    assert "<p>" in cleaned


def test_text_of_a_model_without_control_tokens_stays() -> None:
    assert ControlTokenBreaker(()).value({"a": ["<|im_end|>", 1]}) == {"a": ["<|im_end|>", 1]}


def test_only_the_markers_that_may_stand_are_left() -> None:
    breaker = ControlTokenBreaker(("<think>", "<|im_end|>")).except_for(("<think>",))
    assert breaker.text("<think>a<|im_end|>") == f"<think>a<{BREAK}|im_end|>"


def test_a_megabyte_of_angle_brackets_is_read_in_a_second() -> None:
    import time

    began, text = time.process_time(), "<p><|im_en" * (1 << 17)
    assert ControlTokenBreaker(FAMILIES).text(text) == text
    assert time.process_time() - began < 3
