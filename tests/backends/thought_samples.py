"""Answers with thoughts as each real template has them written, what llama.cpp reads in them, and what we do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core.tools.reasoning import AnswerStart, PartKind, ThoughtSplitter, answer_start, marker_tokens
from backends.contract import JsonScalar, ReasoningFormat
from backends.templates.sandboxed_rendering import render
from backends.templates.template_reasoning import of_template
from tests.backends import call_samples

Json = dict[str, Any]

RECORD = Path(__file__).parent / "recorded" / "thoughts.json.gz"
THOUGHT = "Let me see: is 1 < 3?\n\nI think **so**."
ANSWER = "Yes, it **is**.\n\n- One is less."
HELLO = {"role": "user", "content": "Hello"}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
NO_THOUGHTS = "its parser knows no thoughts of this template"
UNTOLD = ("fireworks-ai-llama-3-firefunction-v2",)  # a template that tells nothing without tools
DIFFERS = {  # why llama.cpp reads something else in what a model of these writes
    "Apertus-8B-Instruct": NO_THOUGHTS,
    "LFM2.5-Instruct": NO_THOUGHTS,
    "llama-cpp-rwkv-world": NO_THOUGHTS,
    "unsloth-Apriel-1.5": NO_THOUGHTS,
    "upstage-Solar-Open-100B": NO_THOUGHTS,
    "Apriel-1.6-15b-Thinker-fixed": "the words by which the prompt opens a thought are a part of it there",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "it wants signs around an answer, which have no text here",
    "ibm-granite-granite-3.3-2B-Instruct": "<response> and </response> stay in the answer there",
    "meetkai-functionary-medium-v3.2": "it wants a recipient before each answer",
}
ON: Mapping[str, JsonScalar] = {"enable_thinking": True}


def form_of(source: str) -> ReasoningFormat:
    """Return the thought format of a template."""

    return of_template(source, TOKENS)


def where(source: str, form: ReasoningFormat) -> AnswerStart:
    """Return where an answer begins with thinking turned on, as in llama.cpp's server."""
    return answer_start(form, render(source, [HELLO], tokens=TOKENS, options=ON))


def samples(form: ReasoningFormat, place: AnswerStart) -> dict[str, Json]:
    """Return texts that a model with this format may write."""
    if form.messages is not None:
        signs = form.messages
        answer = signs.to_reader + signs.header_end + ANSWER
        begin, end = form.begin, form.end[0] + signs.start + "assistant"
    else:
        answer = "".join(form.answer_begin) + ANSWER + "".join(form.answer_end)
        begin = "" if place.in_thought else f"{form.begin}\n"
        end = f"\n{form.end[0]}" + ("" if form.answer_begin else "\n\n")
    result = {
        "a thought": (begin + THOUGHT + end + answer, True),
        "a thought that is cut": (begin + THOUGHT[:-4], False),
        "an answer that is cut": (begin + THOUGHT + end + answer.partition(ANSWER)[0] + ANSWER[:-3], False),
        "an empty thought": (begin + end + answer, True),
    }
    if not place.in_thought:
        result["no thought"] = (answer, True)
    if form.is_habit:  # llama.cpp looks for no thoughts then; what models write by habit is parted all the same
        result = {"no thought": (answer, True)}
    return {key: {"text": text, "whole": whole} for key, (text, whole) in result.items()}


def ours(form: ReasoningFormat, place: AnswerStart, text: str, step: int) -> tuple[str, str]:
    """Thought and answer, of a text that comes in pieces of so many characters."""
    splitter = ThoughtSplitter(form, place, frozenset(_controls(form)))
    parts = []
    for at in range(0, len(text), step):
        parts += splitter.push(text[at : at + step])
    parts += splitter.flush()
    result = {
        kind: "".join(part.text for part in parts if part.kind is kind) for kind in (PartKind.THOUGHT, PartKind.ANSWER)
    }
    return result[PartKind.THOUGHT].strip(), result[PartKind.ANSWER].strip()


def _controls(form: ReasoningFormat) -> list[str]:
    """Signs with bars are control tokens wherever they are written."""
    return [mark for mark in marker_tokens(form) if "|" in mark]


def sources() -> dict[str, str]:
    """The templates of llama.cpp's source, as they were recorded with their calls."""
    kept = call_samples.record()["templates"]
    return {name: item["source"] for name, item in kept.items() if name not in UNTOLD}


@lru_cache(maxsize=1)
def record() -> Json:
    """Return the results of llama.cpp's parser for the samples, by template."""
    data: Json = json.loads(gzip.decompress(RECORD.read_bytes()))
    return data
