"""While an answer waits for a machine, because the rest is too small: a smaller model now, or waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QObject

from app.core.chat import MessageId
from app.core.errors import AppError
from app.gui.api.node_client import NodeClient
from app.gui.chat.session import Running
from app.gui.look.sentences import model_name
from app.gui.widgets.notice import Notice

Json = dict[str, Any]


class Shortage(QObject):
    """Says it in `notice`, with a button for each way; `use(model)` has the answer go on with another model."""

    def __init__(self, client: NodeClient, notice: Notice, use: Callable[[str], object], parent: QObject) -> None:
        super().__init__(parent)
        self._client, self._notice, self._use = client, notice, use
        self._message: MessageId | None = None  # the answer that waits
        self._sentence = ""

    def tell(self, running: Running | None, model: str) -> None:
        """The answer under way in the chat that is shown, as it stands now; `model` makes it."""
        short = running if running is not None and running.answer.is_short else None
        message = short.message if short is not None else None
        if message == self._message:
            return
        if self._message is not None and self._notice.sentence == self._sentence:
            self._notice.clear()
        self._message = message
        if short is not None:
            self._sentence, waiting = short.answer.trouble, short.message
            self._offer(None)
            self._client.get("/models", partial(self._listed, model, waiting))

    def _listed(self, model: str, message: MessageId, answer: Json) -> None:
        self._try(instead(answer, model), message)

    def _try(self, names: Sequence[str], message: MessageId) -> None:
        """The first that would fit now, as the planner sees it."""
        if not names or self._message != message:
            return
        first, *others = names
        body = {"model": first, "measure": False}
        self._client.post("/plan", body, partial(self._found, first, message), partial(self._refused, others, message))

    def _refused(self, others: Sequence[str], message: MessageId, _: AppError) -> None:
        self._try(others, message)

    def _found(self, model: str, message: MessageId, _: Json) -> None:
        if self._message == message and self._notice.sentence == self._sentence:
            self._offer(model)

    def _offer(self, model: str | None) -> None:
        wait = (self.tr("Wait for it"), self._notice.clear)
        if model is None:
            self._notice.say(self._sentence, "warning", wait)
            return
        name = self.tr("Use a smaller model: {model}").format(model=model_name(model))
        self._notice.say(self._sentence, "warning", (name, lambda: self._use(model)), wait)


def instead(answer: Json, than: str) -> list[str]:
    """What this machine could load instead. A guest's hosts are asked, and know nothing of its own models."""
    return [] if answer.get("offered") else smaller(answer.get("models") or (), than)


def smaller(models: Sequence[Json], than: str) -> list[str]:
    """The names of the models that answer and take less than this one, the largest first."""
    chats = [one for one in models if one.get("writes", True) and not one.get("embeds")]
    sizes = {str(one.get("name")): int(one.get("file_bytes") or 0) for one in chats}
    most = sizes.get(than)
    found = [name for name, size in sizes.items() if most is None or size < most]
    return sorted((name for name in found if name != than), key=lambda name: -sizes[name])
