"""The chats that llama.cpp's server and ours render with each template, and the record of what its server made."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core.tools.template_messages import for_template
from backends.contract import CallFormat, LocalTime
from backends.templates.chat_template import ChatTemplate, RenderedChat
from backends.templates.template_calls import call_format
from tests.backends.call_samples import ENDS

Json = dict[str, Any]

RECORD = Path(__file__).parent / "recorded" / "templates.json.gz"

SYSTEM = {"role": "system", "content": 'Answer in one line. Write "°C", never <b>.'}
TURNS = [
    {"role": "user", "content": "Hello!"},
    {"role": "assistant", "content": "Hello. What's new?\n\nAsk away."},
    {"role": "user", "content": "How warm is it in Zürich & Genève?"},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a town, in °C & \"words\".",
        "parameters": {
            "type": "object",
            "properties": {
                "town": {"type": "string", "description": "Its name, e.g. 'Zürich'"},
                "days": {"type": "integer", "description": "How many, <= 7"},
            },
            "required": ["town"],
        },
    },
}  # fmt: skip
CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"town": "Zürich", "days": 2}'},
}
RESULT = {"role": "tool", "tool_call_id": "call00001", "content": '{"degrees": 21}'}
NOTES = {
    "type": "function",
    "function": {
        "name": "find_notes",
        "description": "Notes with words.",
        "parameters": {
            "type": "object",
            "properties": {
                "words": {"type": "array", "items": {"type": "string"}, "description": "All of them"},
                "exact": {"type": "boolean", "description": "Whether the case matters"},
            },
            "required": ["words"],
        },
    },
}  # fmt: skip
SECOND_CALL = {
    "id": "call00002",
    "type": "function",
    "function": {"name": "find_notes", "arguments": '{"words": ["coat", "<rain>"], "exact": true}'},
}
SECOND_RESULT = {"role": "tool", "tool_call_id": "call00002", "content": '{"notes": []}'}
THINKS = {"role": "assistant", "content": "", "reasoning_content": "I must look up the weather.", "tool_calls": [CALL]}
CHATS: dict[str, Json] = {
    "system": {"messages": [SYSTEM, *TURNS]},
    "tools": {
        "messages": [SYSTEM, TURNS[2], {"role": "assistant", "content": "", "tool_calls": [CALL]}, RESULT],
        "tools": [TOOL],
    },
    "turns": {"messages": [*TURNS, {"role": "assistant", "content": "21 °C."}, {"role": "user", "content": "Thanks"}]},
    "prefill": {"messages": [TURNS[2], {"role": "assistant", "content": "It is 21"}]},
    "parallel": {
        "messages": [
            SYSTEM, TURNS[2], {"role": "assistant", "content": "", "tool_calls": [CALL, SECOND_CALL]},
            RESULT, SECOND_RESULT,
        ],
        "tools": [TOOL, NOTES],
    },
    "thinks": {"messages": [TURNS[2], THINKS, RESULT], "tools": [TOOL]},
    "thought": {
        "messages": [
            TURNS[2], THINKS, RESULT,
            {"role": "assistant", "content": "It is 21 °C.", "reasoning_content": "The tool says 21."},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [TOOL],
    },
}  # fmt: skip
TOLD = {  # in a table's head
    "system": "system and turns",
    "tools": "tools, a call and its result",
    "turns": "several turns",
    "prefill": "a begun answer",
    "parallel": "two calls at once",
    "thinks": "a thought before a call",
    "thought": "thoughts of an earlier turn",
}

NO_THOUGHTS = "its server begins an answer with an empty thought, which this model never writes"
BLANKS = "ours has the blanks that the template puts around a thought; its server has others"
OF_ITS_OWN = "the empty thought is the template's own; its server leaves out where it begins"
REFUSED = "its server refuses the chat; ours tells the call and its result in words"
NOT_WRITTEN = "the template leaves out earlier calls, and so does its server; ours writes them as the model is told to"
ONE_CALL = "the template writes one call of a message, and its server loses the other; ours tells one after the other"
NO_TWO = "its server refuses two calls in a message, as the template does; ours tells one after the other"
OWN_IDS = "its server writes the ids that it is given; ours those by which this model counts its calls"
LOST = "its server leaves out the call and its result, which this template does not know; ours tells them in words"
WITH_CALLS = ("tools", "parallel", "thinks", "thought")
DIFFERS = {  # why ours is another one, each looked at
    **{
        (name, chat): why
        for name, why in (
            ("google-gemma-2-2b-it", REFUSED),
            ("llama-cpp-rwkv-world", LOST),
            ("microsoft-Phi-3.5-mini-instruct", LOST),
            ("LFM2-8B-A1B", NOT_WRITTEN),
            ("LFM2.5-Instruct", NOT_WRITTEN),
            ("ibm-granite-granite-3.3-2B-Instruct", NOT_WRITTEN),
            ("moonshotai-Kimi-K2", OWN_IDS),
        )
        for chat in WITH_CALLS
    },
    ("GigaChat3-10B-A1.8B", "parallel"): ONE_CALL,
    ("GigaChat3.1-10B-A1.8B", "parallel"): ONE_CALL,
    ("openai-gpt-oss-120b", "parallel"): ONE_CALL,
    **{(f"meta-llama-Llama-{name}-Instruct", "parallel"): NO_TWO for name in ("3.1-8B", "3.2-3B", "3.3-70B")},
    ("CohereForAI-c4ai-command-r-plus-tool_use", "parallel"): "its server fails on a tool whose parameter is a list",
    ("openbmb-MiniCPM5-1B", "parallel"): "its server joins the texts of a list; ours writes the list",
    ("unsloth-mistral-Devstral-Small-2507", "thought"): "its server loses the text of an answer that has a thought",
    (
        "upstage-Solar-Open-100B",
        "thinks",
    ): "the template reads thoughts under a name by which its server does not tell them",
    ("CohereForAI-c4ai-command-r-plus-tool_use", "prefill"): "its server repeats how to call before a begun answer; "
    "ours is as the template writes an answer",
    ("GLM-4.6", "prefill"): BLANKS,
    ("HuggingFaceTB-SmolLM3-3B", "prefill"): BLANKS,
    ("Kimi-K2-Instruct", "prefill"): NO_THOUGHTS,
    ("LFM2-8B-A1B", "prefill"): NO_THOUGHTS,
    ("LFM2.5-Instruct", "prefill"): NO_THOUGHTS,
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "prefill"): BLANKS,
    ("StepFun3.5-Flash", "prefill"): BLANKS,
    ("deepseek-ai-DeepSeek-V4", "prefill"): OF_ITS_OWN,
    ("deepseek-ai-DeepSeek-V4-Flash-0731", "prefill"): OF_ITS_OWN,
    ("ibm-granite-granite-3.3-2B-Instruct", "prefill"): NO_THOUGHTS,
    ("llama-cpp-rwkv-world", "prefill"): "its server begins the thought twice",
    ("microsoft-Phi-3.5-mini-instruct", "prefill"): "its server takes the sign before the answer apart",
    ("moonshotai-Kimi-K2", "prefill"): NO_THOUGHTS,
    ("poolside-Laguna-XS-2.1", "prefill"): BLANKS,
    ("poolside-Laguna-XS.2", "prefill"): BLANKS,
    ("unsloth-mistral-Devstral-Small-2507", "prefill"): NO_THOUGHTS,
    ("upstage-Solar-Open-100B", "prefill"): "its server leaves out the sign before the answer's text",
}


@lru_cache(maxsize=1)
def record() -> Json:
    """`engine`; `now` and `tokens` of the recording; `templates`: by name the `source`, and what became of each chat:
    a `prompt`, or the `error` of the server."""
    data: Json = json.loads(gzip.decompress(RECORD.read_bytes()))
    return data


def rendered(name: str, chat: str) -> RenderedChat:
    """Return our rendering of a chat with a template of the record, as for a node. Raises TemplateFailed."""
    kept, value = record(), CHATS[chat]
    template = ChatTemplate(kept["templates"][name]["source"], kept["tokens"])
    return template.render(
        for_template(_format(name), [_read(message) for message in value["messages"]]),
        tools=value.get("tools", ()),
        now=LocalTime(kept["now"]),
        continues=chat == "prefill",
    )


def ours(name: str, chat: str) -> str:
    """Its text, but for the first token."""
    return rendered(name, chat).text.removeprefix(record()["tokens"]["bos_token"])


@lru_cache(maxsize=128)
def _format(name: str) -> CallFormat | None:
    """Return the call format of this template, by which a node prepares its chats."""
    kept = record()
    return call_format(kept["templates"][name]["source"], kept["tokens"], ENDS)


def _read(message: Json) -> Json:
    """Return a chat as a node has it, with the arguments of calls as objects."""
    if not (calls := message.get("tool_calls")):
        return message
    functions = [{**call["function"], "arguments": json.loads(call["function"]["arguments"])} for call in calls]
    return {**message, "tool_calls": [{**call, "function": of} for call, of in zip(calls, functions, strict=True)]}


def theirs(name: str, chat: str) -> str | None:
    """Return the rendering of llama.cpp's server without the first token, or None if it refused."""
    kept = record()
    result: Json = kept["templates"][name]["chats"][chat]
    prompt: str | None = result.get("prompt")
    return None if prompt is None else prompt.removeprefix(kept["tokens"]["bos_token"])


def keep(result: Json) -> None:
    """Write the record; the same bytes for the same words."""
    text = json.dumps(result, ensure_ascii=False, indent=0, sort_keys=True)
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))
