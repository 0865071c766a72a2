"""Tests of the parts of an answer and their lines."""

from __future__ import annotations

import msgspec
import pytest

from app.api.plans import Notice, Progress
from app.api.responses import Answer, AnsweredBy, AnswerLine
from app.inference.pipeline.completion import Delta
from app.node.control.answer_conversion import AnswerPart, line_of, part_of

PARTS: list[tuple[str, AnswerPart]] = [
    ("progress", Progress("loading", "den", 1, 2, "bytes")),
    ("by", AnsweredBy("guide", "The Guide answers.")),
    ("recovery", Notice("lost", "den", "stage_lost")),
    ("delta", Delta("text", (1, 2), thought="thought", hidden_bytes=3, was_thought=True)),
    ("delta", Delta("", ())),
    ("done", Answer(text="text", token_ids=[1, 2], finish_reason="stop")),
]


@pytest.mark.parametrize(("key", "part"), PARTS)
def test_a_part_survives_its_line(key: str, part: AnswerPart) -> None:
    sent = msgspec.json.encode(line_of(part))
    assert list(msgspec.json.decode(sent)) == [key]
    assert part_of(msgspec.json.decode(sent, type=AnswerLine)) == part


def test_log_probabilities_stay_in_the_node() -> None:
    sent = msgspec.json.encode(line_of(Delta("a", (1,), likely=((b"a", -1.0),))))
    assert msgspec.json.decode(sent) == {"delta": {"text": "a", "token_ids": [1]}}


def test_a_line_of_a_later_version_holds_no_part() -> None:
    assert part_of(msgspec.json.decode(b'{"something new": 1}', type=AnswerLine)) is None
