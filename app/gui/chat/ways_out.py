"""What is offered when an answer failed: only what can help, and always something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from app.core import chat as tree
from app.core.chat import Chat, Role
from app.core.errors import AppError
from app.gui import pages
from app.gui.chat.branch_view import is_unanswered
from app.gui.parts.notice import Action

LONGER = "prompt_too_long"  # for the context that is loaded; the model may have a longer one
TOO_LONG = (LONGER, "prompt_beyond_model", "text_too_long")  # the same would fail again
CONTEXT = ("context_too_long", "context_too_short")  # that the chat asks for
TOO_BIG = ("pool_too_small", "host_too_small", "whole_too_big")  # a model that was never loaded

AGAIN = QT_TRANSLATE_NOOP("ChatPage", "Try again")
CONTINUE = QT_TRANSLATE_NOOP("ChatPage", "Continue")
LEAVE_OUT = QT_TRANSLATE_NOOP("ChatPage", "Leave out the oldest messages")
LARGER = QT_TRANSLATE_NOOP("ChatPage", "Choose a larger context")
OTHER_CONTEXT = QT_TRANSLATE_NOOP("ChatPage", "Choose another context")
OTHER_MODEL = QT_TRANSLATE_NOOP("ChatPage", "Choose another model")
EDIT = QT_TRANSLATE_NOOP("ChatPage", "Edit the message")


@dataclass(frozen=True, slots=True)
class WaysOut:
    """What each button does; `go` opens a page of the window."""

    go: Callable[[str], object]
    settings: Callable[[], object]
    leave_out: Callable[[], object]
    edit: Callable[[], object]
    again: Callable[[], object]

    def of(self, error: AppError, chat: Chat, *, leaves_out: bool, is_guest: bool) -> list[Action]:
        """leaves_out: its oldest messages were left out already. A guest's hosts load as they like."""
        code = error.reason.code
        if code in TOO_LONG:
            questions = [one for one in tree.told(tree.path(chat)) if one.role is Role.USER]
            found = []
            if len(questions) > 1 and not leaves_out:
                found.append((_tr(LEAVE_OUT), self.leave_out))
            if code == LONGER and not is_guest:
                found.append((_tr(LARGER), self.settings))
            return [*found, (_tr(EDIT), self.edit)]
        if code in CONTEXT:
            return [(_tr(OTHER_CONTEXT), self.settings)]
        again = (_tr(AGAIN if is_unanswered(chat) else CONTINUE), self.again)
        if code in TOO_BIG:
            return [(_tr(OTHER_MODEL), lambda: self.go(pages.MODELS)), again]
        return [again]


def _tr(words: object) -> str:
    return QCoreApplication.translate("ChatPage", str(words))
