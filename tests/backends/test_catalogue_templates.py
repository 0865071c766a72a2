"""The chat template of each entry of the catalogue, as far as llama.cpp's source ships the one of its family."""

from __future__ import annotations

import re

import pytest

from app.catalog.catalogue import shipped
from backends.chat_template import ChatTemplate
from backends.contract import LocalTime
from tests.backends.template_chats import CHATS, record

OF_ENTRY = (  # the first that an entry's id begins with
    ("deepseek-r1-distill-llama", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B"),
    ("deepseek-r1", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B"),
    ("deepseek-v3.1", "deepseek-ai-DeepSeek-V3.1"),
    ("deepseek-v3.2", "deepseek-ai-DeepSeek-V3.2"),
    ("deepseek-v4-flash", "deepseek-ai-DeepSeek-V4-Flash-0731"),
    ("deepseek-v4", "deepseek-ai-DeepSeek-V4"),
    ("devstral-small-2507", "unsloth-mistral-Devstral-Small-2507"),
    ("gemma-2", "google-gemma-2-2b-it"),
    ("gemma-4", "google-gemma-4-31B-it"),
    ("glm-4.7-flash", "GLM-4.7-Flash"),
    ("glm-4", "GLM-4.6"),
    ("gpt-oss", "openai-gpt-oss-120b"),
    ("granite-3.3", "ibm-granite-granite-3.3-2B-Instruct"),
    ("granite-4.0", "ibm-granite-granite-4.0"),
    ("granite-4.1", "ibm-granite-granite-4.1"),
    ("hy3", "tencent-Hy3"),
    ("kimi-k2-thinking", "Kimi-K2-Thinking"),
    ("kimi-k2", "Kimi-K2-Instruct"),
    ("kimi-k3", "Kimi-K3"),
    ("lfm2.5-8b", "LFM2.5-8B-A1B"),
    ("lfm2.5", "LFM2.5-Instruct"),
    ("lfm2", "LFM2-8B-A1B"),
    ("llama-3.1", "meta-llama-Llama-3.1-8B-Instruct"),
    ("llama-3.2", "meta-llama-Llama-3.2-3B-Instruct"),
    ("llama-3.3", "meta-llama-Llama-3.3-70B-Instruct"),
    ("minimax-m2", "MiniMax-M2"),
    ("minimax-m3", "MiniMax-M3"),
    ("ministral-3", "mistralai-Ministral-3-14B-Reasoning-2512"),
    ("mistral-nemo", "mistralai-Mistral-Nemo-Instruct-2407"),
    ("mistral-small-3.2", "Mistral-Small-3.2-24B-Instruct-2506"),
    ("nemotron-3", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
    ("qwen2.5", "Qwen-Qwen2.5-7B-Instruct"),
    ("qwen3-coder", "Qwen3-Coder"),
    ("qwen3.5", "Qwen3.5-4B"),
    ("qwen3.6", "Qwen3.5-4B"),
    ("qwen3", "Qwen-Qwen3-0.6B"),
    ("qwq", "Qwen-QwQ-32B"),
    ("seed-oss", "ByteDance-Seed-OSS"),
    ("smollm3", "HuggingFaceTB-SmolLM3-3B"),
)
NOT_SHIPPED = ("devstral-small-2", "gemma-3", "llama-4", "mistral-small-4", "olmo", "phi-4", "smollm2")  # fmt: skip
FOLDED = {"google-gemma-2-2b-it": {"system", "tools"}}
LEFT_OUT = {  # by the template's own will: the system's words stand with the last of the user, if they come last
    ("mistralai-Mistral-Nemo-Instruct-2407", "tools", "system"),
}
ENTRIES = sorted(entry.id for entry in shipped().models)


def template_of(entry: str) -> str | None:
    """The name of its family's template; None: llama.cpp's source ships none."""
    named = next((name for begin, name in OF_ENTRY if re.match(re.escape(begin) + r"(\b|-)", entry)), None)  # fmt: skip
    known = next((begin for begin in NOT_SHIPPED if entry.startswith(begin)), None)
    assert named or known, f"say here which template {entry} has, or that llama.cpp ships none"
    return named


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_template_of_an_entry_renders_each_chat(entry: str) -> None:
    name = template_of(entry)
    if name is None:
        pytest.skip(f"llama.cpp's source ships no template of {entry}")
    kept = record()
    template = ChatTemplate(kept["templates"][name]["source"], kept["tokens"])
    for chat, given in CHATS.items():
        found = template.render(
            given["messages"],
            tools=given.get("tools", ()),
            now=LocalTime(kept["now"]),
            continues=chat == "prefill",
        )
        for message in given["messages"]:
            words = (
                "degrees" if message["role"] == "tool" else message["content"]
            )  # JSON may be in JSON
            is_left_out = (name, chat, message["role"]) in LEFT_OUT
            assert (words in found.text) is not is_left_out
        assert set(found.folded) <= FOLDED.get(name, set())


def test_every_template_that_is_named_is_there() -> None:
    assert {name for _, name in OF_ENTRY} <= set(record()["templates"])
