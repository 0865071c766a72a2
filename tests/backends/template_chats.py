"""The chats that llama.cpp's server and ours render with each template, and the record of what its server made."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from backends.chat_template import ChatTemplate
from backends.contract import LocalTime

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
CHATS: dict[str, Json] = {
    "system": {"messages": [SYSTEM, *TURNS]},
    "tools": {
        "messages": [SYSTEM, TURNS[2], {"role": "assistant", "content": "", "tool_calls": [CALL]}, RESULT],
        "tools": [TOOL],
    },
    "turns": {"messages": [*TURNS, {"role": "assistant", "content": "21 °C."}, {"role": "user", "content": "Thanks"}]},
    "prefill": {"messages": [TURNS[2], {"role": "assistant", "content": "It is 21"}]},
}  # fmt: skip
TOLD = {  # in a table's head
    "system": "system and turns",
    "tools": "tools, a call and its result",
    "turns": "several turns",
    "prefill": "a begun answer",
}

NO_THOUGHTS = "its server begins an answer with an empty thought, which this model never writes"
BLANKS = "the blanks around an empty thought are the template's own; its server has others"
OF_ITS_OWN = "the empty thought is the template's own; its server leaves out where it begins"
LOST = "its server leaves out the call and its result, which this template does not know; ours tells them in words"
DIFFERS = {  # why ours is another one, each looked at
    (
        "CohereForAI-c4ai-command-r-plus-tool_use",
        "prefill",
    ): "its server repeats how to call before a begun answer; "
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
    (
        "google-gemma-2-2b-it",
        "tools",
    ): "its server refuses the chat; ours tells the call and its result in words",
    ("ibm-granite-granite-3.3-2B-Instruct", "prefill"): NO_THOUGHTS,
    ("llama-cpp-rwkv-world", "prefill"): "its server begins the thought twice",
    ("llama-cpp-rwkv-world", "tools"): LOST,
    (
        "microsoft-Phi-3.5-mini-instruct",
        "prefill",
    ): "its server takes the sign before the answer apart",
    ("microsoft-Phi-3.5-mini-instruct", "tools"): LOST,
    ("moonshotai-Kimi-K2", "prefill"): NO_THOUGHTS,
    ("poolside-Laguna-XS-2.1", "prefill"): BLANKS,
    ("poolside-Laguna-XS.2", "prefill"): BLANKS,
    ("unsloth-mistral-Devstral-Small-2507", "prefill"): NO_THOUGHTS,
    (
        "upstage-Solar-Open-100B",
        "prefill",
    ): "its server leaves out the sign before the answer's text",
}


@lru_cache(maxsize=1)
def record() -> Json:
    """`engine`; `now` and `tokens` of the recording; `templates`: by name the `source`, and what became of each chat:
    a `prompt`, or the `error` of the server."""
    found: Json = json.loads(gzip.decompress(RECORD.read_bytes()))
    return found


def ours(name: str, chat: str) -> str:
    """What we make of a chat with a template of the record. Raises TemplateFailed."""
    kept, given = record(), CHATS[chat]
    template = ChatTemplate(kept["templates"][name]["source"], kept["tokens"])
    found = template.render(
        given["messages"],
        tools=given.get("tools", ()),
        now=LocalTime(kept["now"]),
        continues=chat == "prefill",
    )
    return found.text.removeprefix(kept["tokens"]["bos_token"])


def theirs(name: str, chat: str) -> str | None:
    """What llama.cpp's server made of it, but for the first token; None: it refused."""
    kept = record()
    told: Json = kept["templates"][name]["chats"][chat]
    prompt: str | None = told.get("prompt")
    return None if prompt is None else prompt.removeprefix(kept["tokens"]["bos_token"])


def keep(told: Json) -> None:
    """Write the record; the same bytes for the same words."""
    text = json.dumps(told, ensure_ascii=False, indent=0, sort_keys=True)
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))
