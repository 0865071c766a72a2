"""Ollama's `keep_alive: 0`: the model goes when its answer is over, where that takes it from nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.core.errors import BadInput, Busy
from app.gateway.answering import Answering
from app.node.models.model_manager import ModelManager
from app.node.placement.placement import Placement

log = logging.getLogger(__name__)


class LettingGo:
    """A program may let go what its own question brought; what was there before only where programs may change that."""

    def __init__(self, hosting: ModelManager, may_load: Callable[[], bool], answering: Answering) -> None:
        self._hosting, self._may_load, self._answering = hosting, may_load, answering

    def there(self) -> frozenset[Placement]:
        """Return the loaded models, before a question that may load one."""
        return frozenset(self._hosting.loaded)

    @contextmanager
    def keeping(self, model: str, *, lets_go: bool) -> Iterator[None]:
        """An answer of this model is made inside; `lets_go`: its program keeps it no longer. Who leaves before the end
        keeps it no longer either. One that fails has brought nothing that answers."""
        before = self.there()
        try:
            yield
        except (GeneratorExit, asyncio.CancelledError):
            if lets_go:
                self.after(model, before)
            raise
        if lets_go:
            self.after(model, before)

    def after(self, model: str, before: frozenset[Placement]) -> None:
        """An answer of this model is over, and its program keeps it no longer. before: what was there when it came.
        Meanwhile its owner may have loaded it, or what he had loaded was lost and is there again."""
        running = self._hosting.loaded.named(model)
        if running is None:
            return
        brought = running.by_question and running not in before
        if not (brought or self._may_load()):
            return
        if not self._is_wanted(running):
            self._goes(running)

    def at_once(self, model: str) -> None:
        """A program asks for nothing but that. Raises BadInput where it may not, Busy while others ask it."""
        running = self._hosting.loaded.named(model)
        if running is None or not running.is_ready:  # as one that goes already
            return
        if not self._may_load():
            raise BadInput("api_model_stays", name=model)
        if self._is_wanted(running):
            raise Busy("api_model_asked", name=model)
        self._goes(running)

    def _is_wanted(self, running: Placement) -> bool:
        return running.n_askers > 0 or self._answering.queue.waits_for(running.entry.name)

    def _goes(self, running: Placement) -> None:
        log.info("%s is unloaded, as a program asked", running.entry.name)
        self._hosting.give_back(running)
