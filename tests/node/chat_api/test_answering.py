"""Calls whose signs are control tokens, in the order in which tokens come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.node.chat_api.answering import Asker, _conversation, _Talk
from app.node.chat_api.wish import Called, Ended, Json, Said, Tool, Wish, text_of
from app.node.running import Running

ARGUMENTS = '{"name": "clock", "arguments": {"zone": "UTC"}}'
DONE: Json = {
    "finish_reason": "stop", "stop": None, "prompt_tokens": 3, "reused_tokens": 0, "token_ids": [1], "queued_s": 0.0,
    "ttft_s": 0.1, "decode_tok_s": 5.0,
}  # fmt: skip


class Answerer:
    """A model of a family, with these control tokens."""

    def __init__(self, style: str, **control: int) -> None:
        self.tool_style, self._control = style, control

    async def control_token(self, name: str) -> int | None:
        return self._control.get(name.strip("<>[]/").lower() + ("_end" if "/" in name else ""))


async def heard(style: str, tokens: list[tuple[int, str]], **control: int) -> list[Any]:
    talk = _Talk(Wish("m", (), tools=(Tool("clock", "", {}),)), 0, Asker("k", "r"))
    await talk.hear(cast("Running", SimpleNamespace(answerer=Answerer(style, **control))))
    pieces: list[Any] = []
    for token, text in tokens:
        pieces += talk.heard({"text": text, "token_ids": [token]})
    return pieces + talk.ended(DONE, 0.5)


@pytest.mark.parametrize(
    ("style", "tokens", "control"),
    [
        ("hermes", [(7, ""), (1, ARGUMENTS), (8, "")], {"tool_call": 7, "tool_call_end": 8}),
        ("hermes", [(7, "<tool_call>"), (1, ARGUMENTS), (8, "</tool_call>")], {}),
        ("mistral", [(9, ""), (1, f"[{ARGUMENTS}]")], {"tool_calls": 9}),
        ("llama3", [(9, ""), (1, ARGUMENTS)], {"|python_tag|": 9}),
    ],
)
async def test_a_call_is_found(style: str, tokens: list[tuple[int, str]], control: Json) -> None:
    called, end = await heard(style, tokens, **control)
    assert isinstance(called, Called)
    assert isinstance(end, Ended)
    assert (called.name, called.arguments, end.reason) == ("clock", '{"zone": "UTC"}', "calls")
    assert end.queued_s == 0.5


async def test_text_stays_text() -> None:
    said, end = await heard("mistral", [(1, "It is noon.")])
    assert (said, end.reason) == (Said(0, "It is noon."), "stop")


def test_a_conversation_is_what_begins_alike_for_one_program() -> None:
    system, user = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
    later = (system, user, {"role": "assistant", "content": "a"}, user)
    first = _conversation(Wish("m", (system, user)), "key")
    assert _conversation(Wish("m", later), "key") == first
    others = [
        _conversation(Wish("m", (system, user)), "another"),
        _conversation(Wish("m", (system, user), user="anna"), "key"),
        _conversation(Wish("m", (user,)), "key"),
        _conversation(Wish("m", prompt="u"), "key"),
    ]
    assert len({first, *others}) == 5


def test_a_content_is_text_or_refused() -> None:
    assert text_of(None) == ""
    assert text_of([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) == "a\nb"
