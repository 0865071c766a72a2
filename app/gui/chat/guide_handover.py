"""The offer to ask a larger model after the Guide has said that it does not know an answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from app.api.snapshot import Snapshot
from app.core import chat as tree
from app.core.chat import MODEL, Chat, MessageId
from app.gui.look.sentences import GUIDE, model_name
from app.gui.widgets.notice import Notice

REFUSAL = "I don't know that"  # how the Guide's answer begins if it does not know one; see guide/text/unknown.toml


class GuideHandover(QObject):
    """An offer, below the chat's header, that appears after the Guide has refused a question.

    It offers a loaded model, which then answers the same question, or the Models page if no model is loaded.

    ask: lets a model answer the question of a message again.
    models: opens the Models page.
    is_base: returns whether the model with this name only completes text.
    """

    def __init__(
        self,
        notice: Notice,
        ask: Callable[[str, MessageId], object],
        models: Callable[[], object],
        is_base: Callable[[str], bool],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._notice, self._ask, self._models, self._is_base = notice, ask, models, is_base

    def offer(self, chat: Chat, now: Snapshot) -> None:
        """Make the offer if the Guide refused the last question of the chat."""
        refused = refused_answer(chat)
        if refused is None:
            return
        model = real_model(now, self._is_base)
        if model is None:
            action = self.tr("Choose a model"), self._models
            self._notice.say(self.tr("The Guide knows only Poolhouse. A larger model may know this."), "info", action)
            return
        action = self.tr("Ask {model}").format(model=model_name(model)), partial(self._ask, model, refused)
        self._notice.say(self.tr("The Guide knows only Poolhouse. Another model is loaded."), "info", action)


def refused_answer(chat: Chat) -> MessageId | None:
    """Return the ID of the chat's last answer if the Guide refused the question in it, otherwise None."""
    shown = tree.path(chat)
    if not shown or shown[-1].role is not tree.Role.ASSISTANT:
        return None
    last = shown[-1]
    return last.id if last.details.get(MODEL) == GUIDE and last.text.startswith(REFUSAL) else None


def real_model(now: Snapshot, is_base: Callable[[str], bool]) -> str | None:
    """Return the name of a loaded chat model other than the Guide that can answer at once, or None.

    Models that this computer has loaded are preferred to models of other computers.
    """
    ready = [model.model for model in now.models if model.state == "ready" and model.model != GUIDE]
    shared = [model.reference for model in now.shared if model.ready and model.model != GUIDE]
    return next((name for name in [*ready, *shared] if not is_base(name)), None)
