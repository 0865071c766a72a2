"""How likely tokens were, told with their text and never without it."""

from __future__ import annotations

from typing import Any

from app.node.chat_api.talk import Talk
from app.node.chat_api.wish import Said, Wish

Json = dict[str, Any]
DONE: Json = {
    "finish_reason": "stop", "stop": None, "prompt_tokens": 3, "reused_tokens": 0, "token_ids": [1], "queued_s": 0.0,
    "ttft_s": 0.1, "decode_tok_s": 5.0,
}  # fmt: skip


def told(parts: list[tuple[str, bytes]], stop: str | None = None) -> list[tuple[str, list[bytes]]]:
    """Text and tokens of each piece; a part is what text came with which token."""
    talk = Talk(Wish("m", prompt="x"), 0)
    pieces = [
        piece
        for text, token in parts
        for piece in talk.heard({"text": text, "token_ids": [1], "likely": ((token, -1.0),)})
    ]
    pieces += talk.ended(DONE | {"stop": stop}, 0.0)
    return [(p.text, [one[0][0] for one in p.likely]) for p in pieces if isinstance(p, Said)]


def test_with_each_text_its_token() -> None:
    assert told([("a", b"a"), ("", b""), ("b", b"b")]) == [
        ("a", [b"a"]),
        ("", [b""]),
        ("b", [b"b"]),
    ]


def test_a_token_waits_for_its_text() -> None:
    assert told([("", b"a"), ("", b"b"), ("abc", b"c")]) == [("abc", [b"a", b"b", b"c"])]
    whole = "€".encode()
    assert told([("", whole[:1]), ("€", whole[1:])]) == [("€", [whole[:1], whole[1:]])]


def test_at_the_end_come_those_that_were_never_whole() -> None:
    assert told([("a", b"a"), ("", b"\xe2")]) == [("a", [b"a"]), ("", [b"\xe2"])]


def test_what_a_stop_took_away_was_never_told() -> None:
    assert told([("a", b"a"), ("", b"E"), ("", b"ND.")], stop="END") == [("a", [b"a"])]
    assert told([("a", b"a"), ("b", b"bE"), ("", b"ND")], stop="END") == [
        ("a", [b"a"]),
        ("b", []),
        ("", [b"bE"]),
    ]
