"""Answers that call tools, as each template of llama.cpp's source writes them, and the record of what its server reads
in them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core.tools.call_cursor import ArgumentPiece, Call, CallStarted
from app.core.tools.call_finder import CallFinder
from app.core.tools.template_messages import for_template
from backends.contract import CallFormat, CallSyntax, TemplateFailed
from backends.templates.sandboxed_rendering import LOOK_SECONDS, render
from backends.templates.template_calls import NO_THOUGHTS, begins, call_format, written_behind

Json = dict[str, Any]

RECORD = Path(__file__).parent / "recorded" / "calls.json.gz"
TEXT = "I will look that up."
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
ENDS = (  # what ends an answer in the vocabularies of these families
    "</s>", "<|im_end|>", "<|call|>", "<|calls|>", "<|eom_id|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<turn|>",
    "<|tool_response>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "<SPECIAL_12>", "<|end_of_msg|>", "[e~[",
    "<seed:eos>", "<｜hy_eos:opensource｜>", "<|END_OF_TURN_TOKEN|>", "<|role_end|>", "</assistant>",
    "<|message_sep|>", "<|eot|>", "<end_of_sentence>", "<sep>", "<|endoftext|>", "<|return|>",
)  # fmt: skip
PYTHON = re.compile(r"\bTrue\b|\['")  # no JSON
USER = {"role": "user", "content": "Hello"}
TOOLS: list[Json] = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a town.",
        "parameters": {
            "type": "object",
            "properties": {
                "town": {"type": "string", "description": "Its name"},
                "days": {"type": "integer", "description": "How many"},
                "exact": {"type": "boolean", "description": "To the degree"},
            },
            "required": ["town"],
        },
    }},
    {"type": "function", "function": {
        "name": "find_notes", "description": "Notes with words.",
        "parameters": {
            "type": "object",
            "properties": {
                "words": {"type": "array", "items": {"type": "string"}, "description": "All of them"},
                "where": {"type": "string", "description": "A folder"},
            },
            "required": ["words", "where"],
        },
    }},
]  # fmt: skip
ARGUMENTS: tuple[Json, ...] = (
    {"town": 'Zürich & "Genève"', "days": 2, "exact": True},
    {"words": ["a < b", "c"], "where": "home\nof mine"},
)
NAMES = ("get_weather", "find_notes")
CALLS: dict[str, tuple[int, ...]] = {"one": (0,), "other": (1,), "two": (0, 1), "text": (0,), "none": ()}


def samples(source: str) -> tuple[CallFormat | None, dict[str, list[str]]]:
    """Return sample answers with calls as a template's model writes them.

    First as we get them, without thoughts and the markers around the text; then with these, as some servers want
    them.
    """
    item = call_format(source, TOKENS, ENDS)
    result: dict[str, list[str]] = {}
    for name, choice in CALLS.items():
        if len(choice) > 1 and item is not None and item.past.is_single:
            continue
        text = TEXT if name in ("text", "none") else ""
        try:
            result[name] = _written(source, item, choice, text)
        except TemplateFailed:
            continue
    return item, result


def _call(number: int, as_json: bool) -> Json:
    arguments = {
        key: json.dumps(value) if as_json and not isinstance(value, str) else value
        for key, value in ARGUMENTS[number].items()
    }
    function = {"name": NAMES[number], "arguments": arguments}
    return {"id": f"call0000{number + 1}", "type": "function", "function": function}


def _written(source: str, item: CallFormat | None, choice: Sequence[int], text: str) -> list[str]:
    plain = _rendered(source, [USER, {"role": "assistant", "content": TEXT}])
    question = _rendered(source, [USER], prompt=True)
    at = plain.rfind(TEXT)
    before = plain[begins(plain, question) : at]
    before = "" if "think" in before.lower() else before
    behind = cut(plain[at + len(TEXT) :])
    if item is not None and item.prompt_marker:
        text, before = (f"{item.answer_marker}{text}" if text else ""), ""
    if not choice:
        return [text, f"{before}{text}{behind}"]
    calls = ""
    for as_json in (False, True) if item is None or item.payload is not CallSyntax.PYTHON else (False,):
        message = {"role": "assistant", "content": "", "tool_calls": [_call(number, as_json) for number in choice]}
        rendered = _rendered(source, for_template(item, [USER, message]))
        calls = NO_THOUGHTS.sub("", cut(written_behind(rendered, plain, TEXT), 1))
        if not PYTHON.search(calls):
            break
    if item is not None and item.payload is CallSyntax.HARMONY and text:
        begun = "<|start|>assistant"
        return [f"{text}{begun}{calls}", f"<|channel|>commentary<|message|>{text}<|end|>{begun}{calls}"]
    calls = calls.removeprefix(item.prompt_marker) if item and not text else calls
    parted = "" if not text or (behind and calls.startswith(behind)) else "\n"
    messages = [f"{before}{text}{behind if parted else ''}"] if text else []
    several = (
        f"{text}{parted}{calls}",
        *(f"{name}{parted}{calls}" for name in messages if name),
        f"{text}{calls}",
        f" {calls}",
    )
    return list(dict.fromkeys(several))


def cut(text: str, start: int = 0) -> str:
    """Up to what ends an answer, from there on."""
    results = [at for end in ENDS if (at := text.find(end, start)) >= 0]
    return text[: min(results, default=len(text))]


def _rendered(source: str, messages: Sequence[Json], *, prompt: bool = False) -> str:
    return render(source, messages, tools=TOOLS, add_generation_prompt=prompt, tokens=TOKENS, seconds=LOOK_SECONDS)


@lru_cache(maxsize=1)
def record() -> Json:
    """`engine`; `templates`: by name the `source`, and `samples`: `given`, and what llama.cpp's server reads in it."""
    data: Json = json.loads(gzip.decompress(RECORD.read_bytes()))
    return data


def ours(item: CallFormat, text: str, size: int = 0) -> tuple[str, list[Json]]:
    """The text and the calls that we find, given as a whole or in pieces."""
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    finder = CallFinder(item, tools, in_pieces=bool(size))
    output, calls, begun = "", list[Json](), ""
    parts = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    for some, news in (*map(finder.push, parts), finder.flush()):
        output += some
        for new in news:
            match new:
                case CallStarted():
                    begun = ""
                case ArgumentPiece(more):
                    begun += more
                case Call(name, arguments):
                    assert not begun or begun == arguments
                    calls.append({"name": name, "arguments": json.loads(arguments)})
                    begun = ""
    return output.strip(), calls


def theirs(sample: Json) -> tuple[str, list[Json]]:
    """Return the calls that llama.cpp's server finds."""
    calls = [
        {"name": call["name"], "arguments": json.loads(call["arguments"] or "{}", strict=False)}
        for call in sample["calls"]
    ]
    return sample["content"].strip(), calls


def compared() -> Iterator[tuple[str, str, Json]]:
    """Each template's name, each sample's, and what is recorded of it."""
    for name, template in record()["templates"].items():
        for key, sample in template["samples"].items():
            yield name, key, sample


A_CHOICE = "its server takes JSON behind text for a call; here an answer that shows one is an answer"
OF_A_PROMPT = "its server does not know the calls that this template tells a model of"
THOUGHT = "its server takes text before a call for a thought"
ONE_PART = "its server reads one message to a recipient"
DIFFERS = {  # why ours is another one, each looked at
    **{(f"meta-llama-Llama-{name}-Instruct", "text"): A_CHOICE for name in ("3.1-8B", "3.2-3B", "3.3-70B")},
    **{("ibm-granite-granite-3.3-2B-Instruct", name): OF_A_PROMPT for name in ("one", "other", "two", "text")},
    ("Cohere2MoE", "text"): THOUGHT,
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "text"): THOUGHT,
    ("muse-glimmer", "text"): ONE_PART,
    ("meetkai-functionary-medium-v3.2", "text"): ONE_PART,
}


REFUSED = {  # why its server reads nothing where ours reads what was written, each looked at
    **{
        ("CohereForAI-c4ai-command-r-plus-tool_use", key): "its server fails on a tool whose parameter is a list"
        for key in CALLS
    },
    **{
        ("Mistral-Small-3.2-24B-Instruct-2506", key): "its parser refuses the id of a call, which the template writes"
        for key in ("one", "other", "two", "text")
    },
    ("MiniMax-M1", "two"): "its parser refuses two calls between one pair of signs",
    ("MiniMax-M2", "two"): "its parser refuses two calls between one pair of signs",
    ("meetkai-functionary-medium-v3.2", "two"): "its parser refuses a second call",
    **{
        ("openbmb-MiniCPM5-1B", key): "its parser refuses a list that stands in CDATA"
        for key in ("other", "two")
    },
    **{
        ("upstage-Solar-Open-100B", key): "its parser refuses arguments that hold a list"
        for key in ("other", "two")
    },
}  # fmt: skip


def expected(key: str) -> tuple[str, list[Json]]:
    """Return the calls that were written."""
    text = TEXT if key in ("text", "none") else ""
    return text, [{"name": NAMES[number], "arguments": ARGUMENTS[number]} for number in CALLS[key]]


@lru_cache(maxsize=128)
def of_template(name: str) -> CallFormat | None:
    """Return the call format of a template of the record."""
    return call_format(record()["templates"][name]["source"], TOKENS, ENDS)
