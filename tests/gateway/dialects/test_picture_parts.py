"""Pictures in the bodies of requests: their order in the text, what is refused, and where they never go."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from app.core.errors import BadInput
from app.decoding import convert
from app.gateway.api_request import ApiRequest
from app.gateway.dialects.openai_requests import ChatRequest
from app.gateway.dialects.picture_parts import add_base64, content_text
from app.gateway.upstreams.upstream_dialect import upstream_obstacle
from app.inference.pipeline.pictures import Pictures, marker_of
from backends.readers.messages import MAX_PICTURE_BYTES

TEXT = ("text",)
A, B = b"first picture", b"second picture"


def url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def image(data: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url(data)}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_each_picture_stands_where_it_was_sent() -> None:
    pictures = Pictures()
    parts = [text("Compare"), text("these:"), image(A), image(B), text("Which?"), image(A)]
    written = content_text(parts, TEXT, "user", pictures)
    a, b = marker_of(A), marker_of(B)
    assert written == f"Compare\nthese:{a}{b}Which?{a}"
    assert pictures.files == {a: A, b: B}


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}, "picture_remote"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "picture_remote"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,plain"}}, "picture_remote"),
        ({"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}, "picture_remote"),
        ({"type": "image", "source": {"type": "file", "file_id": "x"}}, "picture_remote"),
        ({"type": "input_image", "file_id": "x"}, "picture_remote"),
        ({"type": "image_url", "image_url": {"url": "data:;base64,data:;base64,AAAA"}}, "picture_broken"),
        ({"type": "image_url", "image_url": {"url": "data:;base64," * 300_000}}, "picture_broken"),
        ({"type": "image_url", "image_url": {"url": "data:;base64,*"}}, "picture_broken"),
        ({"type": "image", "source": {"type": "base64", "data": 7}}, "picture_broken"),
        ({"type": "image", "source": {"type": "base64", "data": "A" * 7_000_000}}, "picture_large"),
    ],
)
def test_what_is_no_picture_is_refused_before_it_is_decoded(part: dict[str, Any], code: str) -> None:
    with pytest.raises(BadInput) as refused:
        content_text([part], TEXT, "user", Pictures())
    assert refused.value.reason.code == code
    with pytest.raises(BadInput) as refused:
        content_text([part], TEXT, "assistant", Pictures())
    assert refused.value.reason.code == "picture_role"


def test_there_are_bounds_for_one_picture_and_for_all() -> None:
    with pytest.raises(BadInput) as refused:
        add_base64(base64.b64encode(bytes(MAX_PICTURE_BYTES + 1)).decode(), Pictures())
    assert refused.value.reason.code == "picture_large"
    pictures = Pictures()
    for _ in range(16):
        add_base64(url(A), pictures)  # a whole URL is understood as well
    with pytest.raises(BadInput) as refused:
        add_base64(url(A), pictures)
    assert refused.value.reason.code == "pictures_many"


def test_no_upstream_gets_a_picture() -> None:
    body = {"model": "x", "messages": [{"role": "user", "content": [image(A), text("What?")]}]}
    request = convert(body, ChatRequest).to_api_request(0)
    assert request.pictures == {marker_of(A): A}
    assert upstream_obstacle(request) == "picture_upstream"
    assert upstream_obstacle(ApiRequest("x", messages=({"role": "user", "content": "What?"},))) == ""
