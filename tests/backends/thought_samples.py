"""Answers with thoughts as each real template has them written, what llama.cpp reads in them, and what we do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core.reasoning import Begins, Kind, ThoughtSplitter, begins, marks
from backends.contract import ReasoningFormat, Scalar
from backends.template import render
from backends.template_reasoning import Chat, reasoning_format

Json = dict[str, Any]

RECORD = Path(__file__).parent / "recorded" / "thoughts.json.gz"
THOUGHT = "Let me see: is 1 < 3?\n\nI think **so**."
ANSWER = "Yes, it **is**.\n\n- One is less."
HELLO = {"role": "user", "content": "Hello"}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
ON: Mapping[str, Scalar] = {"enable_thinking": True}


def form_of(source: str) -> ReasoningFormat:
    """How a template has thoughts written."""

    def applied(chat: Chat, options: Mapping[str, Scalar], begins: bool) -> str:
        return render(source, chat, add_generation_prompt=begins, tokens=TOKENS, options=options)

    return reasoning_format(source, applied)


def where(source: str, form: ReasoningFormat) -> Begins:
    """Where an answer begins with thinking turned on, as llama.cpp's server has it."""
    return begins(form, render(source, [HELLO], tokens=TOKENS, options=ON))


def samples(form: ReasoningFormat, place: Begins) -> dict[str, Json]:
    """What a model of this form may write."""
    if form.messages is not None:
        signs = form.messages
        answer = signs.to_reader + signs.header_end + ANSWER
        begin, end = form.begin, form.end[0] + signs.start + "assistant"
    else:
        answer = "".join(form.answer_begin) + ANSWER + "".join(form.answer_end)
        begin = "" if place.in_thought else f"{form.begin}\n"
        end = f"\n{form.end[0]}" + ("" if form.answer_begin else "\n\n")
    found = {
        "a thought": (begin + THOUGHT + end + answer, True),
        "a thought that is cut": (begin + THOUGHT[:-4], False),
        "an answer that is cut": (
            begin + THOUGHT + end + answer.partition(ANSWER)[0] + ANSWER[:-3],
            False,
        ),
        "an empty thought": (begin + end + answer, True),
    }
    if not place.in_thought:
        found["no thought"] = (answer, True)
    if (
        form.is_habit
    ):  # llama.cpp looks for no thoughts then; what models write by habit is parted all the same
        found = {"no thought": (answer, True)}
    return {key: {"text": text, "whole": whole} for key, (text, whole) in found.items()}


def ours(form: ReasoningFormat, place: Begins, text: str, step: int) -> tuple[str, str]:
    """Thought and answer, of a text that comes in pieces of so many characters."""
    splitter = ThoughtSplitter(form, place, frozenset(_controls(form)))
    parts = []
    for at in range(0, len(text), step):
        parts += splitter.push(text[at : at + step])
    parts += splitter.flush()
    told = {
        kind: "".join(part.text for part in parts if part.kind is kind)
        for kind in (Kind.THOUGHT, Kind.ANSWER)
    }
    return told[Kind.THOUGHT].strip(), told[Kind.ANSWER].strip()


def _controls(form: ReasoningFormat) -> list[str]:
    """Signs with bars are control tokens wherever they are written."""
    return [mark for mark in marks(form) if "|" in mark]


@lru_cache(maxsize=1)
def record() -> Json:
    """What llama.cpp's parser made of the samples, by template."""
    found: Json = json.loads(gzip.decompress(RECORD.read_bytes()))
    return found
