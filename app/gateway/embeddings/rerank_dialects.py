"""What a reranker is asked, as Jina's and llama.cpp's API or as TEI's, and how each tells the scores. No I/O."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.errors import BadInput
from app.gateway.api_request import Json
from app.gateway.embeddings.embedding_dialects import MOST_CHARS, MOST_TEXTS, Given
from app.node.models.embeddings import Ranked


class Document(msgspec.Struct, frozen=True):
    text: Given


class RerankRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Jina's, or TEI's where it has `texts`."""

    query: Annotated[str, Meta(min_length=1, max_length=MOST_CHARS)]
    documents: Annotated[list[Given | Document], Meta(max_length=MOST_TEXTS)] = []
    texts: Annotated[list[Given], Meta(max_length=MOST_TEXTS)] | None = None
    model: str = ""
    top_n: Annotated[int, Meta(ge=0, le=1 << 31)] | None = None
    return_documents: bool | None = None
    return_text: bool | None = None

    def all_texts(self) -> list[str]:
        """Those to be scored. Raises BadInput."""
        given = self.documents if self.texts is None else self.texts
        if not given:
            name = "documents" if self.texts is None else "texts"
            raise BadInput("bad_request", why=f"{name} is empty", field=name)
        return [one if isinstance(one, str) else one.text for one in given]

    def answer(self, made: Ranked) -> Json | list[Json]:
        """The best one first; those that score alike in the order in which they came."""
        texts, is_tei = self.all_texts(), self.texts is not None
        score = "score" if is_tei else "relevance_score"
        found: list[Json] = [{"index": index, score: one.value} for index, one in enumerate(made.scores)]
        for one in found:
            if is_tei and self.return_text:
                one["text"] = texts[one["index"]]
            elif not is_tei and self.return_documents:
                one["document"] = {"text": texts[one["index"]]}
        found.sort(key=lambda one: -one[score])
        results = found[: self.top_n]
        if is_tei:
            return results
        usage = {"prompt_tokens": made.n_tokens, "total_tokens": made.n_tokens}
        return {"model": made.model, "object": "list", "usage": usage, "results": results}
