"""The actions offered when an answer fails or waits.

There is always at least one, and each may solve the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QObject

from app.api.models import Models, ShelfModel
from app.core import chat as tree
from app.core.chat import ENDED, FULL, Chat, MessageId, Role
from app.core.errors import AppError
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app import navigation
from app.gui.chat.chat_head import used_tokens
from app.gui.chat.message.branch_view import is_unanswered, last_message
from app.gui.chat.session import FULL_TOKENS, RunningAnswer, Session
from app.gui.look.sentences import model_name
from app.gui.widgets.notice import Action, Notice

TOO_LONG_FOR_LOADED = "prompt_too_long"  # too long for the loaded context, but the model may support a longer one
TOO_LONG = (TOO_LONG_FOR_LOADED, "prompt_beyond_model", "text_too_long")  # retrying would not help
NO_MODEL = "last_load_failed"
SERVER_CONSENT = "server_consent"  # the owner has not allowed this server to answer
CONTEXT = ("context_too_long", "context_too_short")  # the context that the chat requests cannot be loaded
# The model is too big to be loaded.
TOO_BIG = (
    "pool_too_small",
    "pool_in_pieces",
    "host_short_of_ends",
    "host_too_small",
    "host_over_limit",
    "whole_too_big",
    "whole_over_limit",
)

AGAIN = QT_TRANSLATE_NOOP("ChatPage", "Try again")
CONTINUE = QT_TRANSLATE_NOOP("ChatPage", "Continue")
LEAVE_OUT = QT_TRANSLATE_NOOP("ChatPage", "Leave out the oldest messages")
LARGER = QT_TRANSLATE_NOOP("ChatPage", "Choose a larger context")
OTHER_CONTEXT = QT_TRANSLATE_NOOP("ChatPage", "Choose another context")
ASK_GUIDE = QT_TRANSLATE_NOOP("ChatPage", "Ask the Guide")
OTHER_MODEL = QT_TRANSLATE_NOOP("ChatPage", "Choose another model")
ALLOW = QT_TRANSLATE_NOOP("ChatPage", "Allow {name} to answer")
EDIT = QT_TRANSLATE_NOOP("ChatPage", "Edit message")


@dataclass(frozen=True, slots=True)
class Handlers:
    """The functions called by the buttons. `go` opens a page of the window, and `allow` lets a server answer."""

    go: Callable[[str], object]
    settings: Callable[[], object]
    leave_out: Callable[[], object]
    edit: Callable[[], object]
    again: Callable[[], object]
    guide: Callable[[], object]
    allow: Callable[[str], object]  # receives the name of another server


class ErrorActions:
    """The rules for the buttons of a notice about a failed answer.

    `context_length` returns the context length that a model was trained with, or None if unknown.
    """

    def __init__(
        self, session: Session, pool: NodeState, context_length: Callable[[str], int | None], handlers: Handlers
    ) -> None:
        self._session, self._pool, self._context_length = session, pool, context_length
        self._handlers = handlers

    def for_error(self, error: AppError, chat: Chat) -> list[Action]:
        """Return the actions that may help after this error."""
        code, handlers = error.reason.code, self._handlers
        if code in TOO_LONG:
            return self._make_room(chat, may_enlarge=code == TOO_LONG_FOR_LOADED)
        if code in CONTEXT:
            return [(_tr(OTHER_CONTEXT), handlers.settings)]
        again = (_tr(AGAIN if is_unanswered(chat) else CONTINUE), handlers.again)
        other = (_tr(OTHER_MODEL), lambda: handlers.go(navigation.MODELS))
        if code == SERVER_CONSENT:
            server = str(error.reason.facts["name"])
            return [(_tr(ALLOW).format(name=server), lambda: handlers.allow(server)), other]
        if code == NO_MODEL:
            return [other, (_tr(ASK_GUIDE), handlers.guide)]
        if code in TOO_BIG:
            return [other, again]
        return [again]

    def when_full(self, chat: Chat) -> list[Action]:
        """Return the actions to offer if an answer filled the context, or none if there is space again."""
        end, context = last_message(chat), self._context(chat)
        ended = end.details.get(ENDED) if end is not None else None
        has_room = used_tokens(chat) + FULL_TOKENS < context
        if ended != FULL or has_room or self._session.may_trim(chat.id):
            return []
        limit = self._context_length(self._session.model_of(chat))
        return self._make_room(chat, may_enlarge=limit is None or limit > context)

    def _make_room(self, chat: Chat, *, may_enlarge: bool) -> list[Action]:
        """Return the actions that free space in the context or enlarge it.

        Dropping messages is offered only once. A guest cannot enlarge the context, because its hosts determine it.
        """
        questions = [message for message in tree.prompt_messages(tree.path(chat)) if message.role is Role.USER]
        actions, handlers = list[Action](), self._handlers
        if len(questions) > 1 and not self._session.may_trim(chat.id):
            actions.append((_tr(LEAVE_OUT), handlers.leave_out))
        if may_enlarge and self._pool.now.hosts is None:
            actions.append((_tr(LARGER), handlers.settings))
        return [*actions, (_tr(EDIT), handlers.edit)]

    def _context(self, chat: Chat) -> int:
        loaded = self._pool.now.model(chat.model) or self._pool.now.loaded
        return loaded.context if loaded is not None else 0


def _tr(words: object) -> str:
    return QCoreApplication.translate("ChatPage", str(words))


class SmallerModelOffer(QObject):
    """An offer of a smaller model while an answer waits for a machine that its model needs.

    If the user accepts, `use(model)` is called.
    """

    def __init__(self, client: NodeClient, notice: Notice, use: Callable[[str], object], parent: QObject) -> None:
        super().__init__(parent)
        self._client, self._notice, self._use = client, notice, use
        self._message: MessageId | None = None  # the answer that is waiting
        self._sentence = ""

    def update(self, running: RunningAnswer | None, model: str) -> None:
        """Show or clear the notice for the answer in progress in the current chat, which `model` generates."""
        short = running if running is not None and running.answer.is_short else None
        message = short.message if short is not None else None
        if message == self._message:
            return
        if self._message is not None and self._notice.sentence == self._sentence:
            self._notice.clear()
        self._message = message
        if short is not None:
            self._sentence = short.answer.trouble
            self._offer(None)
            self._client.get("/models", partial(self._try_listed, model, short.message), answer=Models)

    def _try_listed(self, model: str, message: MessageId, answer: Models) -> None:
        # A guest's own models cannot help, because its questions are answered by its hosts.
        names = [] if answer.offered else smaller_models(answer.models, model)
        self._try(names, message)

    def _try(self, names: Sequence[str], message: MessageId) -> None:
        """Offer the first of these models for which the planner finds enough memory."""
        if not names or self._message != message:
            return
        first, *smaller = names
        body = {"model": first, "measure": False}
        fits, does_not_fit = partial(self._fits, first, message), partial(self._does_not_fit, smaller, message)
        self._client.post("/plan", body, fits, does_not_fit)

    def _does_not_fit(self, smaller: Sequence[str], message: MessageId, _: AppError) -> None:
        self._try(smaller, message)

    def _fits(self, model: str, message: MessageId, _: object) -> None:
        if self._message == message and self._notice.sentence == self._sentence:
            self._offer(model)

    def _offer(self, model: str | None) -> None:
        wait = (self.tr("Wait"), self._notice.clear)
        if model is None:
            self._notice.say(self._sentence, "warning", wait)
            return
        name = self.tr("Use a smaller model: {model}").format(model=model_name(model))
        self._notice.say(self._sentence, "warning", (name, lambda: self._use(model)), wait)


def smaller_models(models: Sequence[ShelfModel], than: str) -> list[str]:
    """Return the names of the language models that are smaller than this one, largest first."""
    sizes = {model.name: model.file_bytes for model in models if model.writes and not model.embeds}
    limit = sizes.get(than)
    names = [name for name, size in sizes.items() if name != than and (limit is None or size < limit)]
    return sorted(names, key=lambda name: -sizes[name])
