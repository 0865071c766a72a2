"""Pictures in requests of all dialects: decoded from base64, and replaced by markers in the text of their messages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from app.core.errors import BadInput
from app.gateway.api_request import text_of
from app.inference.pipeline.pictures import Pictures
from backends.readers.messages import MAX_PICTURE_BYTES

Json = dict[str, Any]
PICTURES = ("image_url", "input_image", "image")  # kinds of parts, of OpenAI's two dialects and of Anthropic's
DATA, BASE64 = "data:", ";base64,"
URL_HEAD = 200  # characters in which the data must begin
MOST_CHARACTERS = (MAX_PICTURE_BYTES + 2) // 3 * 4


def content_text(content: object, kinds: Sequence[str], role: str, pictures: Pictures) -> str:
    """Return the text of a message's content, with a marker for each picture. Raises BadInput."""
    if not isinstance(content, list) or not any(_is_picture(part) for part in content):
        return text_of(content, kinds)
    if role != "user":
        raise BadInput("picture_role", role=role)
    text, was_text = "", False
    for part in content:
        is_text = not _is_picture(part)
        text += ("\n" if is_text and was_text else "") + (
            text_of([part], kinds) if is_text else pictures.add(_file(part))
        )
        was_text = is_text
    return text


def add_base64(data: str, pictures: Pictures) -> str:
    """Add a picture in base64 and return its marker. Raises BadInput."""
    is_url = data.startswith(DATA)  # some programs send a whole URL where data is expected
    return pictures.add(_decoded(_of_url(data) if is_url else data))


def _is_picture(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in PICTURES


def _file(part: Json) -> bytes:
    match part:
        case {"type": "image", "source": {"type": "base64", "data": data}}:
            return _decoded(data)
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return _decoded(_of_url(url))
        case {"type": "input_image", "image_url": str(url)}:
            return _decoded(_of_url(url))
    raise BadInput("picture_remote")  # an address, or a file that was uploaded elsewhere


def _of_url(url: str) -> str:
    """Return the base64 text of a data URL. Raises BadInput."""
    head, is_base64, _ = url[:URL_HEAD].partition(BASE64)
    if not url.startswith(DATA) or not is_base64:
        raise BadInput("picture_remote")
    return url[len(head) + len(BASE64) :]


def _decoded(data: object) -> bytes:
    if not isinstance(data, str):
        raise BadInput("picture_broken")
    if len(data) > MOST_CHARACTERS:
        n_bytes = len(data) * 3 // 4
        raise BadInput("picture_large", found_bytes=n_bytes, most_bytes=MAX_PICTURE_BYTES)
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("picture_broken") from None
