"""The values of a tool call as a person reads them before allowing it."""

from __future__ import annotations

import json

import pytest

from app.core.tools.shown_values import shown_values, visible


def test_values_are_lines_of_names_and_values() -> None:
    assert shown_values('{"zone": "UTC", "exact": true, "near": [1, "é"]}') == [
        "zone: UTC",
        "exact: true",
        'near: [1, "é"]',
    ]
    assert shown_values("{}") == shown_values("") == []


def test_no_value_hides_another_or_looks_like_one() -> None:
    hidden = shown_values(json.dumps({"note": "\n" * 4000, "run": "rm -rf ~"}))
    assert len(hidden) == 2
    assert hidden[1] == "run: rm -rf ~"
    assert shown_values(json.dumps({"to": "mom\nsubject: hi"})) == ['to: "mom\\nsubject: hi"']
    assert shown_values(json.dumps({"to": '"mom\\nsubject: hi"'})) == ['to: "\\"mom\\\\nsubject: hi\\""']
    assert shown_values(json.dumps({"to: mom": "x"})) == ['"to: mom": x']


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200b", "\u2028", "\u0085", "\x1b", "\x7f", "\U000e0041"])
def test_signs_that_cannot_be_seen_are_written_out(sign: str) -> None:
    for arguments in (json.dumps({"a": f"x{sign}y"}), json.dumps({"a": [f"x{sign}y"]}), json.dumps({f"x{sign}y": 1})):
        (line,) = shown_values(arguments)
        assert sign not in line
        assert "\\u" in line
    assert visible(f"x{sign}y") == f"x{visible(sign)}y"
    assert visible(sign).isascii()


def test_what_is_no_object_is_shown_too() -> None:
    assert shown_values("rm\n-rf") == ['"rm\\n-rf"']
    assert shown_values("[1,\n2]") == ["[1,\\n2]"]
    assert shown_values("[" * 100_000) == ["[" * 100_000]
