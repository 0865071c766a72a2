"""What is offered when an answer failed: only what can help, and always something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QObject

from app.core import chat as tree
from app.core.chat import ENDED, FULL, Chat, MessageId, Role
from app.core.errors import AppError
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app import page_names
from app.gui.chat.chat_head import used_tokens
from app.gui.chat.message.branch_view import end_of, is_unanswered
from app.gui.chat.session import FULL_TOKENS, Running, Session
from app.gui.look.sentences import model_name
from app.gui.widgets.notice import Action, Notice

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


LONGER = "prompt_too_long"  # for the context that is loaded; the model may have a longer one
TOO_LONG = (LONGER, "prompt_beyond_model", "text_too_long")  # the same would fail again
NO_MODEL = "last_load_failed"
CONTEXT = ("context_too_long", "context_too_short")  # that the chat asks for
# a model that was never loaded
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
EDIT = QT_TRANSLATE_NOOP("ChatPage", "Edit the message")


@dataclass(frozen=True, slots=True)
class Buttons:
    """What each does; `go` opens a page of the window."""

    go: Callable[[str], object]
    settings: Callable[[], object]
    leave_out: Callable[[], object]
    edit: Callable[[], object]
    again: Callable[[], object]
    guide: Callable[[], object]


class WaysOut:
    """reads: how many tokens a model reads at most; None: that is not known."""

    def __init__(self, session: Session, pool: NodeState, reads: Callable[[str], int | None], buttons: Buttons) -> None:
        self._session, self._pool, self._reads = session, pool, reads
        self._buttons = buttons

    def of(self, error: AppError, chat: Chat) -> list[Action]:
        """After this error."""
        code, do = error.reason.code, self._buttons
        if code in TOO_LONG:
            return self._for_room(chat, larger=code == LONGER)
        if code in CONTEXT:
            return [(_tr(OTHER_CONTEXT), do.settings)]
        again = (_tr(AGAIN if is_unanswered(chat) else CONTINUE), do.again)
        other = (_tr(OTHER_MODEL), lambda: do.go(page_names.MODELS))
        if code == NO_MODEL:
            return [other, (_tr(ASK_GUIDE), do.guide)]
        if code in TOO_BIG:
            return [other, again]
        return [again]

    def if_full(self, chat: Chat) -> list[Action]:
        """Instead of going on with an answer that filled the context; none where there is room for more now."""
        end, context = end_of(chat), self._context(chat)
        ended = end.details.get(ENDED) if end is not None else None
        has_room = used_tokens(chat) + FULL_TOKENS < context
        if ended != FULL or has_room or self._session.leaves_out(chat.id):
            return []
        most = self._reads(self._session.asked(chat))
        return self._for_room(chat, larger=most is None or most > context)

    def _for_room(self, chat: Chat, *, larger: bool) -> list[Action]:
        """Older messages go once; a guest's hosts load their models as they like."""
        questions = [one for one in tree.told(tree.path(chat)) if one.role is Role.USER]
        found, do = list[Action](), self._buttons
        if len(questions) > 1 and not self._session.leaves_out(chat.id):
            found.append((_tr(LEAVE_OUT), do.leave_out))
        if larger and self._pool.hosts is None:
            found.append((_tr(LARGER), do.settings))
        return [*found, (_tr(EDIT), do.edit)]

    def _context(self, chat: Chat) -> int:
        return int((self._pool.model(chat.model) or self._pool.loaded or {}).get("context") or 0)


def _tr(words: object) -> str:
    return QCoreApplication.translate("ChatPage", str(words))
