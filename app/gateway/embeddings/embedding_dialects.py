"""What is asked for vectors, as OpenAI and as Ollama ask, and how each tells them. No I/O."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Sequence
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta

from app.core.errors import BadInput
from app.gateway.api_request import Json
from app.inference.worker.embedder import Text, Vector
from app.node.models.embeddings import Embedded

MOST_TEXTS = 2048  # of one request, as OpenAI documents it
MOST_CHARS = 1 << 20
NANOSECONDS = 1e9

Given = Annotated[str, Meta(max_length=MOST_CHARS)]
Ids = Annotated[list[Annotated[int, Meta(ge=0, le=1 << 30)]], Meta(min_length=1, max_length=1 << 16)]
Size = Annotated[int, Meta(ge=1, le=1 << 16)] | None


class EmbeddingsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """OpenAI's."""

    input: Given | Annotated[list[str | int | list[int]], Meta(min_length=1, max_length=1 << 16)]
    model: str = ""
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Size = None
    user: Annotated[str, Meta(max_length=1000)] | None = None

    def texts(self) -> tuple[Text, ...]:
        """Raises BadInput."""
        return texts_of(self.input)


class OllamaEmbedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ollama's, of /api/embed."""

    input: Given | Annotated[list[Given], Meta(max_length=MOST_TEXTS)] = ""
    model: str = ""
    truncate: bool | None = None
    dimensions: Size = None

    def texts(self) -> tuple[Text, ...]:
        """None of one empty text, as Ollama has it; among others it would move their vectors. Raises BadInput."""
        return texts_of(self.input) if self.input else ()


class OllamaEmbeddingsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ollama's older one, of /api/embeddings."""

    prompt: Given = ""
    model: str = ""


def texts_of(given: str | Sequence[str | int | list[int]]) -> tuple[Text, ...]:
    """One text or several, each as words or as token ids. Raises BadInput."""
    kinds = set(map(type, given))  # of a million token ids as quickly as can be
    if isinstance(given, str):
        found: list[Text] = [given]
    elif kinds == {int}:
        found = [cast("tuple[int, ...]", tuple(given))]
    elif int in kinds:
        raise _odd("input is texts, or token ids, and not both")
    else:
        found = [one if isinstance(one, str) else tuple(cast("list[int]", one)) for one in given]
    if len(found) > MOST_TEXTS:
        raise _odd(f"input has more than {MOST_TEXTS} texts")
    for text in found:
        if not text:
            raise _odd("a text of input is empty")
        if len(text) > MOST_CHARS:
            raise _odd(f"a text of input has more than {MOST_CHARS} characters")
        if not isinstance(text, str) and not 0 <= min(text) <= max(text) < 1 << 30:
            raise _odd("a token id of input is out of bounds")
    return tuple(found)


def openai_list(made: Embedded, encoding: str | None) -> Json:
    data = [
        {"object": "embedding", "index": index, "embedding": _told(vector, encoding)}
        for index, vector in enumerate(made.vectors)
    ]
    usage = {"prompt_tokens": made.n_tokens, "total_tokens": made.n_tokens}
    return {"object": "list", "model": made.model, "data": data, "usage": usage}


def ollama_list(made: Embedded, took_s: float) -> Json:
    return {
        "model": made.model,
        "embeddings": [list(vector.values) for vector in made.vectors],
        "total_duration": int(took_s * NANOSECONDS),
        "load_duration": 0,
        "prompt_eval_count": made.n_tokens,
    }


def _told(vector: Vector, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(array("f", vector.values).tobytes()).decode()
    return list(vector.values)


def _odd(why: str) -> BadInput:
    return BadInput("bad_request", why=why, field="input")
