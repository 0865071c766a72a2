"""How many tokens the files of a draft are, as the chat's own model counts them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from app.gui.node_client import Call
from app.gui.services import Services

Json = dict[str, Any]


class TokenCounts:
    """`told(file, tokens)` when the node has said it; nothing is said where that model is not loaded."""

    def __init__(self, services: Services, told: Callable[[Json, int], object]) -> None:
        self._pool, self._client, self._told = services.pool, services.client, told
        self._calls: list[Call] = []

    def ask(self, file: Json, model: str | None) -> None:
        """Of a text file, for a chat with this model."""
        if self._pool.asked(model):
            self._calls = [call for call in self._calls if call.running]
            body = {"text": file["text"], "model": model}
            call = self._client.post("/tokens", body, partial(self._counted, file))
            self._calls += [call] if call is not None else []

    def close(self) -> None:
        for call in self._calls:
            if call.running:
                call.cancel()

    def _counted(self, file: Json, answer: Json) -> None:
        self._told(file, int(answer["tokens"]))
