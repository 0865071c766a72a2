"""The embedding model that programs ask: loaded beside the one that writes, given back when nobody asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.catalog.shelf import Entry, Shelf
from app.core.errors import BadInput, DoesNotFit
from app.core.model import Model
from app.inference.embedder import Embedder, Text, Vector
from app.node.stoppable import in_thread

log = logging.getLogger(__name__)

MOST_CONTEXT = 2048  # tokens of a text; a pass needs memory for all pairs of them
IDLE_SECONDS = 300.0
COMPUTE_BYTES = 512 << 20  # beside weights and KV cache, of a pass of so many tokens


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of some texts, in their order."""

    model: str
    vectors: tuple[Vector, ...]

    @property
    def n_tokens(self) -> int:
        return sum(vector.n_tokens for vector in self.vectors)


class Embeddings:
    """One model at a time; another one takes its place. `room`: bytes that it may take."""

    def __init__(
        self, shelf: Callable[[], Shelf], room: Callable[[], int], threads: Callable[[], int]
    ) -> None:
        self._shelf, self._room, self._threads = shelf, room, threads
        self._turn = asyncio.Lock()
        self._loaded: tuple[str, Embedder] | None = None  # the model's id
        self._idle: asyncio.TimerHandle | None = None

    async def model(self, name: str) -> Entry:
        """The embedding model of this name; the only one there is, if it names none. Raises BadInput."""
        name = name.removesuffix(":latest")
        if name in ("", "default"):
            entries = await asyncio.to_thread(self._shelf().entries)
            there = [entry for entry in entries if entry.model.embeds]
            if len(there) != 1:
                names = ", ".join(entry.name for entry in there) or "none"
                raise BadInput("embedding_model_unnamed", there=names)
            return there[0]
        entry = await asyncio.to_thread(self._shelf().get, name)
        if not entry.model.embeds:
            raise BadInput("model_embeds_not", name=entry.name)
        return entry

    async def embed(
        self, entry: Entry, texts: Sequence[Text], size: int | None, *, cut: bool
    ) -> Embedded:
        """The vectors, one for each text. Raises BadInput, DoesNotFit, Damaged or StageLost."""
        if size is not None and size > entry.model.width:
            raise BadInput("embedding_size", most=entry.model.width)
        async with self._turn:
            self._keep()
            try:
                embedder = await self._ready(entry)
                size = size or embedder.width
                vectors = [await embedder.embed(text, size, cut=cut) for text in texts]
            finally:
                self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._give_back)
        return Embedded(entry.name, tuple(vectors))

    async def close(self) -> None:
        """Give the memory back."""
        self._keep()
        if self._loaded is not None:
            (_, embedder), self._loaded = self._loaded, None
            await embedder.close()

    async def _ready(self, entry: Entry) -> Embedder:
        if self._loaded is not None:
            model, embedder = self._loaded
            if model == entry.model.id and embedder.alive:
                return embedder
            await self.close()
        entry = await in_thread(lambda told: self._shelf().verify(entry, told), lambda *_: None)
        context = min(entry.model.context_length, MOST_CONTEXT)
        limit = self._admitted(entry.model, context)
        embedder = await Embedder.open(entry.path, context, self._threads(), limit)
        self._loaded = entry.model.id, embedder
        log.info("%s is loaded for embeddings", entry.name)
        return embedder

    def _admitted(self, model: Model, context: int) -> int:
        """What it may take. Raises DoesNotFit."""
        needed = model.file_bytes + model.kv_bytes(model.layers, context) + COMPUTE_BYTES
        room = self._room()
        if needed > room:
            raise DoesNotFit(
                "embedding_no_room", model=model.name, need_bytes=needed, free_bytes=room
            )
        return needed

    def _keep(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _give_back(self) -> None:
        if self._loaded is not None:
            self._loaded[1].kill()
            self._loaded = None
