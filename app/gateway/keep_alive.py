"""Ollama's `keep_alive: 0`: the model is unloaded after its answer, if no one else uses it."""

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
    """The unloading of models.

    A program may unload what its own question loaded; other models only if it may change them.
    """

    def __init__(self, hosting: ModelManager, may_load: Callable[[], bool], answering: Answering) -> None:
        self._hosting, self._may_load, self._answering = hosting, may_load, answering

    def there(self) -> frozenset[Placement]:
        """Return the loaded models, before a question that may load one."""
        return frozenset(self._hosting.loaded)

    @contextmanager
    def keeping(self, model: str, *, lets_go: bool) -> Iterator[None]:
        """Make an answer of this model inside; `lets_go`: its program does not keep it.

        A program that leaves early does not keep it either. A question that fails has loaded nothing that answers.
        """
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
        """Unload the model after its answer, if its program does not keep it. before: what was loaded when the question
        came.

        Meanwhile the owner may have loaded it, or the owner's own model was lost and is back.
        """
        running = self._hosting.loaded.named(model)
        if running is None:
            return
        brought = running.by_question and running not in before
        if not (brought or self._may_load()):
            return
        if not self._is_wanted(running):
            self._goes(running)

    def at_once(self, model: str) -> None:
        """Unload the model on request. Raises BadInput where the program may not, Busy while others use it."""
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
