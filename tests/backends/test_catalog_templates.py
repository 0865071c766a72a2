"""The chat template of each entry of the catalog, as far as llama.cpp's source ships the one of its family."""

from __future__ import annotations

import re

import pytest

from app.catalog.model_catalog import load_catalog
from tests.backends.template_chats import CHATS, record, rendered

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
NO_TEMPLATE = {  # of these entries, by how their ids begin: why none of those that are shipped is theirs
    "devstral-small-2": "llama.cpp ships that of Devstral Small 2507; nobody here has seen the newer one",
    "gemma-3": "llama.cpp ships those of Gemma 2, which refuses a system message, and of Gemma 4 with signs of its own",
    "llama-4": "llama.cpp ships those of Llama 3, whose signs are others",
    "mistral-small-4": "llama.cpp ships that of Mistral Small 3.2; nobody here has seen the newer one",
    "olmo": "llama.cpp ships none of Olmo",
    "phi-4": "llama.cpp ships that of Phi 3.5, and these write turns otherwise",
}
WITHOUT = {
    "devstral-small-2-24b", "gemma-3-1b", "gemma-3-4b", "gemma-3-12b", "gemma-3-27b", "llama-4-scout",
    "mistral-small-4-119b", "olmo-3.1-32b-think", "phi-4", "phi-4-mini",
}  # fmt: skip
FOLDED = {"google-gemma-2-2b-it": {"system", "tools"}}
LEFT_OUT = {  # by the template's own will: the system's words stand with the last of the user, if they come last
    ("mistralai-Mistral-Nemo-Instruct-2407", "tools", "system"),
    ("mistralai-Mistral-Nemo-Instruct-2407", "parallel", "system"),
}
ENTRIES = sorted(entry.id for entry in load_catalog().models)


def template_of(entry: str) -> str | None:
    """The name of its family's template; None: llama.cpp's source ships none."""
    return next((name for begin, name in OF_ENTRY if re.match(re.escape(begin) + r"(\b|-)", entry)), None)  # fmt: skip


def test_each_entry_has_a_template_or_a_reason_for_none() -> None:
    assert {entry for entry in ENTRIES if template_of(entry) is None} == WITHOUT
    of_reasons = {begin: {name for name in WITHOUT if name.startswith(begin)} for begin in NO_TEMPLATE}
    assert all(of_reasons.values()), "a reason for an entry that the catalog has not"
    assert set().union(*of_reasons.values()) == WITHOUT


@pytest.mark.parametrize("begin", NO_TEMPLATE)
def test_a_template_that_is_shipped_at_last_is_taken(begin: str) -> None:
    """Fails once a newer engine ships one of that name."""
    bare = re.compile(re.escape(begin) + r"(?!\d)")  # devstral-small-2, but not -2507
    templates = [name for name in record()["templates"] if bare.search(name.lower())]
    assert not templates, f"say in OF_ENTRY that {begin} has it"


@pytest.mark.parametrize("entry", [name for name in ENTRIES if name not in WITHOUT])
def test_the_template_of_an_entry_renders_each_chat(entry: str) -> None:
    name = template_of(entry)
    assert name is not None
    for chat, value in CHATS.items():
        text = rendered(name, chat)
        for message in value["messages"]:
            words = "degrees" if message["role"] == "tool" else message["content"]  # JSON may be in JSON
            is_left_out = (name, chat, message["role"]) in LEFT_OUT
            assert (words in text.text) is not is_left_out
        assert set(text.folded) <= FOLDED.get(name, set())


def test_every_template_that_is_named_is_there() -> None:
    assert {name for _, name in OF_ENTRY} <= set(record()["templates"])
