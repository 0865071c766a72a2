"""Cases of the comparison in which several system messages are told, as agents do: to the Guide, and to a tiny random
model whose chat template takes one at the beginning alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed import tiny
from tests.gateway.compared import CHAT, COUNT, KINDS, MESSAGES, READ, RESPONSES, Case
from tests.gateway.tool_cases import HERMES

Json = dict[str, Any]

MODEL = "llama3"
LLAMA3 = HERMES.replace("<tool_call>", "<|python_tag|>").replace("</tool_call>", "").replace(
    "{% for c in", "{% if m.tool_calls and m.tool_calls|length > 1 %}{{ raise_exception('one at once') }}{% endif %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('system first') }}{% endif %}"
    "{% for c in",
)  # fmt: skip
KIND, BRIEF = ({"role": "system", "content": "Be kind."}, {"role": "system", "content": "Be brief."})
DEVELOPER = {"role": "developer", "content": "You may not write files."}
ASKS, SAYS, AGAIN = (
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "How do I add a computer?"},
)
IN_BLOCKS = BRIEF | {"content": [{"type": "text", "text": BRIEF["content"]}]}
OF_CHAT: dict[str, Json] = {
    "two": {"messages": [KIND, BRIEF, ASKS]},
    "a developer's": {"messages": [KIND, DEVELOPER, ASKS]},
    "in the middle": {"messages": [KIND, ASKS, SAYS, BRIEF, AGAIN]},
    "at the end": {"messages": [ASKS, BRIEF]},
}
OF_MESSAGES: dict[str, Json] = {
    "in the middle": {"system": "Be kind.", "messages": [ASKS, SAYS, IN_BLOCKS, AGAIN]},
    "at the end": {"messages": [ASKS, BRIEF]},
}
OF_RESPONSES: dict[str, Json] = {
    "two": {"instructions": "Be kind.", "input": [BRIEF, ASKS]},
    "at the end": {"instructions": "Be kind.", "input": [DEVELOPER, ASKS, BRIEF]},
}
FEW: Json = {"max_tokens": 4}
OF_EACH: dict[str, tuple[Json, dict[str, Json]]] = {
    CHAT: (FEW, OF_CHAT),
    MESSAGES: (FEW, OF_MESSAGES),
    COUNT: ({}, OF_MESSAGES),
    RESPONSES: ({"max_output_tokens": 4}, OF_RESPONSES),
    READ: ({}, OF_RESPONSES),
}


def llama3(folder: Path) -> Path:
    """The model, as a file in this folder."""
    return tiny.llama(folder / f"{MODEL}.gguf", layers=2, vocab=300, template=LLAMA3)


def system_cases(model: str) -> dict[str, Case]:
    """Name -> what is asked of this model."""
    result: dict[str, Case] = {}
    for path, (usual, each) in OF_EACH.items():
        for name, change in each.items():
            body: Json = {"model": model, "temperature": 0} | usual | change
            result[f"{KINDS[path]}, system of {model}: {name}"] = ("POST", path, body)
            if path not in (COUNT, READ) and name == "at the end":
                text = f"{KINDS[path]}, system of {model}, streamed: {name}"
                result[text] = ("POST", path, body | {"stream": True})
    return result
