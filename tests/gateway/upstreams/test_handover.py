"""The requests that continue an answer elsewhere, and the answers that stay where they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.api.plans import Notice
from app.gateway.api_request import THOUGHT, AnswerEnd, ApiRequest, CallStart, Piece, TextPiece, ThoughtPiece, Tool
from app.gateway.upstreams.handover import Handover

MESSAGES = ({"role": "user", "content": "Hi"},)
ASKED = ApiRequest("m", MESSAGES, max_tokens=20, extra_fields={"temperature": 0.5, "reasoning_effort": "low"})
RENDERED = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
MARKERS = ("<|im_start|>", "<|im_end|>")


def begun(api_request: ApiRequest = ASKED, *pieces: Piece) -> Handover:
    handover = Handover(api_request)
    handover.note_prompt("m", RENDERED, MARKERS)
    for piece in pieces or (TextPiece(0, "Hello, wor"), TextPiece(0, "")):
        handover.add(piece)
    return handover


def test_a_server_completes_the_rendered_prompt_and_the_text_in_mid_word() -> None:
    following = begun().for_server()
    assert following is not None
    assert (following.messages, following.prompt) == (None, f"{RENDERED}Hello, wor")
    assert following.max_tokens == 18
    assert following.extra_fields == {"temperature": 0.5}  # what holds for a text too
    raw = begun(replace(ASKED, messages=None, prompt="Once"), TextPiece(0, " upon")).for_server()
    assert raw is not None
    assert raw.prompt == "Once upon"


@pytest.mark.parametrize(
    ("api_request", "pieces"),
    [
        (replace(ASKED, tools=(Tool("f", "", {}),)), ()),
        (replace(ASKED, schema={"type": "object"}), ()),
        (replace(ASKED, sampling=replace(ASKED.sampling, likely=2)), ()),
        (replace(ASKED, sampling=replace(ASKED.sampling, logit_bias=((1, 2.0),))), ()),
        (replace(ASKED, pictures={"marker": b"png"}), ()),
        (replace(ASKED, messages=None, prompt=(1, 2)), ()),
        (ASKED, (ThoughtPiece(0, "hm"), TextPiece(0, "So"))),
        (ASKED, (TextPiece(0, "a <|im_end|> b"),)),  # the server would read it as a token
        (ASKED, (CallStart(0, 0, "id", "f"),)),
    ],
)
def test_what_no_server_can_continue_stays(api_request: ApiRequest, pieces: tuple[Piece, ...]) -> None:
    assert begun(api_request, *pieces).for_server() is None


def test_without_a_rendered_prompt_only_what_is_not_begun_goes_and_goes_whole() -> None:
    unknown = Handover(ASKED)
    assert unknown.for_server() is unknown.for_pool() is ASKED
    unknown.add(TextPiece(0, "Hello"))
    assert unknown.for_server() is None


def test_the_pool_goes_on_from_the_beginning_of_the_assistant_s_message() -> None:
    following = begun(ASKED, ThoughtPiece(0, "hm"), TextPiece(0, "Hello, wor")).for_pool()
    assert following is not None
    assert following.messages == (*MESSAGES, {"role": "assistant", "content": "Hello, wor", THOUGHT: "hm"})
    raw = begun(replace(ASKED, messages=None, prompt="Once", max_tokens=None), TextPiece(0, " upon")).for_pool()
    assert raw is not None
    assert (raw.prompt, raw.max_tokens) == ("Once upon", None)
    assert begun(ASKED, CallStart(0, 0, "id", "f")).for_pool() is None
    assert begun(replace(ASKED, max_tokens=1)).for_pool() == replace(
        ASKED, messages=(*MESSAGES, {"role": "assistant", "content": "Hello, wor"}), max_tokens=1
    )


def test_the_end_counts_both_parts() -> None:
    end = AnswerEnd(0, "stop", None, 30, 0, 5, 0.0, 0.1, 9.0)
    assert begun().joined(end) == replace(end, prompt_tokens=28, answer_tokens=7)


def test_a_pool_without_a_plan_left_has_to_wait() -> None:
    short = Notice(state="short")
    assert begun().has_to_wait(short)
    assert not begun().has_to_wait(Notice(state="rebuilding"))
    assert not begun().has_to_wait(TextPiece(0, "x"))
    assert not begun(ASKED, ThoughtPiece(0, "hm")).has_to_wait(short)
