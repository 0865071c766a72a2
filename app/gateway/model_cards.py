"""The metadata of model files, even of models that are not loaded. Each file is read only once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from app.catalog.gguf.model_reader import Card, read_card
from app.core.errors import AppError
from app.gateway.answer_service import AnswerService
from app.gateway.api_request import Json
from app.inference.worker.tokenizer import TextWorker
from backends import worker_orders

MOST_KEPT = 64
# A function that lists the models stored on this machine, or on the host of a guest.
ListModels = Callable[[], Awaitable[list[Json]]]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The metadata and modification time of a model file, and the capabilities of its chat template."""

    card: Card
    modified: str
    has_tools: bool = False
    thinks: bool = False


class ModelCards:
    """A cache of the metadata of the models stored on this machine.

    Models on a guest's host have no file here and therefore no card.
    """

    def __init__(self, answering: AnswerService) -> None:
        self._answering = answering
        self._kept: OrderedDict[tuple[str, str], ModelCard] = OrderedDict()
        self._turn = asyncio.Lock()  # each card opens a vocabulary, which briefly uses memory

    async def card(self, model: Json) -> ModelCard | None:
        """Return the card of a model, or None if its file is missing or on another machine."""
        path, name = model.get("path"), model["name"]
        if not path:
            return None
        modified = await modified_at(model)
        key = (str(path), modified)
        async with self._turn:
            if key not in self._kept:
                try:
                    made = ModelCard(await asyncio.to_thread(read_card, Path(path)), modified)
                    if made.card.template and model.get("writes", True):
                        knows = await self._vocabulary(path, name)
                        made = replace(made, has_tools=knows.calls is not None, thinks=not knows.reasoning.is_habit)
                except (AppError, OSError):
                    return None
                self._kept[key] = made
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            return self._kept[key]

    async def _vocabulary(self, path: str, name: str) -> worker_orders.VocabularyOpened:
        """Return the vocabulary, from the loaded model if possible. Raises AppError."""
        there = self._answering.ready_models().get(name)
        if there is not None and there.completer is not None:
            return there.completer.vocabulary
        async with await TextWorker.open(path) as text:
            return text.vocabulary


async def modified_at(model: Json, otherwise: str = "") -> str:
    """Return the modification time of a model's file in Ollama's format, or `otherwise` if the file is missing."""
    if not (path := model.get("path")):
        return otherwise

    def look() -> str:
        try:
            seconds = Path(path).stat().st_mtime
        except OSError:
            return otherwise
        return iso(datetime.fromtimestamp(seconds, UTC))

    return await asyncio.to_thread(look)


def iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
