"""Tests of logprobs, which are sent only with their text, and of one call if one is wanted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from msgspec import structs

from app.api.responses import Answer
from app.gateway.answer_service import AnswerReader
from app.gateway.api_request import AnswerEnd, ApiRequest, CallDone, TextPiece, Tool
from app.inference.pipeline.completion import Delta
from app.node.placement.placement import Placement
from tests.gateway.test_answer_service import Answerer

DONE = Answer(finish_reason="stop", prompt_tokens=3, token_ids=[1], ttft_s=0.1, decode_tok_s=5.0)


def told(parts: list[tuple[str, bytes]], stop: str | None = None) -> list[tuple[str, list[bytes]]]:
    """Text and tokens of each piece; a part is what text came with which token."""
    talk = AnswerReader(ApiRequest("m", prompt="x"), 0)
    pieces = [piece for text, token in parts for piece in talk.read(Delta(text, (1,), ((token, -1.0),)))]
    pieces += talk.end(structs.replace(DONE, stop=stop), 0.0)
    return [(p.text, [group[0][0] for group in p.likely]) for p in pieces if isinstance(p, TextPiece)]


def test_with_each_text_its_token() -> None:
    assert told([("a", b"a"), ("", b""), ("b", b"b")]) == [("a", [b"a"]), ("", [b""]), ("b", [b"b"])]


def test_a_token_waits_for_its_text() -> None:
    assert told([("", b"a"), ("", b"b"), ("abc", b"c")]) == [("abc", [b"a", b"b", b"c"])]
    whole = "€".encode()
    assert told([("", whole[:1]), ("€", whole[1:])]) == [("€", [whole[:1], whole[1:]])]


def test_at_the_end_come_those_that_were_never_whole() -> None:
    assert told([("a", b"a"), ("", b"\xe2")]) == [("a", [b"a"]), ("", [b"\xe2"])]


def test_what_a_stop_took_away_was_never_told() -> None:
    assert told([("a", b"a"), ("", b"E"), ("", b"ND.")], stop="END") == [("a", [b"a"])]
    assert told([("a", b"a"), ("b", b"bE"), ("", b"ND")], stop="END") == [("a", [b"a"]), ("b", []), ("", [b"bE"])]


def written(style: str, *zones: str) -> str:
    """Calls of the clock, one for each zone."""
    match style:
        case "qwen_coder":
            head, tail = "<tool_call>\n<function=clock>\n", "\n</function>\n</tool_call>"
            parts = [f"{head}<parameter=zone>\n{zone}\n</parameter>{tail}" for zone in zones]
            return "\n".join(parts)
        case "ministral":
            return "".join(f'[TOOL_CALLS]clock[ARGS]{{"zone": "{zone}"}}' for zone in zones)
    calls = [f'{{"name": "clock", "arguments": {{"zone": "{zone}"}}}}' for zone in zones]
    if style == "hermes":
        return "\n".join(f"<tool_call>{call}</tool_call>" for call in calls)
    return "; ".join(calls)  # llama3


async def called(style: str, text: str, *, many: bool, reason: str = "stop") -> tuple[list[str], str, int]:
    """The arguments of each call that is told of such an answer, why it ended, and its tokens."""
    talk = AnswerReader(ApiRequest("m", (), tools=(Tool("clock", "", {}),), parallel_calls=many), 0)
    await talk.prepare(cast("Placement", SimpleNamespace(completer=Answerer(style))))
    pieces = [piece for sign in text for piece in talk.read(Delta(sign, (1,)))]
    tokens = [1] * len(text)
    pieces += talk.end(structs.replace(DONE, finish_reason=reason, token_ids=tokens), 0.0)
    (end,) = (piece for piece in pieces if isinstance(piece, AnswerEnd))
    assert not any(isinstance(piece, TextPiece) and piece.text for piece in pieces)
    calls = [piece for piece in pieces if isinstance(piece, CallDone)]
    assert [call.number for call in calls] == list(range(len(calls)))
    return [call.arguments for call in calls], end.reason, end.answer_tokens


STYLES = ["hermes", "qwen_coder", "ministral", "llama3"]


@pytest.mark.parametrize("style", STYLES)
async def test_only_the_first_of_several_calls_is_told_where_one_at_once_is_wanted(style: str) -> None:
    text = written(style, "UTC", "CET", "EST")
    n = len(text)
    name, rest = '{"zone": "UTC"}', ['{"zone": "CET"}', '{"zone": "EST"}']
    assert await called(style, text, many=True) == ([name, *rest], "calls", n)
    assert await called(style, text, many=False) == ([name], "calls", n)


@pytest.mark.parametrize("style", STYLES)
async def test_an_answer_that_is_cut_in_a_call_which_nobody_hears_of_is_a_whole_one(style: str) -> None:
    text = written(style, "UTC", "CET")
    text = text[: text.index("CET") + 1]
    many, reason, _ = await called(style, text, many=True, reason="length")
    assert (len(many), reason) == (2, "length")
    group = await called(style, text, many=False, reason="length")
    assert group == (['{"zone": "UTC"}'], "calls", len(text))
    half = text[: text.index("UTC") + 1]
    (_,), reason, _ = await called(style, half, many=False, reason="length")
    assert reason == "length"
