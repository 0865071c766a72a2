"""How many tokens the files of a draft are, as the chat's own model counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from app.gui.api.node_client import Call
from app.gui.app.app_context import Services

Json = dict[str, Any]
Key = tuple[str, str]  # the model that counts, and the text


class TokenCounts:
    """`told(file, tokens)` when the node has said it, which is asked once of each text and model.

    Nothing is said where that model is not loaded: then later.
    """

    def __init__(self, services: Services, told: Callable[[Json, int], object]) -> None:
        self._pool, self._client, self._told = services.pool, services.client, told
        self._calls: list[Call] = []
        self._known: dict[Key, int | None] = {}  # None: it was asked

    def ask(self, files: Sequence[Json], model: str | None) -> None:
        """Of text files, for a chat with this model; those that have their number are left alone."""
        loaded = self._pool.asked(model)
        for file in files if loaded else ():
            key = (str((loaded or {}).get("model")), str(file["text"]))
            if file.get("tokens"):
                continue
            if (tokens := self._known.get(key)) is not None:
                self._told(file, tokens)
            elif key not in self._known:
                self._ask(file, key, model)

    def close(self) -> None:
        for call in self._calls:
            if call.running:
                call.cancel()

    def _ask(self, file: Json, key: Key, model: str | None) -> None:
        self._known[key] = None
        self._calls = [call for call in self._calls if call.running]
        body = {"text": file["text"], "model": model}
        call = self._client.post("/tokens", body, partial(self._counted, file, key))
        self._calls += [call] if call is not None else []

    def _counted(self, file: Json, key: Key, answer: Json) -> None:
        self._known[key] = int(answer["tokens"])
        self._told(file, int(answer["tokens"]))
