"""What is offered when an answer failed: only what can help, and always something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from app.core import chat as tree
from app.core.chat import ENDED, FULL, Chat, Role
from app.core.errors import AppError
from app.gui.api.node_state import NodeState
from app.gui.app import page_names
from app.gui.chat.chat_head import used_tokens
from app.gui.chat.message.branch_view import end_of, is_unanswered
from app.gui.chat.session import FULL_TOKENS, Session
from app.gui.widgets.notice import Action

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
